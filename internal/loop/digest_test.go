package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever approves makes a digest with what there is: jq -cS, or JSON.stringify.
func TestADigestIsThatOfAnyOtherProgram(t *testing.T) {
	sum := sha256.Sum256([]byte(`{"command":"cd x && make > out","n":1.50}`))
	escaped, err := json.Marshal(json.RawMessage(`{"n": 1.50, "command": "cd x && make > out"}`))
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(sum[:8]), Digest(escaped))
}
