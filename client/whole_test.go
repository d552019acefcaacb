package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// awayStore is a store that can't be read.
type awayStore struct{ store.Store }

func (awayStore) Head(context.Context, string) (store.Head, error) {
	return store.Head{}, errors.New("no route to the bucket")
}

// Without a store, the whole text of a run is refused at once, and not after the run's end. If the store
// can't be read, the outcome is there beside the error.
func TestTheWholeTextThatCantBeRead(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		w, r := newWaiting(t)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_, err := r.Whole(ctx)
		require.ErrorIs(t, err, ErrNoStore)
		require.ErrorIs(t, err, agent.CodeNotSetUp)

		w.history, w.info.Status = closedHistory(), completed
		w.result = func(string) (agent.Outcome, error) {
			return agent.Outcome{Type: "outcome", Status: agent.StatusCompleted, Text: "Rome"}, nil
		}
		r.client = New(w.fake, &Options{Store: awayStore{dir}})
		whole, err := r.Whole(ctx)
		require.ErrorContains(t, err, "no route to the bucket")
		require.NotNil(t, whole)
		require.Equal(t, &Whole{Outcome: whole.Outcome}, whole)
		require.Equal(t, "Rome", whole.Outcome.Text)
	})
}
