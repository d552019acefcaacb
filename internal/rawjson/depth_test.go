package rawjson

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `3`: 0, `"[{"`: 0, `"\"[["`: 0, `"\\"`: 0, `{}`: 1, `{"a":1}`: 1, `{"a":[1,{"b":[]}],"c":{}}`: 4, `["\\",[]]`: 2,
		strings.Repeat("[", 100_000): 100_000,
	} {
		require.Equal(t, want, Depth([]byte(text)), "%.40s", text)
	}
}

func TestDuplicateKey(t *testing.T) {
	for text, want := range map[string]string{
		``: "", `3`: "", `"a"`: "", `{}`: "", `{"a":1,"b":1}`: "", `{"a":"a","b":["a","a"]}`: "", `{"a":{"a":1},"b":{"a":1}}`: "", `[{"a":1},{"a":1}]`: "",
		`{"a":"\"a\":1,\"a\":2"}`: "", `{"a":1,"A":2}`: "", `{"a\\":1,"a":2}`: "",
		`{"a":1,"a":2}`: "a", `{"a":1,"\u0061":2}`: "a", "{ \"a\"\n:\t1 ,\r\"a\" : 2}": "a", `{"b":[0,{"c":{"d":[]}},{"e":1,"x":[3],"e":2}]}`: "b[2].e", `{"":1,"":2}`: "", `[[],[{"a":1,"a":1}]]`: "[1][0].a",
		"{\"\xff\":1,\"\xfe\":2}": "\uFFFD",
	} {
		require.Equal(t, want, DuplicateKey([]byte(text)), "%.40s", text)
	}
}
