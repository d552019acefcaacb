package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSONDepth(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `3`: 0, `"[{"`: 0, `"\"[["`: 0, `"\\"`: 0, `{}`: 1, `{"a":1}`: 1, `{"a":[1,{"b":[]}],"c":{}}`: 4, `["\\",[]]`: 2,
		strings.Repeat("[", 100_000): 100_000,
	} {
		require.Equal(t, want, JSONDepth([]byte(text)), "%.40s", text)
	}
}
