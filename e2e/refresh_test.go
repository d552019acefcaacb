package e2e

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// A run is parked, and a worker with other instructions, another tool and another limit is deployed. A
// resume with refresh gives the run the new instructions, and nothing else of the new agent; the log has
// their digest. Without refresh the run keeps what it began with. The session's next run has all that is
// new (PA-23).
func TestAResumeRefreshesTheInstructions(t *testing.T) {
	t.Parallel()
	for name, refresh := range map[string]bool{"with refresh": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def := agent.Definition{Instructions: "Be brief.", Tools: []string{agent.AwaitResumptionTool}, Limits: agent.Limits{Turns: 7}}
			script := testsuite.NewScript(
				testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "the shops are closed", "conditions": map[string]any{}})},
				testsuite.Reply{Text: "done"}, testsuite.Reply{Text: "done"},
			)
			s := setup(t, def, script)
			run := s.begin(t, "go", &client.StartOptions{Session: s.queue})
			s.suspended(t, run)
			s.worker.Stop()
			newer := def
			newer.Instructions, newer.Tools, newer.Limits.Turns = "Be kind.", []string{agent.AskUserTool}, 9
			s.work(t, newer, script)
			_, err := run.Resume(t.Context(), &client.ResumeOptions{Refresh: refresh, By: "ana"})
			require.NoError(t, err)
			o := s.rest(t, run)
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			want, changes := "Be brief.", []agent.InstructionsChange(nil)
			if refresh {
				want, changes = "Be kind.", []agent.InstructionsChange{agent.NewInstructions("Be kind.", "ana")}
			}
			first, last := script.Requests()[0], script.Requests()[1]
			require.Equal(t, []string{"Be brief.", want}, []string{ownPart(first), ownPart(last)})
			require.Equal(t, first.Tools, last.Tools, "the tools stay")
			require.Equal(t, changes, s.refreshed(t, run.Session))
			st, err := run.Status(t.Context())
			require.NoError(t, err)
			require.Equal(t, 7, st.Limits.Turns.Max, "the limits stay")

			_, o = s.run(t, "and now?", &client.StartOptions{Session: run.Session})
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			next := script.Requests()[2]
			require.Equal(t, "Be kind.", ownPart(next))
			require.NotEqual(t, first.Tools, next.Tools)
		})
	}
}

// ownPart returns the agent's own part of a request's instructions. The runtime's part follows it.
func ownPart(r model.Request) string {
	own, _, _ := strings.Cut(r.Instructions, "\n")
	return own
}

// refreshed returns the changes of instructions in a session's log.
func (s *stage) refreshed(t *testing.T, session string) (all []agent.InstructionsChange) {
	t.Helper()
	view := s.view(t, session)
	for _, e := range view.Events() {
		if e.Instructions != nil {
			all = append(all, *e.Instructions)
		}
	}
	return all
}

// The build that is deployed lacks the agent: a resume with refresh is refused with what the build has, and
// the run stays suspended. A build that has the agent again takes the resume. A paused
// run gets the new instructions and stays parked (PA-23).
func TestARefreshNeedsTheAgent(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	script := testsuite.NewScript(
		testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "the shops are closed", "conditions": map[string]any{}})},
		testsuite.Reply{Text: "done"},
	)
	old := agent.Definition{Instructions: "Be brief.", Tools: []string{agent.AwaitResumptionTool}}
	w := s.work(t, old, script)
	run := s.begin(t, "go", nil)
	s.suspended(t, run)
	w.Stop()
	without, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "other", Model: "script"}}, Store: s.store, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": script}, Temporal: stopsSoon,
	})
	require.NoError(t, err)
	require.NoError(t, without.Start(t.Context()))
	var stopped atomic.Bool
	t.Cleanup(func() {
		if !stopped.Load() {
			without.Stop()
		}
	})
	_, err = run.Resume(t.Context(), &client.ResumeOptions{Refresh: true})
	require.ErrorIs(t, err, agent.CodeUnknownAgent)
	require.ErrorContains(t, err, `agent "tester" is not in this worker's build; it has other`)
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, st.Status)
	stopped.Store(true)
	without.Stop()

	newer := old
	newer.Instructions = "Be kind."
	s.work(t, newer, script)
	_, err = run.Pause(t.Context(), "", nil)
	require.NoError(t, err)
	_, err = run.Resume(t.Context(), &client.ResumeOptions{Refresh: true})
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionParked, s.suspended(t, run).Kind, "it still waits")
	require.Len(t, script.Requests(), 1)
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	o := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "Be kind.", ownPart(script.Requests()[1]))
}
