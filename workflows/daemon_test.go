package workflows_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// daemon starts the agent without an input.
func (b *bench) daemon(t *testing.T) *agent.Outcome {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(agent.Start{Agent: "tester"})
	require.NoError(t, err)
	b.play(payload)
	return b.outcome(t)
}

// A daemon wakes by its interval until its watchdog finds that it does nothing; a
// rest of days is carried over once each time (HA-91, HA-93).
func TestADaemonsInterval(t *testing.T) {
	b := setup(t, agent.Definition{Daemon: &agent.Daemon{Every: agent.Duration(48 * time.Hour), Watchdog: 3}, Limits: agent.Limits{WallClock: agent.Duration(time.Hour)}},
		testsuite.NewScript(testsuite.Reply{Text: "nothing new", Repeat: 9}))
	begun := b.Now()
	b.after(47*time.Hour, func() {
		s := b.status(t)
		require.Equal(t, agent.StatusSuspended, s.Status)
		require.Equal(t, begun.Add(48*time.Hour).UTC().Truncate(time.Minute), s.Suspension.Expires.Truncate(time.Minute))
	})
	o := b.daemon(t)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, agent.ReasonWatchdog, o.Reason)
	require.Equal(t, 3, o.Turns)
	require.Equal(t, 144*time.Hour, b.Now().Sub(begun).Round(time.Minute))
	require.Equal(t, 3, b.executions, "each rest goes on in a new execution, once")
}

// An event too many is refused and shown so, since it came as a signal; what was
// taken is dealt with, one event after the other. The status has what is queued, and how much may
// be; an idle daemon's has when it wakes (HL-111).
func TestADaemonsQueue(t *testing.T) {
	b := setup(t, agent.Definition{Daemon: &agent.Daemon{Queue: 2, Every: agent.Duration(time.Hour)}}, testsuite.NewScript(testsuite.Reply{Text: "seen", Repeat: 9}))
	begun := b.Now()
	b.after(time.Minute, func() {
		b.signal("pause", `{}`)
		for n := range 3 {
			b.signal("emit", fmt.Sprintf(`{"topic":"t","id":"e-%d","payload":%d}`, n, n))
		}
	})
	b.after(2*time.Minute, func() {
		s := b.status(t)
		require.Equal(t, &agent.Used[int]{Used: 2, Max: 2}, s.QueuedEvents)
		require.Len(t, s.Refused, 1)
		require.ErrorIs(t, s.Refused[0].Error, agent.CodeQueueFull)
		b.signal("resume", `{}`)
	})
	b.after(3*time.Minute, func() {
		s := b.status(t)
		require.Equal(t, agent.StatusSuspended, s.Status)
		require.Zero(t, s.QueuedEvents.Used)
		require.Equal(t, 62*time.Minute, s.Suspension.Expires.Sub(begun).Round(time.Minute), "it wakes an hour after its last turn")
		b.signal("cancel", `{}`)
	})
	require.Equal(t, agent.StatusCancelled, b.daemon(t).Status)
	asked := b.script.Requests()
	require.Len(t, asked, 2)
	require.Equal(t, "Event t: 0", asked[0].Messages[0].Text())
	require.Equal(t, "Event t: 1", asked[1].Messages[2].Text())
}

// A tick that can't be meant fails, with the field.
func TestATickThatCantBeMeant(t *testing.T) {
	b := setup(t, agent.Definition{}, testsuite.NewScript())
	b.ExecuteWorkflow(signals.TickType, json.RawMessage(`{"session":"desk","agent":"tester"}`))
	require.ErrorContains(t, b.GetWorkflowError(), "tick refused: set exactly one of text and topic")
}
