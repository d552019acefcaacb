package gemini_test

import (
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
)

// Streams may begin with a byte order mark, and end their lines with a carriage return.
func TestLineEndings(t *testing.T) {
	m, _ := serve(t, standin.Drip(whole, 0))
	want, _ := standin.Reply(t, m, ask("Hello"))
	want.ProviderModel = ""
	plain := strings.ReplaceAll(whole, "\r\n", "\n")
	for name, given := range map[string]string{"mark": "\ufeff" + plain, "CR": strings.ReplaceAll(plain, "\n", "\r"), "CRLF": strings.ReplaceAll(plain, "\n", "\r\n")} {
		for _, n := range []int{0, 1} {
			m, _ := serve(t, standin.Drip(given, n))
			reply, h := standin.Reply(t, m, ask("Hello"))
			standin.Same(t, name, reply, want, h)
		}
	}
}
