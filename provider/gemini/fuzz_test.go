package gemini_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
)

// Whatever a server answers, it is a reply or a fault.
func FuzzAnswer(f *testing.F) {
	f.Add(200, uint8(0), []byte(stream(
		chunk(thinks("hm")), chunk(signed(text("Let me see."), "c2ln")), chunk(signed(calls("a", "add", `{"a":1}`), "Mg=="), calls("", "add", "")), because("STOP"))))
	f.Add(200, uint8(0), []byte(": ping\n\nid: 3\n"+stream(chunk(signed(thinks("hm"), "c2ln"), thinks("so"), text("x"), signed(text(""), "ZW5k")), because("MAX_TOKENS"))))
	f.Add(200, uint8(0), []byte(stream(chunk(text("x")), problem("503", "UNAVAILABLE", "Overloaded", retryInfo))))
	f.Add(200, uint8(0), []byte(stream(chunk(calls("a", "add", `[5]`)), because("SAFETY"))))
	f.Add(200, uint8(0), []byte(stream(because("MALFORMED_FUNCTION_CALL"))))
	f.Add(200, uint8(0), []byte(stream(`{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"no"},"usageMetadata":{"promptTokenCount":-1,"thoughtsTokenCount":9}}`)))
	f.Add(200, uint8(1), []byte(`[`+chunk(text("x"))+`,`+because("STOP")+`]`))
	f.Add(200, uint8(1), []byte(because("LANGUAGE")))
	for i, status := range []string{"INVALID_ARGUMENT", "UNAUTHENTICATED", "FAILED_PRECONDITION", "PERMISSION_DENIED", "NOT_FOUND", "RESOURCE_EXHAUSTED"} {
		f.Add(400+i, uint8(1), []byte(problem("400", status, "enable billing: input token count\nlimit: 0,", perDay)))
	}
	f.Add(429, uint8(1), []byte("["+problem("429", "RESOURCE_EXHAUSTED", "slow", retryInfo)+"]"))
	f.Add(502, uint8(2), []byte("<html>bad gateway</html>"))
	f.Add(302, uint8(3), []byte(nil))
	f.Add(200, uint8(0), []byte(stream(chunk(text("Grüße")), supports(`{"segment":{"startIndex":2,"endIndex":7,"text":"ße"},"groundingChunkIndices":[0,1]}`))))
	f.Add(200, uint8(0), []byte(stream(chunk(text("Grüße")), grounds("citationMetadata", `{"citations":[{"startIndex":2,"endIndex":4,"uri":"https://a.example"}]}`))))
	f.Fuzz(func(t *testing.T, status int, kind uint8, body []byte) {
		standin.Sound(t, at("http://stand.in", standin.Canned(status, kind, body)), ask("Hello"), key)
	})
}
