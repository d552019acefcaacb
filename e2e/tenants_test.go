package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// Two tenants have a namespace in common, and each a task queue, a store, and a key of the
// same id of its own. One tries what docs/security.md says that it can't: to read the other's
// runs and transcripts, to work on its queue, and to use its day.
func TestATenantStaysOutOfAnother(t *testing.T) {
	t.Chdir(t.TempDir())
	s := devserver.ForTest(t)
	acme, other := process(t, newKey(t, "k1"), s), process(t, newKey(t, "k1"), s)
	w := acme.worker(t)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	run, asked := acme.begin(t)

	seen, err := other.Get(t.Context(), run.Session)
	if err == nil {
		_, err = seen.Status(t.Context())
	}
	require.ErrorIs(t, err, agent.CodeNotSetUp, "what is in Temporal")
	require.NotContains(t, err.Error(), hushed)
	_, err = store.NewLog(other.store).Head(t.Context(), run.Session) // the very folder
	require.ErrorIs(t, err, agent.CodeChunkDamaged, "the transcript")

	works := func(queue string, daily agent.DailyLimits) (*worker.Worker, error) {
		dir, err := store.OpenDir("others", nil)
		require.NoError(t, err)
		w, err := worker.New(other.temporal, &worker.Options{
			TaskQueue: queue, Store: dir, Logger: zap.NewNop(), Temporal: stopsSoon, DailyLimits: daily,
			Agents: []agent.Definition{{Name: "lead", Model: "m"}}, Models: map[string]model.Model{"m": testsuite.NewScript(testsuite.Reply{Text: "done"})},
		})
		if err == nil {
			err = w.Start(t.Context())
		}
		return w, err
	}
	_, err = works(t.Name(), agent.DailyLimits{})
	require.ErrorIs(t, err, agent.CodeNotSetUp, "the task queue is that of another store")

	theirs, err := works(t.Name()+"-other", agent.DailyLimits{Tokens: 1})
	require.NoError(t, err)
	t.Cleanup(theirs.Stop)
	grant, err := signals.ClaimDaily(t.Context(), other.temporal, t.Name()+"-other", wire.DailyClaim{Limits: agent.DailyLimits{Tokens: 1}})
	require.NoError(t, err)
	require.EqualValues(t, 1, grant.Granted.Tokens)
	grant, err = signals.ClaimDaily(t.Context(), acme.temporal, t.Name(), wire.DailyClaim{Limits: agent.DailyLimits{Tokens: 1}})
	require.NoError(t, err)
	require.EqualValues(t, 1, grant.Granted.Tokens, "each queue has a day of its own")

	_, err = acme.Answer(t.Context(), asked, "door", nil)
	require.NoError(t, err)
	acme.rests(t, run, agent.StatusFailed)
}
