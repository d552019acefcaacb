package bedrock_test

import (
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
)

// Whatever a server answers, it is a reply or a fault.
func FuzzAnswer(f *testing.F) {
	f.Add(200, uint8(3), []byte(strings.Join(whole, "")))
	f.Add(200, uint8(3), []byte(begin+thinking(0, "hm")+signature(0, "sig")+text(0, "So.")+delta(2, `{"reasoningContent":{"redactedContent":"eA=="}}`)+because("max_tokens")+used))
	f.Add(200, uint8(3), []byte(begin+exception("throttlingException", "slow down")))
	f.Add(200, uint8(3), []byte(begin+use(0, "t", "add")+input(0, `{"a":`)+because("malformed_tool_use")+frame("metadata", `{"usage":{"inputTokens":-1}}`)))
	f.Add(400, uint8(1), []byte(`{"message":"Input is too long for requested model."}`))
	f.Add(429, uint8(1), []byte(`{"message":"Too many tokens per day"}`))
	f.Add(502, uint8(2), []byte("<html>bad gateway</html>"))
	f.Add(302, uint8(3), []byte(nil))
	f.Add(200, uint8(3), []byte(begin+text(0, "Grüße")+cites(0, `{"title":"a","location":{"documentPage":{"documentIndex":0,"start":1,"end":2}}}`)+because("end_turn")+used))
	f.Fuzz(func(t *testing.T, status int, kind uint8, body []byte) {
		standin.Sound(t, at("http://stand.in", standin.Canned(status, kind, body)), ask("Hello"), token)
	})
}
