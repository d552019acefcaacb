package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// askEnv makes a process of this test binary a worker whose flow asks within a step: an askKill as JSON.
const askEnv = "FERMATA_E2E_ASK"

// askKill is a run of that flow, and at which moment its worker process dies.
type askKill struct {
	Addr, Dir, Session string
	// At is the place in the step's code, or killedWaiting for a kill from outside.
	At string
	// Asks means that a person decides whether a step with an unknown outcome is made again.
	Asks bool

	mortal bool // the process that dies
}

const (
	killedFirst   = "before it asks"
	killedWaiting = "while it waits"
	killedSecond  = "with the answer"
	killedPaid    = "after its effect"
)

// here kills the process if this is its moment.
func (k *askKill) here(at string) {
	if k.mortal && k.At == at {
		die()
	}
}

func (k *askKill) note(line string) error {
	f, err := os.OpenFile(filepath.Join(k.Dir, "notes"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)
	return err
}

func (k *askKill) options() *worker.Options {
	o := &flow.StepOptions{OnUnknown: flow.OnUnknownAgain}
	if k.Asks {
		o = nil
	}
	match := flow.New("match", func(c flow.Context, _ string) (string, error) {
		return flow.Do(c, "match", func(_ context.Context, call *tool.Call) (string, error) {
			if err := k.note("begun"); err != nil {
				return "", err
			}
			k.here(killedFirst)
			which, err := flow.AskIn[string](call, "Which order?", nil)
			if err != nil {
				return "", err
			}
			k.here(killedSecond)
			if err := k.note("paid:" + call.Key); err != nil {
				return "", err
			}
			k.here(killedPaid)
			return "paid " + which, nil
		}, o)
	}, nil)
	return &worker.Options{TaskQueue: k.Session, Flows: []flow.Flow{match}, Logger: zap.NewNop()}
}

// askUntilKilled is the process's main function.
func askUntilKilled(spec string) error {
	k := askKill{mortal: true}
	if err := json.Unmarshal([]byte(spec), &k); err != nil {
		return err
	}
	c, err := remote(k.Addr).Dial(context.Background(), connection(slog.DiscardHandler))
	if err != nil {
		return err
	}
	o := k.options()
	if o.Store, _, err = openStore(k.Dir); err != nil { // until it is killed
		return err
	}
	return workFor(c, o)
}

// A worker process is killed with -9 in the first run of a step's code, while the step waits for a
// person, in the second run, and after its effect. The person is asked once, the answer stays, and what the
// step does has the same key (OA-04, OA-98).
func TestEveryCrashOfAStepThatAsks(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	c := dial(t, shared(t))
	for _, at := range []string{killedFirst, killedWaiting, killedSecond, killedPaid} {
		for _, asks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asks: %t", at, asks), func(t *testing.T) {
				t.Parallel()
				k := &askKill{At: at, Asks: asks}
				k.play(t, c)
			})
		}
	}
}

func (k *askKill) play(t *testing.T, c temporal.Client) {
	k.Addr, k.Dir, k.Session = shared(t).Addr(), t.TempDir(), "ask-"+uuid.NewString()
	spec, err := json.Marshal(k)
	require.NoError(t, err)
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), askEnv+"="+string(spec))
	dead := ready(t, process)
	st := stored(t, k.Dir)
	cl := client.New(c, &client.Options{TaskQueue: k.Session, Store: st})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // lost calls are noticed after 30 s
	defer cancel()
	run, err := cl.Start(ctx, "match", "go", &client.StartOptions{Session: k.Session})
	require.NoError(t, err)
	var next sync.WaitGroup
	next.Go(func() {
		select {
		case <-dead:
		case <-ctx.Done():
			return
		}
		o := k.options()
		o.Store, o.Temporal = st, stopsSoon
		w, err := worker.New(c, o)
		if err == nil {
			err = w.Start(ctx)
		}
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(w.Stop)
	})
	out := k.decide(ctx, t, cl, run, process)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "paid blue", out.Text)
	next.Wait()
	kill(process)
	require.Equal(t, "signal: killed", process.ProcessState.String())
	k.check(t, cl, run)
}

// decide answers what the flow asks, until it has ended. A worker may die before it says that it has the
// answer.
func (k *askKill) decide(ctx context.Context, t *testing.T, cl *client.Client, run *client.Run, process *exec.Cmd) *agent.Outcome {
	for {
		o, err := run.Wait(ctx)
		require.NoError(t, ctx.Err())
		if err != nil {
			continue
		}
		if o.Status != agent.StatusSuspended {
			return o
		}
		for _, q := range o.Suspension.Requests {
			text := "blue"
			if strings.HasPrefix(q.Text, "Has the step") {
				text = "again"
			} else if k.At == killedWaiting {
				kill(process)
			}
			_, _ = cl.Answer(ctx, q, text, &client.AnswerOptions{By: "ana"}) // if it was lost, it waits still
		}
	}
}

// check sees what was done, how often, and what a person was asked.
func (k *askKill) check(t *testing.T, cl *client.Client, run *client.Run) {
	text, err := os.ReadFile(filepath.Join(k.Dir, "notes"))
	require.NoError(t, err)
	var begun int
	var paid []string
	for _, line := range strings.Fields(string(text)) {
		if line == "begun" {
			begun++
			continue
		}
		paid = append(paid, line)
	}
	require.Equal(t, map[string]int{killedFirst: 3, killedWaiting: 2, killedSecond: 3, killedPaid: 3}[k.At], begun)
	require.Len(t, paid, map[string]int{killedFirst: 1, killedWaiting: 1, killedSecond: 1, killedPaid: 2}[k.At])
	require.Equal(t, []string{"paid:" + agent.IdempotencyKey(run.ID, "match")}, slices.Compact(paid))

	asked := map[string]int{}
	var answers []int
	for e, err := range cl.Events(t.Context(), run.Session, nil) {
		require.NoError(t, err)
		switch e.Type {
		case agent.EventRequestOpened:
			asked[e.Request.Text]++
		case agent.EventCallStarted:
			answers = append(answers, e.Call.Answers)
		}
	}
	require.Equal(t, 1, asked["Which order?"], "%v", asked)
	require.Equal(t, map[bool]int{true: 2, false: 1}[k.Asks && k.At != killedWaiting], len(asked), "%v", asked)
	want := map[string][]int{killedFirst: {0, 0, 1}, killedWaiting: {0, 1}, killedSecond: {0, 1, 1}, killedPaid: {0, 1, 1}}
	require.Equal(t, want[k.At], answers, "the step starts again with its answer")
}

// A fork before the step, or between its two runs, asks again, with a key of its own: people answered
// the run before. A fork after it keeps the result.
func TestAForkOfAStepThatAsks(t *testing.T) {
	t.Parallel()
	var did counts
	keys := map[string]int{}
	f := flow.New("match", func(c flow.Context, _ string) (string, error) {
		if _, err := flow.Do(c, "before", func(context.Context, *tool.Call) (int, error) { return did.add("before"), nil }, nil); err != nil {
			return "", err
		}
		which, err := flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
			did.mu.Lock()
			keys[k.Key]++
			did.mu.Unlock()
			return flow.AskIn[string](k, "Which order?", nil)
		}, nil)
		if err != nil {
			return "", err
		}
		_, err = flow.Do(c, "after", func(context.Context, *tool.Call) (int, error) { return did.add("after"), nil }, nil)
		return which, err
	}, nil)
	s, _ := flows(t, f, nil, nil)
	run, err := s.Start(t.Context(), "match", "go", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	between, err := s.Checkpoints(t.Context(), run.Session, nil)
	require.NoError(t, err)
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "blue"})
	require.Equal(t, "blue", s.rest(t, run).Text)
	s.keep(t, "flow-asks-within", run.Session, run.ID)

	fork := func(o client.ForkOptions, answer string) {
		o.NewSession = true
		next, err := s.Fork(t.Context(), run.Session, &o)
		require.NoError(t, err)
		forked, err := next.Start(t.Context())
		require.NoError(t, err)
		want := "blue"
		if answer != "" {
			asked := s.suspended(t, forked).Requests[0]
			require.Equal(t, "match", asked.Step)
			s.say(t, forked, agent.AnswerCommand{Request: asked.ID, Text: answer})
			want = answer
		}
		out := s.rest(t, forked)
		require.Equal(t, want, out.Text, "%+v", out.Error)
	}
	fork(client.ForkOptions{Redo: []string{"after"}}, "")
	require.Len(t, keys, 1)
	for _, p := range between.Items {
		fork(client.ForkOptions{Checkpoint: p.ID}, "red "+p.ID)
	}
	fork(client.ForkOptions{Redo: []string{"match"}}, "green")
	require.Len(t, keys, len(between.Items)+2)
	for key, n := range keys {
		require.Equal(t, 2, n, key)
	}
	steps, err := s.Steps(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, "match", steps[1].Path)
	require.True(t, steps[1].Answered)
	require.Equal(t, 1, steps[1].Answers)
}
