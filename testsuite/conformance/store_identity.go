package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// storeHasOneIdentity asks for the identity from many goroutines at once: one of them
// chooses it.
func storeHasOneIdentity(t testing.TB, s store.Store) {
	const askers = 8
	answers := make(chan string, askers)
	for range askers {
		go func() {
			id, err := store.ID(t.Context(), s)
			if err != nil {
				id = err.Error()
			}
			answers <- id
		}()
	}
	first := <-answers
	require.Regexp(t, "^[0-9a-f]{32}$", first)
	for range askers - 1 {
		require.Equal(t, first, <-answers)
	}
	for h, err := range s.Heads(t.Context(), "") {
		t.Fatalf("the identity is no session: %v, %v", h, err)
	}
}

// storeHasOneNamespace assigns a store to one namespace, after checks that change
// nothing.
func storeHasOneNamespace(t testing.TB, s store.Store) {
	ctx := t.Context()
	require.NoError(t, store.CheckNamespace(ctx, s, "looking"))
	require.NoError(t, store.ClaimNamespace(ctx, s, "team.a1b2c"))
	require.NoError(t, store.ClaimNamespace(ctx, s, "team.a1b2c"))
	require.NoError(t, store.CheckNamespace(ctx, s, "team.a1b2c"))
	for _, other := range []error{store.ClaimNamespace(ctx, s, "other"), store.CheckNamespace(ctx, s, "other")} {
		require.ErrorIs(t, other, agent.CodeNotSetUp)
		require.ErrorContains(t, other, `that of the namespace "team.a1b2c", and this is "other"`)
	}
	id, err := store.ID(ctx, s)
	require.NoError(t, err)
	require.Regexp(t, "^[0-9a-f]{32}$", id, "each key has its own value")
}
