package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/rawjson"
)

func TestUnescapeHTML(t *testing.T) {
	for _, text := range []string{
		"", `{}`, `{"a":"cd x && make > out 2>&1 < in"}`, `{"<&>":["\\u003c","\\\\","\"<"]}`, "{\"lines\":\"a\u2028b\u2029c\"}", `{"é":"\u00e9\n"}`,
	} {
		raw := json.RawMessage(text)
		escaped, err := json.Marshal(raw)
		if text != "" {
			require.NoError(t, err)
		}
		before := string(escaped)
		require.Equal(t, text, string(rawjson.UnescapeHTML(escaped)))
		require.Equal(t, before, string(escaped), "it stays as it was")
	}
	for text, want := range map[string]string{`"\u003C\\u003c\\\u003c"`: `"<\\u003c\\<"`, `"\`: `"\`, `"\u00`: `"\u00`} {
		require.Equal(t, want, string(rawjson.UnescapeHTML(json.RawMessage(text))))
	}
}
