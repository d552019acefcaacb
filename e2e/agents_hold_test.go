package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/agents"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// A workflow waits for a run that is interrupted, loses its worker and asks a person. All of
// that comes from outside, by the session, and the workflow only gets the result.
func TestAWorkflowWaitsForARunThatIsHeld(t *testing.T) {
	t.Parallel()
	working := make(chan string, 2)
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		switch replies(r) {
		case 0:
			return callsTool("block", `{}`)
		case 1:
			return callsTool("ask_user", `{"question":"Which?"}`)
		}
		return saysText("the blue one")
	})
	wf := func(ctx workflow.Context, o errand) (string, error) {
		return agents.Execute[string](ctx, "picker", "pick", o.options())
	}
	h := newOwn(t, m, []tool.Tool{block(working)}, []agent.Definition{{Name: "picker", Tools: []string{"block", agent.AskUserTool}}}, wf)
	session := "pick-" + h.queue
	waiting := h.order(t, wf, errand{Queue: h.queue, Session: session})
	<-working
	run := h.started(t, session)
	h.say(t, run, agent.InterruptCommand{})
	require.Equal(t, agent.SuspensionHeld, h.suspended(t, run).Kind)
	h.fermata.Stop()
	h.open(t, h.options)
	h.say(t, run, agent.ResumeCommand{})
	s := h.suspended(t, run)
	require.Equal(t, agent.SuspensionInputRequired, s.Kind)
	var asked []client.InboxItem
	require.Eventually(t, func() bool {
		asked = nil
		for item, err := range h.Inbox(t.Context(), &client.InboxOptions{Session: session}) {
			require.NoError(t, err)
			asked = append(asked, item)
		}
		return len(asked) == 1
	}, patience, 20*time.Millisecond)
	require.Equal(t, "Which?", asked[0].Text)
	h.say(t, run, agent.AnswerCommand{Request: asked[0].ID, Text: "blue"})
	var text string
	require.NoError(t, waiting.Get(t.Context(), &text))
	require.Equal(t, "the blue one", text)
	h.replays(t, waiting)
}

// replies counts the model's own messages in a request.
func replies(r *model.Request) (n int) {
	for _, m := range r.Messages {
		if m.Role == agent.RoleAssistant {
			n++
		}
	}
	return n
}

// If a workflow is cancelled, so is the run, and a run below that. The workflow ends when they
// have ended.
func TestAWorkflowIsCancelledWithItsAgents(t *testing.T) {
	t.Parallel()
	working := make(chan string, 1)
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if r.Messages[0].Text() == "lead" {
			return callsTool("subagent__scout", `{"task":"look"}`)
		}
		return callsTool("block", `{}`)
	})
	wf := func(ctx workflow.Context, o errand) (string, error) {
		_, err := agents.Execute[string](ctx, "lead", "lead", o.options())
		var failed *agents.RunError
		if !errors.As(err, &failed) || failed.Outcome.Status != agent.StatusCancelled || !errors.Is(err, agent.CodeClosed) || !temporal.IsCanceledError(err) {
			return "", temporal.NewNonRetryableApplicationError("the run was not cancelled", "test", err)
		}
		return "", err
	}
	h := newOwn(t, m, []tool.Tool{block(working)}, []agent.Definition{
		{Name: "lead", Agents: []agent.SubAgent{{Agent: "scout", Tools: []string{"block"}}}}, {Name: "scout", Tools: []string{"block"}},
	}, wf)
	session := "lead-" + h.queue
	waiting := h.order(t, wf, errand{Queue: h.queue, Session: session})
	<-working
	run := h.started(t, session)
	nodes, err := run.Tree(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 2, "a listing finds the runs below")
	require.NoError(t, h.temporal.CancelWorkflow(t.Context(), waiting.GetID(), ""))
	require.True(t, temporal.IsCanceledError(waiting.Get(t.Context(), nil)))
	closed := func(id string) time.Time {
		d, err := h.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(t, err)
		return d.GetWorkflowExecutionInfo().GetCloseTime().AsTime()
	}
	for _, session := range []string{session, nodes[1].Session} {
		run, err := h.Get(t.Context(), session)
		require.NoError(t, err)
		require.Equal(t, agent.StatusCancelled, h.result(t, run).Status)
		require.True(t, closed(session).Before(closed(waiting.GetID())), "the run ends before the workflow")
	}
	h.replays(t, waiting)
}

// A run that is open when its workflow ends is cancelled, unless the workflow says otherwise.
func TestARunIsCancelledWithItsWorkflow(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(context.Context, *model.Request) *model.Reply {
		return callsTool("ask_user", `{"question":"Which?"}`)
	})
	wf := func(ctx workflow.Context, o errand) error {
		left := o.options()
		left.Session, left.ParentClosePolicy = o.Session+"-left", enums.PARENT_CLOSE_POLICY_ABANDON
		agents.Start[string](ctx, "picker", "pick", o.options())
		agents.Start[string](ctx, "picker", "pick", left)
		workflow.GetSignalChannel(ctx, "do").Receive(ctx, nil)
		return nil
	}
	h := newOwn(t, m, nil, []agent.Definition{{Name: "picker", Tools: []string{agent.AskUserTool}}}, wf)
	session := "pick-" + h.queue
	waiting := h.order(t, wf, errand{Queue: h.queue, Session: session})
	run, left := h.started(t, session), h.started(t, session+"-left")
	h.suspended(t, run)
	h.suspended(t, left)
	require.NoError(t, h.temporal.SignalWorkflow(t.Context(), waiting.GetID(), "", "do", nil))
	require.NoError(t, waiting.Get(t.Context(), nil))
	require.Equal(t, agent.StatusCancelled, h.result(t, run).Status)
	h.suspended(t, left)
	h.say(t, left, agent.CancelCommand{})
	require.Equal(t, agent.StatusCancelled, h.result(t, left).Status)
}

// A workflow holds its own run, answers it and stops it. It reads the handoff.
func TestAWorkflowHoldsItsAgent(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		last := r.Messages[len(r.Messages)-1]
		if strings.Contains(last.Text(), "You are being stopped") {
			return saysText(`{"summary":"it was asked twice"}`)
		}
		return callsTool("ask_user", `{"question":"Which?"}`)
	})
	wf := func(ctx workflow.Context, o errand) (string, error) {
		r := agents.Start[string](ctx, "picker", "pick", o.options())
		verbs := workflow.GetSignalChannel(ctx, "do")
		for _, c := range []agent.Command{agent.PauseCommand{Reason: "lunch"}, agent.ResumeCommand{}, agent.AnswerCommand{Request: "q-1", Text: "blue"}, agent.StopCommand{Reason: "enough"}} {
			verbs.Receive(ctx, nil)
			if err := r.Send(ctx, c); err != nil {
				return "", err
			}
		}
		s := workflow.NewSelector(ctx)
		ended := false
		s.AddFuture(r.Future(), func(workflow.Future) { ended = true })
		s.Select(ctx)
		_, err := r.Result(ctx)
		out, bad := r.Outcome(ctx)
		if !ended || bad != nil || !errors.Is(err, agent.CodeClosed) || out.Status != agent.StatusStopped || out.Handoff == nil {
			return "", temporal.NewNonRetryableApplicationError("the run was not stopped", "test", err)
		}
		return out.Handoff.Summary, nil
	}
	h := newOwn(t, m, nil, []agent.Definition{{Name: "picker", Tools: []string{agent.AskUserTool}}}, wf)
	session := "pick-" + h.queue
	waiting := h.order(t, wf, errand{Queue: h.queue, Session: session})
	do := func() { require.NoError(t, h.temporal.SignalWorkflow(t.Context(), waiting.GetID(), "", "do", nil)) }
	run := h.started(t, session)
	require.Equal(t, agent.SuspensionInputRequired, h.suspended(t, run).Kind)
	do()
	h.until(t, run, agent.EventHoldAdded)
	do()
	h.until(t, run, agent.EventHoldRemoved)
	require.Equal(t, "q-1", h.suspended(t, run).Requests[0].ID)
	do()
	require.Eventually(t, func() bool {
		st, err := run.Status(t.Context())
		return err == nil && st.Suspension != nil && len(st.Suspension.Requests) == 1 && st.Suspension.Requests[0].ID == "q-2"
	}, patience, 10*time.Millisecond)
	do()
	var text string
	require.NoError(t, waiting.Get(t.Context(), &text))
	require.Equal(t, "it was asked twice", text)
	h.replays(t, waiting)
}

// A run that continues as new stays the workflow's child: its future is ready at the run's end.
func TestAWorkflowWaitsForARunThatContinuesAsNew(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if len(r.Messages) == 1 {
			return callsTool("ask_user", `{"question":"Which?"}`)
		}
		return saysText("the blue one")
	})
	wf := func(ctx workflow.Context, o errand) (string, error) {
		return agents.Execute[string](ctx, "picker", "pick", o.options())
	}
	h := ownOn(t, early(t, 30), m, nil, []agent.Definition{{Name: "picker", Tools: []string{agent.AskUserTool}}}, wf)
	session := "pick-" + h.queue
	waiting := h.order(t, wf, errand{Queue: h.queue, Session: session})
	run := h.started(t, session)
	h.suspended(t, run)
	h.push(t, session, 2)
	h.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "blue"})
	var text string
	require.NoError(t, waiting.Get(t.Context(), &text))
	require.Equal(t, "the blue one", text)
	h.replays(t, waiting)
}
