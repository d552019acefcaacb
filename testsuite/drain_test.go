package testsuite_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// tally keeps the types of events.
type tally struct{ types []agent.EventType }

func (t *tally) Event(_ context.Context, e observe.RunEvent) { t.types = append(t.types, e.Event.Type) }
func (t *tally) Gap(context.Context, observe.Gap)            {}

// After Drain, an observer has received all that the runs have done.
func TestDrain(t *testing.T) {
	seen := &tally{}
	env := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Agents: []agent.Definition{{Name: "tester", Model: "m"}}, Observers: []observe.Observer{seen}},
		Model:  testsuite.NewScript(testsuite.Reply{Text: "done"}),
	})
	run := env.Start("tester", "go", nil)
	run.Completed()
	env.Drain()
	var want []agent.EventType
	for _, e := range run.Events() {
		want = append(want, e.Type)
	}
	require.Equal(t, want, seen.types)
}
