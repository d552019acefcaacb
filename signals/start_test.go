package signals

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A start's by decides whose memory a session has. So it is short enough to be kept whole, and nobody
// can claim the name of those who give none. An import says by, too.
func TestWhoStarts(t *testing.T) {
	imported := `,"import":"` + strings.Repeat("0f", 16) + "-" + strings.Repeat("0f", 32) + `"`
	for _, rest := range []string{`,"input":{"text":"go"}`, imported} {
		for _, by := range []string{"ana@acme.com", strings.Repeat("b", 256), "anonymous@acme.com"} {
			start, refusal := DecodeStart([]byte(`{"agent":"payer","by":"` + by + `"` + rest + `}`))
			require.Nil(t, refusal, by)
			require.Equal(t, by, start.By)
		}
		for _, by := range []string{strings.Repeat("b", 257), agent.AnonymousPrincipal} {
			_, refusal := DecodeStart([]byte(`{"agent":"payer","by":"` + by + `"` + rest + `}`))
			require.ErrorIs(t, refusal, agent.CodeInvalidInput, by)
			require.Equal(t, "by", refusal.Path)
		}
	}
}
