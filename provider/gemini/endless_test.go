package gemini_test

import (
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
)

func TestEndless(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	standin.Endless(t, at, ask("Hello"), key, "", map[string]string{
		"arguments": stream(chunk(calls("c", "pay", quotedIn(long)))),
		"calls":     stream(chunk(calls("c", "pay", `{}`))),
		"signature": stream(chunk(signed(calls("c", "pay", `{}`), long))),
	})
}

// quotedIn is arguments with a text in them.
func quotedIn(s string) string { return `{"x":` + quoted(s) + `}` }
