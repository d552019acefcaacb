package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// policyCalls records which build was asked by which policy of which session.
type policyCalls struct {
	mu   sync.Mutex
	list map[string][]string // "build policy", by session
}

func (l *policyCalls) add(c *tool.Call, build, policy string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list[c.Session] = append(l.list[c.Session], build+" "+policy)
}

// take returns what was recorded for a session, and forgets it.
func (l *policyCalls) take(session string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list[session]
	delete(l.list, session)
	return list
}

// hookOf is a hook around a suspension or a resume. A resume without a message is refused.
func (l *policyCalls) hookOf(build, name string) tool.Tool {
	return tool.New(name, "looks", func(_ context.Context, c *tool.Call, h agent.SuspensionHook) (agent.Verdict, error) {
		l.add(c, build, string(h.Point))
		if h.Resume != nil && h.Resume.Message == "" {
			return agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "say why"}, nil
		}
		return agent.Verdict{Decision: agent.DecisionAccept}, nil
	}, readOnly)
}

// policied are the options of a worker of a build. Only the agent of build 1 names policies.
func (s *stage) policied(build string, l *policyCalls) (*worker.Options, *testsuite.Script) {
	broken := func(context.Context, *tool.Call, struct{}) (string, error) {
		return "", errors.New("out of order")
	}
	sum := func(_ context.Context, c *tool.Call, p agent.Proposal) (string, error) {
		l.add(c, build, "sum "+p.Text)
		if p.Text == "first" {
			return "not enough", nil
		}
		return "", nil
	}
	plan := func(_ context.Context, c *tool.Call, _ agent.ProposedCalls) (string, error) {
		l.add(c, build, "plan")
		return "", nil
	}
	look := func(_ context.Context, c *tool.Call, _ agent.TurnReport) (string, error) {
		l.add(c, build, "look")
		return "", nil
	}
	def := agent.Definition{Name: "tester", Model: "script", Tools: []string{"broken", agent.AwaitResumptionTool}}
	if build == "1" {
		def.Lessons, def.Notebook = true, &agent.NotebookPolicy{}
		def.Verify = agent.Verify{Checks: []agent.Check{{Name: "sum", Tool: "sum"}}}
		def.Hooks = agent.Hooks{
			BeforeCalls:      agent.CallHooks{Checks: []agent.Check{{Name: "plan", Tool: "plan"}}},
			AfterTurn:        agent.TurnHooks{Checks: []agent.Check{{Name: "look", Tool: "look"}}},
			BeforeSuspension: oneHook("may_park"), AfterSuspension: oneHook("parked"), BeforeResume: oneHook("gate"), AfterResume: oneHook("resumed"),
		}
	}
	script := testsuite.NewScript(
		testsuite.Reply{Calls: call("broken", nil)}, testsuite.Reply{Calls: notes(map[string]any{"goals": []string{"to pay once"}})},
		testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "rates"})}, testsuite.Reply{Text: "first"}, testsuite.Reply{Text: "done"},
	)
	return &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Temporal: stopsSoon, Models: map[string]model.Model{"script": script}, Agents: []agent.Definition{def},
		Tools: []tool.Tool{
			tool.New("broken", "breaks", broken, nil), tool.New("sum", "sums", sum, readOnly), tool.New("plan", "looks", plan, readOnly), tool.New("look", "looks", look, readOnly),
			l.hookOf(build, "may_park"), l.hookOf(build, "parked"), l.hookOf(build, "gate"), l.hookOf(build, "resumed"),
		},
	}, script
}

// goesOn resumes a parked run under a build, and checks that all its policies work there.
func (f fleet) goesOn(t *testing.T, run *client.Run, l *policyCalls, build string, script *testsuite.Script) {
	t.Helper()
	_, err := run.Resume(t.Context(), nil)
	require.ErrorIs(t, err, agent.CodeDenied)
	require.Equal(t, agent.SuspensionParked, f.suspended(t, run).Kind)
	_, err = run.Resume(t.Context(), &client.ResumeOptions{Message: "They are in."})
	require.NoError(t, err)
	f.endsBy(t, run, build)
	out := f.result(t, run)
	require.Equal(t, "done", out.Text)
	require.Equal(t, 1, out.Verify.Vetoes)
	at := func(policies ...any) (list []string) {
		for _, p := range policies {
			list = append(list, fmt.Sprint(build, " ", p))
		}
		return list
	}
	require.Equal(t, at(agent.PointBeforeResume, agent.PointBeforeResume, agent.PointAfterResume, "look", "sum first", "look", "sum done"), l.take(run.Session))
	all := script.Requests()
	last := all[len(all)-1]
	for note, text := range map[agent.Note]string{agent.NoteLessons: "tool_error: ", agent.NoteNotebook: "to pay once", agent.NoteVerify: "not enough"} {
		require.True(t, hasNote(note, text)(last, policyEnd{}), "%s: %v", note, last.Messages)
	}
	require.Contains(t, offered(last), agent.NotebookTool)
}

// Two runs are parked on build 1: each has a lesson, a notebook, a check and hooks. Build 2, whose agent
// names no policy, becomes current. A run that an operator has pinned goes on under build 1, the other
// one moves, also with no worker of build 1 left. Both have all their policies (docs/deploys.md).
func TestPoliciesOfAParkedRunMoveWithTheBuild(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	f, l := fleet{s, "shop-" + uuid.NewString()[:8]}, &policyCalls{list: map[string][]string{}}
	o, before := s.policied("1", l)
	first := f.release(t, "1", o)
	moves, pinned := f.begin(t, "go", nil), f.begin(t, "go", nil)
	for _, run := range []*client.Run{moves, pinned} {
		require.Equal(t, agent.SuspensionParked, f.suspended(t, run).Kind)
		asked := l.take(run.Session)
		for _, policy := range []any{"plan", "look", agent.PointBeforeSuspension, agent.PointAfterSuspension} {
			require.True(t, slices.Contains(asked, fmt.Sprint("1 ", policy)), "%v: %v", policy, asked)
		}
	}
	f.pin(t, pinned, "1")
	o, after := s.policied("2", l)
	f.release(t, "2", o)
	f.goesOn(t, pinned, l, "1", before)
	first.Stop()
	f.goesOn(t, moves, l, "2", after)
	fresh := f.begin(t, "go", nil) // of build 2's agent, which has no policy
	require.Equal(t, agent.SuspensionParked, f.suspended(t, fresh).Kind)
	require.Empty(t, l.take(fresh.Session))
	f.say(t, fresh, agent.ResumeCommand{})
	f.endsBy(t, fresh, "2")
}
