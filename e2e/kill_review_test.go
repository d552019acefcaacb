package e2e

import (
	"context"
	"encoding/json"
	"fmt"
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

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// reviewKills are steps of the review in their order: activities of the flow's session and those of
// its reviewers, and requests. Those of the first list are of a review in which other reviewers
// are fast. They come first since a lost model call takes longest to be noticed.
var reviewKills = []struct{ fast, steps []string }{
	{[]string{"security", "naming", "docs"}, []string{"fermata.model/reviewer-4#1", "fermata.model/reviewer-5#1"}},
	{[]string{"security", "tests", "performance"}, []string{
		"fermata.flow#1", // asks for the reviewers
		"fermata.model/reviewer-1#1", "fermata.model/reviewer-2#1", "fermata.model/reviewer-3#1", "fermata.model/reviewer-4#1", "fermata.model/reviewer-5#1",
		"fermata.flow#2", // knows the first finding
		"fermata.flow#4", // has its quorum: drops two reviewers, and asks the author
		"fermata.seal#1", // the run is suspended
		askedAuthor,
		"fermata.flow#5", // asks for the approval
		askedMerge,
		"fermata.flow#6", // merges
		"fermata.tool#1",
		"fermata.flow#7", // reports
		"fermata.seal#3", // the run ends
	}},
}

const (
	askedAuthor = "author"
	askedMerge  = "approve"
	mergeStep   = "fermata.tool#1"
)

// The flow of examples/review, whose worker process is killed with -9 before, in and after each of
// its steps, comes to the same report every time. It asks the author once and for one approval,
// starts each reviewer once and merges once. What was done before the kill is not done again.
func TestEveryCrashOfAReview(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	c := dial(t, shared(t))
	var all sync.WaitGroup
	free := make(chan struct{}, 40) // each has a process
	for _, of := range reviewKills {
		calm := &reviewKill{Fast: of.fast}
		want := calm.play(t, c)
		require.Subset(t, append(calm.noted(t, "steps"), askedAuthor, askedMerge), of.steps)
		for _, step := range of.steps {
			for _, when := range []testsuite.CrashPoint{testsuite.CrashBefore, testsuite.CrashDuring, testsuite.CrashAfter} {
				if when == testsuite.CrashBefore && !strings.HasPrefix(step, "fermata.") {
					continue // before a request is the step that asks
				}
				k := &reviewKill{Fast: of.fast, Step: step, When: when}
				free <- struct{}{}
				all.Go(func() {
					defer func() { <-free }()
					t.Run(fmt.Sprintf("%s %s, with %s", when, step, of.fast), func(t *testing.T) {
						require.Equal(t, want, k.play(t, c))
						k.check(t)
					})
				})
			}
		}
	}
	all.Wait()
}

// reviewKill is a run of the flow, and at which moment its worker process dies.
type reviewKill struct {
	Addr, Dir, Session string
	// Fast are the aspects whose reviewers answer, one after the other. The flow goes on without
	// the others.
	Fast []string
	// Step is one of [reviewKills]; empty for a process that only notes its steps.
	Step string
	When testsuite.CrashPoint

	process *exec.Cmd
	dead    <-chan struct{} // closed when the process has died
}

// reviewed is what came of a review.
type reviewed struct {
	Report    string
	Asked     []string // requests, with the times that people have
	Answered  []string
	Reviewers map[string]int // runs by session
	Merged    int
}

// reviewEnv makes a process of this test binary a worker of the flow: a reviewKill as JSON.
const reviewEnv = "FERMATA_E2E_REVIEW"

// play runs the flow with a worker process. When that has died, a worker in this process goes on.
func (k *reviewKill) play(t *testing.T, c temporal.Client) reviewed {
	k.Addr, k.Dir, k.Session = shared(t).Addr(), t.TempDir(), "review-"+uuid.NewString()
	spec, err := json.Marshal(k)
	require.NoError(t, err)
	k.process = exec.Command(os.Args[0])
	k.process.Env = append(os.Environ(), reviewEnv+"="+string(spec))
	k.dead = ready(t, k.process)
	st := stored(t, k.Dir)
	cl := client.New(c, &client.Options{TaskQueue: k.Session, Store: st})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // lost calls are noticed after 30 s
	defer cancel()
	run, err := cl.Start(ctx, "review", `{"number":7,"diff":"+ log.Print(key)"}`, &client.StartOptions{Session: k.Session})
	require.NoError(t, err)
	var next sync.WaitGroup
	next.Go(func() {
		select {
		case <-k.dead:
		case <-ctx.Done():
			return
		}
		o := k.options(nil)
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
	k.decide(ctx, t, cl, run)
	out := k.look(t, cl, run)
	cancel()
	next.Wait()
	return out
}

// decide answers what the flow asks, until it has ended. A worker may die before it says that it
// has the answer.
func (k *reviewKill) decide(ctx context.Context, t *testing.T, cl *client.Client, run *client.Run) {
	for {
		o, err := run.Wait(ctx)
		require.NoError(t, ctx.Err())
		if err != nil {
			continue
		}
		if o.Status != agent.StatusSuspended {
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			return
		}
		for _, q := range o.Suspension.Requests {
			require.Contains(t, []string{askedAuthor, askedMerge}, q.Step, q.Text)
			if k.Step == q.Step && k.When == testsuite.CrashDuring {
				kill(k.process)
			}
			var said error
			if q.Type == agent.RequestApproval {
				_, said = cl.Approve(ctx, q, &client.ApproveOptions{By: "ben"})
			} else {
				_, said = cl.Answer(ctx, q, "It is the public one.", &client.AnswerOptions{By: "ana"})
			}
			if said == nil && k.Step == q.Step && k.When == testsuite.CrashAfter {
				kill(k.process)
			}
		}
	}
}

// look reads what came of the review.
func (k *reviewKill) look(t *testing.T, cl *client.Client, run *client.Run) reviewed {
	o, err := run.Result(t.Context())
	require.NoError(t, err)
	out := reviewed{Report: string(o.Output), Reviewers: map[string]int{}}
	for e, err := range cl.Events(t.Context(), run.Session, nil) {
		require.NoError(t, err)
		if q := e.Request; e.Type == agent.EventRequestOpened {
			out.Asked = append(out.Asked, fmt.Sprint(q.Type, " ", q.Step, " ", q.Text, q.Context, q.RemindAt.Sub(q.Opened), q.Deadline.Sub(q.Opened)))
		}
		if e.Type == agent.EventRequestAnswered {
			out.Answered = append(out.Answered, fmt.Sprint(e.Answer.Request, " ", e.Answer.Decision, " ", e.Answer.By))
		}
		if e.Child == nil {
			continue
		}
		runs, err := cl.Runs(t.Context(), e.Child.Session)
		require.NoError(t, err)
		out.Reviewers[strings.TrimPrefix(e.Child.Session, run.Session)] = len(runs)
	}
	merged := k.noted(t, "merged")
	key := agent.IdempotencyKey(run.ID, "merge")
	require.Empty(t, slices.DeleteFunc(slices.Clone(merged), func(line string) bool { return line == key }))
	out.Merged = len(slices.Compact(merged))
	return out
}

// check sees that the process was killed, and that a step whose result was stored was not made
// again.
func (k *reviewKill) check(t *testing.T) {
	select {
	case <-k.dead:
	default:
		require.Fail(t, "the worker has not died")
	}
	kill(k.process)
	require.Equal(t, "signal: killed", k.process.ProcessState.String())
	switch merges := len(k.noted(t, "merged")); {
	case k.Step == mergeStep && k.When == testsuite.CrashDuring:
		require.Equal(t, 2, merges)
	case k.Step == askedMerge && k.When == testsuite.CrashAfter: // the process may have merged before the kill
		require.LessOrEqual(t, merges, 2)
	default:
		require.Equal(t, 1, merges)
	}
	if k.When == testsuite.CrashAfter {
		again := slices.DeleteFunc(k.noted(t, "answered"), func(name string) bool { return name+"#1" != k.Step })
		require.LessOrEqual(t, len(again), 1)
	}
}

func (k *reviewKill) note(list, line string) error {
	f, err := os.OpenFile(filepath.Join(k.Dir, list), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)
	return err
}

func (k *reviewKill) noted(t *testing.T, list string) []string {
	text, err := os.ReadFile(filepath.Join(k.Dir, list))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return strings.Fields(string(text))
}
