package testsuite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/store"
)

// storeHasOneIdentity asks from many sides at once: of those who find none, one chooses.
func storeHasOneIdentity(t testing.TB, s store.Store) {
	const askers = 8
	told := make(chan string, askers)
	for range askers {
		go func() {
			id, err := s.ID(t.Context())
			if err != nil {
				id = err.Error()
			}
			told <- id
		}()
	}
	first := <-told
	require.Regexp(t, "^[0-9a-f]{32}$", first)
	for range askers - 1 {
		require.Equal(t, first, <-told)
	}
	for h, err := range s.Heads(t.Context(), "") {
		t.Fatalf("the identity is no session: %v, %v", h, err)
	}
}
