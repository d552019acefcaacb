package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// What can't name a session is refused before a server is asked, and not repeated at length.
func TestPathsOfSessions(t *testing.T) {
	for _, path := range []string{"s", "order-118", "trip:42.a", "s/payer-1", "s/payer-1/clerk-2"} {
		require.NoError(t, checkPath(path), path)
	}
	for _, path := range []string{"", "/", "s/", "/s", "a\nb", "s//a-1", "s/a b", "-s", strings.Repeat("x", 5000)} {
		err := checkPath(path)
		require.ErrorIs(t, err, agent.CodeInvalidInput, "%q", path)
		require.Less(t, len(err.Error()), 300)
	}
}
