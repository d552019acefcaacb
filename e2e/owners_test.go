package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// rescuer is the model of a lead and of its clerk. The clerk parks with the conditions. The lead waits for
// the clerk, looks at what its owner does, and resumes the clerk when that has failed.
func rescuer(conditions string) modelFunc {
	return func(_ context.Context, r *model.Request) *model.Reply {
		all := append([]string{""}, resultsIn(*r)...)
		last := all[len(all)-1]
		if r.Call.Agent == "clerk" {
			if len(r.Messages) == 1 {
				return callsTool(agent.AwaitResumptionTool, `{"reason":"the bank has to confirm","conditions":`+conditions+`}`)
			}
			heard := slices.ContainsFunc(r.Messages, func(m agent.Message) bool { return m.Text() == "the bank is closed" })
			return saysText(fmt.Sprintf("heard: %t", heard))
		}
		switch {
		case len(r.Messages) == 1:
			return callsTool("subagent__clerk", `{"task":"pay it","background":true}`)
		case strings.Contains(last, "heard:"):
			return saysText("the clerk is done")
		case strings.Contains(last, "the owner failed"):
			return callsTool("subagent_resume", `{"child":"`+r.Call.Session+`/clerk-1","input":"the bank is closed"}`)
		case strings.Contains(last, `"suspended"`) && !slices.ContainsFunc(all, func(text string) bool { return strings.HasSuffix(text, "was told to resume.") }):
			return callsTool("ask_owner", `{}`)
		case strings.Contains(last, "there is no such owner"):
			return saysText(last)
		}
		return callsTool("subagent_wait", `{}`)
	}
}

// The owner of a child's suspension fails: an event does not fit what the child waits for, or a hook
// panics, which refuses a person's resume. The parent's model reads that its child is
// suspended, resumes the child with its own tool, and the child completes its work (HL-99).
func TestTheParentResumesAChildWhoseOwnerFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conditions string
		hooks      agent.Hooks
		owner      agent.Owner
		fails      func(context.Context, *stage, *client.Run) error
		code       agent.Code
	}{
		"an event that does not fit": {
			conditions: `{"event":{"topic":"bank.confirmed","match":{"type":"object","required":["order"]}}}`, owner: agent.OwnerRuntime, code: agent.CodeStale,
			fails: func(ctx context.Context, s *stage, clerk *client.Run) error {
				_, err := s.Emit(ctx, "bank.confirmed", map[string]any{}, &client.EmitOptions{Session: clerk.Session})
				return err
			},
		},
		"a hook that panics": {
			conditions: `{}`, hooks: agent.Hooks{BeforeResume: oneHook("gate")}, owner: agent.OwnerOperator, code: agent.CodeDenied,
			fails: func(ctx context.Context, _ *stage, clerk *client.Run) error {
				_, err := clerk.Resume(ctx, &client.ResumeOptions{By: "ana"})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := on(t, shared(t))
			t.Cleanup(func() { s.replay(t) })
			gate := hook("gate", func(agent.SuspensionHook) (agent.Verdict, error) { panic("the gate is broken") })
			askOwner := tool.New("ask_owner", "asks the owner", func(ctx context.Context, call *tool.Call, _ struct{}) (string, error) {
				clerk := s.here(t, call.Session+"/clerk-1")
				w, err := clerk.Suspension(ctx)
				if err != nil || w == nil || w.Owner != c.owner {
					return "there is no such owner", err
				}
				if err = c.fails(ctx, s, clerk); agent.CodeOf(err) != c.code {
					return "there is no such owner: it has done it", err
				}
				return "the owner failed: " + err.Error(), nil
			}, nil)
			s.worker = s.staff(t, rescuer(c.conditions), []tool.Tool{gate, askOwner},
				agent.Definition{Name: "tester", Lifecycle: true, Tools: []string{"ask_owner"}, Agents: []agent.SubAgent{{Agent: "clerk", Tools: []string{"*"}}}},
				agent.Definition{Name: "clerk", Tools: []string{agent.AwaitResumptionTool}, Hooks: c.hooks})
			run, out := s.run(t, "go", nil)
			require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
			require.Equal(t, "the clerk is done", out.Text)
			clerk := s.here(t, run.Session+"/clerk-1")
			did := s.rest(t, clerk)
			require.Equal(t, agent.StatusCompleted, did.Status, "%+v", did.Error)
			require.Contains(t, did.Text, "heard: true")
			require.Equal(t, agent.Resumed{Suspension: "s-1", Cause: agent.InitiatorParent, By: "agent:" + run.Session, Mode: agent.ResumedMessage}, s.resumed(t, clerk.Session))
		})
	}
}

// helper is the model of a lead that gives its clerk work in the foreground. The clerk parks with the
// conditions. When the lead's call returns although the clerk is suspended, the lead resumes it and waits.
func helper(conditions string, early bool) modelFunc {
	return func(_ context.Context, r *model.Request) *model.Reply {
		all := append([]string{""}, resultsIn(*r)...)
		last := all[len(all)-1]
		if r.Call.Agent == "clerk" {
			if len(r.Messages) == 1 {
				return callsTool(agent.AwaitResumptionTool, `{"reason":"the bank has to confirm","conditions":`+conditions+`}`)
			}
			heard := slices.ContainsFunc(r.Messages, func(m agent.Message) bool { return m.Text() == "the bank is closed" })
			return saysText(fmt.Sprintf("heard: %t", heard))
		}
		clerk := r.Call.Session + "/clerk-1"
		offered := slices.ContainsFunc(r.Tools, func(t agent.ToolSpec) bool { return t.Name == "subagent_resume" })
		switch {
		case len(r.Messages) == 1 && offered == early:
			return callsTool("subagent__clerk", `{"task":"pay it"}`)
		case len(r.Messages) > 1 && !offered, len(r.Messages) == 1:
			return saysText(fmt.Sprintf("offered: %t", offered))
		case strings.Contains(last, "heard:"):
			return saysText(fmt.Sprintf("the clerk said it %d times", strings.Count(strings.Join(all, ""), "heard: true")))
		case len(r.Messages) == 3:
			return callsTool("subagent_resume", `{"child":"`+clerk+`","input":"the bank is closed"}`)
		}
		return callsTool("subagent_wait", `{}`)
	}
}

// The owner of a suspension fails, and the parent waits for the child in the foreground: nobody sends the
// event, and the time is over in which a person may resume the child; or a hook panics, which refuses a
// person's resume; or the hook declines for good, after a veto about one person only. The parent's call
// returns with the status suspended, and its model resumes the child, whose answer comes once (HL-99). With on_child_suspend: return, nothing has to fail.
func TestTheParentResumesAForegroundChildWhoseOwnerFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conditions string
		clerk      agent.Definition
		action     agent.ChildSuspendAction
		says       func(agent.SuspensionHook) (agent.Verdict, error) // nil panics
		meanwhile  func(*testing.T, *stage, *client.Run)
		failed     *agent.OwnerFailure
	}{
		"an event that nobody sends": {
			conditions: `{"event":{"topic":"bank.confirmed"}}`, clerk: agent.Definition{ResumeWithin: agent.Duration(time.Second)},
			failed: &agent.OwnerFailure{Owner: agent.OwnerRuntime, Code: agent.CodeExpired, Reason: "nobody resumed or answered it in the time that resume_within allows"},
		},
		"a hook that panics": {
			conditions: `{}`, clerk: agent.Definition{Hooks: agent.Hooks{BeforeResume: oneHook("gate")}},
			meanwhile: func(t *testing.T, s *stage, run *client.Run) {
				require.Equal(t, agent.SuspensionAwaitingChildren, s.suspended(t, run).Kind)
				_, err := s.here(t, run.Session+"/clerk-1").Resume(t.Context(), &client.ResumeOptions{By: "ana"})
				require.ErrorIs(t, err, agent.CodeDenied)
			},
			failed: &agent.OwnerFailure{Owner: agent.OwnerOperator, Code: agent.CodeDenied, Reason: "the hook gate did not allow a resume: The check could not be made: the tool panicked: the gate is broken"},
		},
		"a hook that declines for good": {
			conditions: `{}`, clerk: agent.Definition{Hooks: agent.Hooks{BeforeResume: oneHook("gate")}},
			says: func(h agent.SuspensionHook) (agent.Verdict, error) {
				v := agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "only ana may"}
				if h.Resume.By == "ana" {
					v.ToParent, v.Reasoning = true, "the bank is closed for good"
				}
				return v, nil
			},
			meanwhile: func(t *testing.T, s *stage, run *client.Run) {
				for _, by := range []string{"mallory", "ana"} {
					require.Equal(t, agent.SuspensionAwaitingChildren, s.suspended(t, run).Kind)
					_, err := s.here(t, run.Session+"/clerk-1").Resume(t.Context(), &client.ResumeOptions{By: by})
					require.ErrorIs(t, err, agent.CodeDenied)
				}
			},
			failed: &agent.OwnerFailure{Owner: agent.OwnerOperator, Code: agent.CodeDenied, Reason: "the hook gate did not allow a resume: the bank is closed for good"},
		},
		"on_child_suspend": {conditions: `{"event":{"topic":"bank.confirmed"}}`, action: agent.ChildSuspendReturn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := on(t, shared(t))
			t.Cleanup(func() { s.replay(t) })
			says := c.says
			if says == nil {
				says = func(agent.SuspensionHook) (agent.Verdict, error) { panic("the gate is broken") }
			}
			gate := hook("gate", says)
			lead := agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "clerk", Tools: []string{"*"}}}, OnChildSuspend: c.action}
			c.clerk.Name, c.clerk.Tools = "clerk", []string{agent.AwaitResumptionTool}
			work := func() { s.worker = s.staff(t, helper(c.conditions, c.action != ""), []tool.Tool{gate}, lead, c.clerk) }
			work()
			run := s.begin(t, "go", nil)
			if c.meanwhile != nil {
				s.suspended(t, run)
				s.worker.Stop() // another one takes the runs up
				work()
				c.meanwhile(t, s, run)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			out, err := run.Result(ctx)
			require.NoError(t, err)
			require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
			require.Equal(t, "the clerk said it 1 times", out.Text)
			require.Equal(t, 1, s.events(t, run, agent.EventChildEnded))
			clerk := run.Session + "/clerk-1"
			require.Equal(t, agent.Resumed{Suspension: "s-1", Cause: agent.InitiatorParent, By: "agent:" + run.Session, Mode: agent.ResumedMessage}, s.resumed(t, clerk))
			if c.failed == nil {
				require.Zero(t, s.events(t, run, agent.EventToolsChanged), "the model has the tools from the start")
				return
			}
			c.failed.Suspension = "s-1"
			require.Equal(t, c.failed, s.ownerFailed(t, clerk))
			require.Equal(t, agent.Resumed{Suspension: "s-1", Cause: agent.InitiatorTriggered, Mode: agent.ResumedContinue}, s.resumed(t, run.Session))
			if c.meanwhile != nil && c.says == nil {
				s.keep(t, "released-lead", run.Session, run.ID)
				s.keep(t, "released-clerk", clerk, s.here(t, clerk).ID)
			}
		})
	}
}

// ownerFailed returns why the owner of a session's suspension has failed; it fails once.
func (s *stage) ownerFailed(t *testing.T, session string) (failed *agent.OwnerFailure) {
	t.Helper()
	view := s.view(t, session)
	for _, e := range view.Events() {
		if e.OwnerFailed != nil {
			require.Nil(t, failed)
			failed = e.OwnerFailed
		}
	}
	return failed
}

// resumed returns how the first suspension in a session's log has ended.
func (s *stage) resumed(t *testing.T, session string) agent.Resumed {
	t.Helper()
	view := s.view(t, session)
	for _, e := range view.Events() {
		if e.Resumed != nil {
			r := *e.Resumed
			r.Checkpoint, r.Turn = "", 0
			return r
		}
	}
	require.FailNow(t, "no run.resumed")
	return agent.Resumed{}
}
