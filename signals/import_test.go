package signals

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A start that continues with an imported run says nothing else: the run is as it was.
func TestStartsOfImports(t *testing.T) {
	digest := strings.Repeat("0f", 16) + "-" + strings.Repeat("0f", 32)
	start, refusal := DecodeStart([]byte(`{"agent":"payer","by":"ana","import":"` + digest + `","meta":{"x":1}}`))
	require.Nil(t, refusal)
	require.Equal(t, digest, start.Import)
	for _, more := range []string{
		`,"input":{"text":"go"}`, `,"carry":"reset"`, `,"limits":{"turns":5}`, `,"labels":{"a":"b"}`, `,"park":{}`, `,"from":{"checkpoint":"cp-1"}`, `,"id":"m-1"`,
	} {
		_, refusal := DecodeStart([]byte(`{"agent":"payer","import":"` + digest + `"` + more + `}`))
		require.ErrorIs(t, refusal, agent.CodeInvalidInput, more)
		require.Equal(t, "import", refusal.Path)
	}
	start, refusal = DecodeStart([]byte(`{"agent":"payer","import":"` + digest + `","answers":[{"request":"q-1","answer":{"text":"Rome"}},{"request":"q-2","approve":{}}]}`))
	require.Nil(t, refusal)
	require.Equal(t, "Rome", start.Answers[0].Answer.Text)
	for path, answers := range map[string]string{
		"answers[0].request": `{"answer":{"text":"Rome"}}`, "answers[0].answer.text": `{"request":"q-1","answer":{}}`,
		"answers[0].token": `{"request":"q-1","answer":{"text":"Rome","token":"t"}}`, "answers[0].answer.parts": `{"request":"q-1","answer":{"text":"Rome","parts":[{"type":"file","file":{"session":"s","name":"a.txt","media_type":"text/plain","size":1,"digest":"` + strings.Repeat("0f", 32) + `"}}]}}`,
	} {
		_, refusal := DecodeStart([]byte(`{"agent":"payer","import":"` + digest + `","answers":[` + answers + `]}`))
		require.ErrorIs(t, refusal, agent.CodeInvalidInput, answers)
		require.Equal(t, path, refusal.Path, refusal)
	}
	_, refusal = DecodeStart([]byte(`{"agent":"payer","input":{"text":"go"},"answers":[{"request":"q-1","answer":{"text":"Rome"}}]}`))
	require.ErrorIs(t, refusal, agent.CodeInvalidInput, "a new run has asked nothing")
	require.Equal(t, "answers", refusal.Path)
	for _, wrong := range []string{"x", strings.ToUpper(digest), digest + "0", "../" + digest[3:]} {
		_, refusal := DecodeStart([]byte(`{"agent":"payer","import":"` + wrong + `"}`))
		require.ErrorIs(t, refusal, agent.CodeInvalidInput, wrong)
	}
}
