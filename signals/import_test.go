package signals

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A start that goes on with an imported run says nothing else: the run is as it was.
func TestStartsOfImports(t *testing.T) {
	digest := strings.Repeat("0f", 16) + "-" + strings.Repeat("0f", 32)
	start, refusal := DecodeStart([]byte(`{"agent":"payer","by":"ana","import":"` + digest + `","meta":{"x":1}}`))
	require.Nil(t, refusal)
	require.Equal(t, digest, start.Import)
	for _, more := range []string{
		`,"input":{"text":"go"}`, `,"carry":"reset"`, `,"limits":{"turns":5}`, `,"labels":{"a":"b"}`, `,"park":{}`, `,"from":{"checkpoint":"cp-1"}`, `,"id":"m-1"`,
	} {
		_, refusal := DecodeStart([]byte(`{"agent":"payer","import":"` + digest + `"` + more + `}`))
		require.ErrorIs(t, refusal, agent.InvalidInput, more)
		require.Equal(t, "import", refusal.Path)
	}
	for _, wrong := range []string{"x", strings.ToUpper(digest), digest + "0", "../" + digest[3:]} {
		_, refusal := DecodeStart([]byte(`{"agent":"payer","import":"` + wrong + `"}`))
		require.ErrorIs(t, refusal, agent.InvalidInput, wrong)
	}
}

// What is signed for one purpose is good for no other, whatever it begins with.
func TestMACsAreForOnePurpose(t *testing.T) {
	keys := Keys{"k1": secret, "k2": other, "short": secret[:31], "none": nil}
	sum := func(key, purpose, text string) string {
		mac, err := keys.MAC(key, purpose)
		require.NoError(t, err)
		mac.Write([]byte(text))
		return string(mac.Sum(nil))
	}
	require.Equal(t, sum("k1", "a", "bc"), sum("k1", "a", "bc"))
	require.NotEqual(t, sum("k1", "a", "bc"), sum("k1", "ab", "c"))
	require.NotEqual(t, sum("k1", "a", "bc"), sum("k2", "a", "bc"))
	for _, key := range []string{"", "unknown", "short", "none"} {
		_, err := keys.MAC(key, "a")
		require.ErrorIs(t, err, agent.InvalidInput, key)
	}
}
