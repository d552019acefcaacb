package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
)

// A reader who is connected while a session is forked in place reads which of the events it has no
// longer count, before any event that replaces them (HX-71).
func TestAConnectedReaderReadsOfAFork(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(payments(2)...), (&till{}).tool())
	run, _ := s.run(t, "pay two", nil)
	page, err := s.Checkpoints(t.Context(), run.Session, nil)
	require.NoError(t, err)
	first := page.Items[page.Total-2]

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	connected, read := make(chan bool, 1), make(chan []client.Event, 1)
	go func() {
		var list []client.Event
		for e, err := range s.Events(ctx, run.Session, &client.EventsOptions{Follow: true}) {
			if err != nil {
				break
			}
			list = append(list, e)
			if e.Type == agent.EventRunCompleted {
				if e.Run != run.ID {
					break
				}
				connected <- true
			}
		}
		read <- list
	}()
	<-connected
	anew, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{Checkpoint: first.ID})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)

	var of []agent.EventType
	for _, e := range <-read {
		if e.Run != fork.ID {
			continue
		}
		if of = append(of, e.Type); e.Type == agent.EventForked {
			require.Equal(t, first.ID, e.Forked.Checkpoint)
		}
	}
	require.Equal(t, []agent.EventType{agent.EventRunStarted, agent.EventForked}, of[:2])
	require.Contains(t, of, agent.EventMessage)
}

// A retry takes nothing out of the stream: a reader from the beginning reads the failed run as before, and then
// where the retry begins (HX-47).
func TestARetryTakesNothingOutOfTheStream(t *testing.T) {
	t.Parallel()
	replies := payments(1)
	replies[1].Fail = []testsuite.Failure{{Kind: agent.FaultBadRequest, Message: "no"}}
	s := setup(t, agent.Definition{}, testsuite.NewScript(replies...), (&till{}).tool())
	run, failed := s.run(t, "pay", nil)
	require.Equal(t, agent.StatusFailed, failed.Status)
	read := func() (all []client.Event) {
		for e, err := range s.Events(t.Context(), run.Session, nil) {
			require.NoError(t, err)
			all = append(all, e)
		}
		return all
	}
	before := read()
	anew, err := s.Retry(t.Context(), run.Session, nil)
	require.NoError(t, err)
	retry, err := anew.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, retry).Status)
	after := read()
	require.Equal(t, before, after[:len(before)])
	begun := slices.IndexFunc(after, func(e client.Event) bool { return e.Type == agent.EventForked })
	require.Greater(t, begun, len(before))
	for i, e := range after {
		require.EqualValues(t, i+1, e.Seq)
	}
}

// A suspended run's outcome names the state at that point: what the run sets later is not in it (OA-22).
func TestASuspendedOutcomeNamesItsState(t *testing.T) {
	t.Parallel()
	pay := func(amount int) testsuite.Reply {
		return testsuite.Reply{Calls: call("pay", map[string]any{"amount": amount})}
	}
	def := agent.Definition{StateVersion: 1, Tools: []string{agent.AskUserTool}}
	s := setup(t, def, testsuite.NewScript(pay(1), asks("More?"), pay(2), testsuite.Reply{Text: "done"}), (&till{}).tool())
	run := s.begin(t, "pay", nil)
	rest := s.rest(t, run)
	require.Equal(t, agent.StatusSuspended, rest.Status)
	s.say(t, run, agent.AnswerCommand{Request: rest.Suspension.Requests[0].ID, Text: "yes"})
	end := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, end.Status, "%+v", end.Error)
	for _, c := range []struct{ from, to, sum string }{{"cp-0", rest.Checkpoint, "1"}, {rest.Checkpoint, end.Checkpoint, "3"}} {
		d, err := s.Diff(t.Context(), run.Session, c.from, c.to)
		require.NoError(t, err)
		require.Equal(t, c.sum, string(d.State["sum"]), "%s to %s", c.from, c.to)
	}
}
