package e2e

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// once is a model that calls the tool that its task names, with the arguments behind
// the name, and then is done.
func once(_ context.Context, req *model.Request) *model.Reply {
	if len(req.Messages) > 1 {
		return saysText("done")
	}
	name, arguments, _ := strings.Cut(req.Messages[0].Text(), " ")
	return asksFor(model.CallPart("", name, arguments))
}

// odd are tools that give, keep, tell or take too much. One says that it stays.
func odd(staying chan<- struct{}, gate <-chan struct{}) []tool.Tool {
	fake := func(name string, do func(context.Context, *tool.Call) (string, error), o *tool.Options) tool.Tool {
		return tool.New(name, "is odd", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) { return do(ctx, c) }, o)
	}
	return []tool.Tool{
		fake("give", func(context.Context, *tool.Call) (string, error) { return strings.Repeat("x", fiveMB), nil }, nil),
		fake("give_at_once", func(context.Context, *tool.Call) (string, error) { return strings.Repeat("x\x00", fiveMB), nil }, &tool.Options{Local: true}),
		fake("fail", func(context.Context, *tool.Call) (string, error) { return "", errors.New(strings.Repeat("x", fiveMB)) }, &tool.Options{Attempts: 2}),
		fake("keep", func(_ context.Context, c *tool.Call) (string, error) {
			return "kept", tool.Key[string]("all").Set(c, strings.Repeat("x", fiveMB))
		}, nil),
		fake("tell", func(_ context.Context, c *tool.Call) (string, error) {
			for i := range 50_000 {
				c.Progress("%d", i)
			}
			return "told", nil
		}, nil),
		fake("stay", func(context.Context, *tool.Call) (string, error) {
			staying <- struct{}{}
			<-gate // whatever its context says
			return "at last", nil
		}, nil),
		fake("outstay", func(context.Context, *tool.Call) (string, error) { <-gate; return "at last", nil }, &tool.Options{Timeout: time.Second}),
	}
}

// What tools give is cut, and said so; what one sets beyond the session's bound is
// not kept, and said so; one that does not come back holds nobody.
func TestHostileTools(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	s, staying, gate := hostile(t), make(chan struct{}, 10), make(chan struct{})
	files, err := workspace.Open(t.TempDir(), &workspace.Options{AsRoot: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	def := agent.Definition{Name: "tester"}
	tools := append(odd(staying, gate), files.Tools()...)
	for _, tl := range tools {
		def.Tools = append(def.Tools, tl.Spec().Name)
	}
	s.startWorker(t, once, tools, def)
	t.Cleanup(func() { close(gate) }) // before the worker stops
	begun := map[string]*client.Run{}
	for _, task := range []string{"give {}", "give_at_once {}", "fail {}", "keep {}", "tell {}", "stay {}", "outstay {}", `shell_run {"command":"yes","timeout_seconds":2}`} {
		name, _, _ := strings.Cut(task, " ")
		begun[name] = s.begin(t, task, nil)
	}
	stay := begun["stay"]
	select {
	case <-staying:
	case <-time.After(patience):
		require.Fail(t, "the tool is called")
	}
	_, err = signals.Update(t.Context(), s.temporal, stay.Session, agent.InterruptCommand{Reason: "enough", Grace: agent.Duration(time.Second)})
	require.NoError(t, err)
	s.suspended(t, stay)
	_, err = stay.Resume(t.Context(), nil)
	require.NoError(t, err)
	for name, want := range map[string]struct {
		status agent.CallStatus
		says   string
	}{
		"give":         {agent.CallOK, "[cut here: the result has 5242880 bytes"},
		"give_at_once": {agent.CallOK, "[cut here: the result has"},
		"fail":         {agent.CallFailed, "[cut here: the result has 5242880 bytes"},
		"keep":         {agent.CallFailed, "5242885 bytes of the session's state; at most 65536 are taken"},
		"tell":         {agent.CallOK, "told"},
		"stay":         {agent.CallUnknown, "Unknown outcome"},
		"outstay":      {agent.CallUnknown, "Unknown outcome: it took longer than it may"},
		"shell_run":    {agent.CallOK, "bytes left out"},
	} {
		s.ends(t, begun[name], agent.StatusCompleted)
		got := s.results(t, begun[name])
		require.Len(t, got, 1, name)
		require.Contains(t, got[0].Text, want.says, name)
		require.Equal(t, want.status, got[0].Status, name)
		require.Less(t, len(got[0].Text), 129<<10, name)
	}
}

// An agent that gives work to itself is told where it ends: eight below one another,
// and a name of 255 bytes.
func TestHostileDescent(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s := hostile(t)
	long := strings.Repeat("n", 32)
	delegate := func(_ context.Context, req *model.Request) *model.Reply {
		if len(req.Messages) > 1 {
			return saysText("done: " + req.Messages[2].Parts[0].Result.Text)
		}
		name := req.Messages[0].Text()
		return asksFor(model.CallPart("", "subagent__"+name, fmt.Sprintf(`{"task":%q}`, name)))
	}
	s.startWorker(t, delegate, nil,
		agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "tester"}, {Agent: long}}},
		agent.Definition{Name: long, Agents: []agent.SubAgent{{Agent: long}}})
	for name, want := range map[string]struct {
		below int
		says  string
	}{"tester": {8, "as many agents stand below one another as limits.depth allows"}, long: {4, "longer than 255 bytes"}} {
		run := s.begin(t, name, &client.StartOptions{Session: (name + strings.Repeat("s", 100))[:100]})
		s.ends(t, run, agent.StatusCompleted)
		session := run.Session
		for range want.below {
			session = path.Join(session, name+"-1")
			messages, err := s.Transcript(t.Context(), session)
			require.NoError(t, err)
			require.Equal(t, agent.RoleAssistant, messages[len(messages)-1].Role)
		}
		require.LessOrEqual(t, len(session), 255)
		require.Contains(t, s.results(t, &client.Run{Session: session})[0].Text, want.says)
	}
}

// An agent that gives work away without end, and waits for none of it, gives so much
// of it in one turn and no more; with the agent all that works for it ends. (How many
// may work for it in all is a matter of the machine: TestNoMoreChildren.)
func TestHostileBreadth(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	const asked, most = 100, 64
	s := hostile(t)
	s.startWorker(t, func(ctx context.Context, req *model.Request) *model.Reply {
		if strings.HasPrefix(req.Messages[0].Text(), "work") {
			<-ctx.Done()
			return nil
		}
		if len(req.Messages) > 1 {
			return saysText("done")
		}
		var calls []agent.Part
		for i := range asked {
			calls = append(calls, model.CallPart("", "subagent__hand", fmt.Sprintf(`{"task":"work","context":"%d","background":true}`, i)))
		}
		return asksFor(calls...)
	}, nil, agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "hand"}}, Lifecycle: true}, agent.Definition{Name: "hand"})
	run := s.begin(t, "go", nil)
	_, count := s.ends(t, run, agent.StatusCompleted)
	require.Equal(t, most, count[agent.EventChildStarted])
	for i, r := range s.results(t, run) {
		require.Equal(t, i >= most, r.Status == agent.CallRejected, r.Text)
	}
	for i := range most {
		child, err := s.Get(t.Context(), fmt.Sprintf("%s/hand-%d", run.Session, i+1))
		require.NoError(t, err)
		require.Equal(t, agent.StatusCancelled, s.rest(t, child).Status)
	}
}

// Agents that give work to others of their kind, each of them to two, and wait for
// none of it: the first takes a stop, and with it all of them end, those too that are
// being begun.
func TestHostileSpawn(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const enough = 12
	s, many := hostile(t), make(chan struct{})
	var begun atomic.Int64
	give := func(to string) agent.Part {
		return model.CallPart("", "subagent__tester", fmt.Sprintf(`{"task":%q,"background":true}`, to))
	}
	s.startWorker(t, func(ctx context.Context, req *model.Request) *model.Reply {
		switch {
		case len(req.Tools) == 0:
			return saysText("summed up")
		case len(req.Messages) == 1:
			n := begun.Add(1)
			if n == enough {
				close(many)
			}
			if n <= enough {
				return asksFor(give("left"), give("right"))
			}
		}
		<-ctx.Done()
		return nil
	}, nil, agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "tester"}}, Lifecycle: true})
	run := s.begin(t, "go", nil)
	select {
	case <-many:
	case <-time.After(patience):
		require.Fail(t, "they are many in time")
	}
	s.stops(t, run)
	require.Eventually(t, func() bool {
		n, err := s.temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("TaskQueue = %q AND WorkflowType = %q AND ExecutionStatus = 'Running'", s.queue, signals.WorkflowType),
		})
		return err == nil && n.GetCount() == 0
	}, patience, 50*time.Millisecond)
}
