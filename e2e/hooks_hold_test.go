package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// hook is a tool of a hook.
func hook(name string, ask func(agent.SuspensionHook) (agent.Verdict, error)) tool.Tool {
	return tool.New(name, "looks", func(_ context.Context, _ *tool.Call, h agent.SuspensionHook) (agent.Verdict, error) { return ask(h) }, readOnly)
}

func oneHook(tool string) agent.HookList {
	return agent.HookList{Checks: []agent.Check{{Name: tool, Tool: tool}}}
}

// A hook denies a pause: the run goes on, and the status says why. It allows the next pause for another
// reason. The hook after it runs when the suspension is recorded and stored; it fails, and the run stays
// suspended (HL-15, HL-16).
func TestAHookDeniesAPause(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	var asked, stored atomic.Int64
	begun := make(chan string, 4)
	letGo := make(chan struct{})
	mayStop := hook("may_stop", func(h agent.SuspensionHook) (agent.Verdict, error) {
		if asked.Add(1) == 1 {
			return agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "a payment is open"}, nil
		}
		return agent.Verdict{Decision: agent.DecisionAccept, Text: "said: " + h.Suspension.Reason}, nil
	})
	post := hook("post", func(h agent.SuspensionHook) (agent.Verdict, error) {
		if head, err := s.log().Head(context.Background(), s.queue); err == nil {
			stored.Store(head.Seq)
		}
		return agent.Verdict{}, errors.New("no network")
	})
	work := tool.New("work", "works", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		begun <- c.ID
		select {
		case <-letGo:
		case <-ctx.Done():
		}
		return "done", nil
	}, nil)
	script := testsuite.NewScript(testsuite.Reply{Calls: call("work", nil)}, testsuite.Reply{Calls: call("work", nil)}, testsuite.Reply{Text: "all done"})
	s.work(t, agent.Definition{
		Hooks: agent.Hooks{BeforeSuspension: oneHook("may_stop"), AfterSuspension: oneHook("post")},
	}, script, mayStop, post, work)
	run := s.begin(t, "go", &client.StartOptions{Session: s.queue})
	<-begun
	_, err := run.Pause(t.Context(), "lunch", nil)
	require.NoError(t, err)
	letGo <- struct{}{}
	<-begun // the next turn: the pause was denied
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusRunning, st.Status)
	require.NotNil(t, st.SuspensionDenied)
	require.Equal(t, "a payment is open", st.SuspensionDenied.Reason)
	require.Equal(t, "may_stop", st.SuspensionDenied.Hook)

	_, err = run.Pause(t.Context(), "lunch", nil)
	require.NoError(t, err)
	letGo <- struct{}{}
	w := s.suspended(t, run)
	require.Equal(t, "said: lunch", w.Reason)
	st, err = run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, st.Status)
	require.Empty(t, st.InFlight, "a run that rests has nothing in flight")
	require.Nil(t, st.SuspensionDenied)
	require.Positive(t, stored.Load(), "the suspension was stored before the hook was told")
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	o := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	var denied, failed int
	for _, k := range checksIn(t, s.log(), run.Session) {
		switch {
		case k.Point == agent.PointBeforeSuspension && k.Verdict.Decision == agent.DecisionVeto:
			denied++
		case k.Point == agent.PointAfterSuspension && k.Error != "":
			failed++
		}
	}
	require.Equal(t, []int{1, 1}, []int{denied, failed})
}

// checksIn returns the ends of the checks in a session's log.
func checksIn(t *testing.T, log *store.Log, session string) (done []agent.CheckUpdate) {
	t.Helper()
	head, err := log.Head(t.Context(), session)
	require.NoError(t, err)
	view, err := log.View(t.Context(), head.Digest)
	require.NoError(t, err)
	for _, e := range view.Events() {
		if e.Type == agent.EventCheckDone {
			done = append(done, *e.Check)
		}
	}
	return done
}

// A hook refuses a resume: whoever sent it learns why, and the run stays suspended. It allows the next
// one with other words, which the model reads. The hook after a resume is told, and can't undo it
// (HL-45).
func TestAHookRefusesAResume(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	var asked, told atomic.Int64
	gate := hook("gate", func(h agent.SuspensionHook) (agent.Verdict, error) {
		if asked.Add(1) == 1 {
			return agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "the bank is down"}, nil
		}
		return agent.Verdict{Decision: agent.DecisionAccept, Text: strings.ReplaceAll(h.Resume.Message, "500", "100")}, nil
	})
	tell := hook("tell", func(h agent.SuspensionHook) (agent.Verdict, error) {
		if h.Resumed != nil && h.Resumed.By == "bo" {
			told.Add(1)
		}
		return agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "no"}, nil
	})
	script := testsuite.NewScript(
		testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "rates"})}, testsuite.Reply{Text: "paid"},
	)
	s.work(t, agent.Definition{
		Tools: []string{agent.AwaitResumptionTool}, Hooks: agent.Hooks{BeforeResume: oneHook("gate"), AfterResume: oneHook("tell")},
	}, script, gate, tell)
	run := s.begin(t, "go", &client.StartOptions{Session: s.queue})
	was := s.suspended(t, run)
	_, err := run.Resume(t.Context(), &client.ResumeOptions{By: "bo", Message: "pay 500"})
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "the hook gate did not allow it: the bank is down")
	require.Equal(t, was.ID, s.suspended(t, run).ID, "it stays suspended")
	resumed, err := run.Resume(t.Context(), &client.ResumeOptions{By: "bo", Message: "pay 500"})
	require.NoError(t, err)
	require.Equal(t, agent.StatusRunning, resumed.Ack.Status)
	o := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.EqualValues(t, 1, told.Load())
	last := script.Requests()[1].Messages
	require.Contains(t, fmt.Sprint(last), "pay 100")
	require.NotContains(t, fmt.Sprint(last), "pay 500")
}

// hookEnv makes this test binary a worker that kills itself in its hook before a resume.
const hookEnv = "FERMATA_E2E_HOOK" // ADDR|QUEUE|DIR

func gated(s store.Store, queue string, ask func() error) *worker.Options {
	script := testsuite.NewScript(testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "rates"})}, testsuite.Reply{Text: "paid"})
	gate := tool.New("gate", "looks", func(context.Context, *tool.Call, agent.SuspensionHook) (string, error) { return "", ask() }, readOnly)
	hooks := agent.Hooks{BeforeResume: agent.HookList{Checks: []agent.Check{{Name: "gate", Tool: "gate", Timeout: agent.Duration(2e9)}}}}
	return &worker.Options{
		TaskQueue: queue, Store: s, Logger: zap.NewNop(), Models: map[string]model.Model{"script": script}, Temporal: stopsSoon, Tools: []tool.Tool{gate},
		Agents: []agent.Definition{{Name: "gated", Model: "script", Tools: []string{agent.AwaitResumptionTool}, Hooks: hooks}},
	}
}

func gateUntilKilled(spec string) error {
	f := strings.Split(spec, "|")
	c, err := remote(f[0]).Dial(context.Background(), connection(slog.DiscardHandler))
	if err != nil {
		return err
	}
	st, _, err := openStore(f[2])
	if err != nil {
		return err
	}
	return workFor(c, gated(st, f[1], func() error { killSelf(); return nil }))
}

// A worker is killed with -9 in a hook before a resume. The resume waits, the next worker asks the hook
// again, and whoever sent the resume gets the answer (HL-45).
func TestAWorkerKilledInAHookBeforeAResume(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	dir := filepath.Join(t.TempDir(), "store")
	st := stored(t, dir)
	cl := client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: st})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hookEnv+"="+strings.Join([]string{s.addr, s.queue, dir}, "|"))
	ended := ready(t, cmd)
	run, err := cl.Start(t.Context(), "gated", "go", &client.StartOptions{Session: s.queue})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := run.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, agent.StatusSuspended, o.Status)
	type answer struct {
		run *client.ResumedRun
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		resumed, err := run.Resume(ctx, &client.ResumeOptions{Message: "go on"})
		answered <- answer{resumed, err}
	}()
	<-ended
	var asked atomic.Int64
	w, err := worker.New(s.temporal, gated(st, s.queue, func() error { asked.Add(1); return nil }))
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	a := <-answered
	require.NoError(t, a.err)
	require.Equal(t, agent.EffectAccepted, a.run.Ack.Effect)
	out, err := run.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
	require.EqualValues(t, 1, asked.Load())
}

// An agent leaves out the note that its model reads after a suspension: the first request after it has
// the message alone (HL-37).
func TestTheNoteAfterASuspensionIsLeftOut(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	for text, told := range map[string]bool{"": true, agent.NoText: false} {
		script := testsuite.NewScript(testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "rates"})}, testsuite.Reply{Text: "paid"})
		def := agent.Definition{Tools: []string{agent.AwaitResumptionTool}}
		if text != "" {
			def.Texts = map[agent.TextName]string{agent.TextResumeNote: text}
		}
		w := s.work(t, def, script)
		run := s.begin(t, "go", &client.StartOptions{Session: fmt.Sprintf("%s-%t", s.queue, told)})
		s.suspended(t, run)
		_, err := run.Resume(t.Context(), &client.ResumeOptions{Message: "go on"})
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
		asked := fmt.Sprint(script.Requests()[1].Messages)
		require.Contains(t, asked, "go on")
		require.Equal(t, told, strings.Contains(asked, "You were suspended at turn 1"))
		w.Stop()
	}
}
