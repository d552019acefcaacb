package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// columnWaits is of a stateless run whose worker is killed while the run waits for an answer.
const columnWaits = "waits"

// sorter is the stateless agent.
const sorter = "sorter"

// addSorter gives a worker the agent, its model, and a tool that blocks at the first call of a run while
// there is the file "blocks". The agent of build "b" keeps sessions: a run stays what it began as.
func (w *policyWorld) addSorter(o *worker.Options, build string) {
	sorts := func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		if _, err := os.Stat(w.blocks()); err != nil {
			return "sorted", nil
		}
		f, err := os.OpenFile(w.reached(c.Session), os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return "sorted", nil
		} else if err != nil {
			return "", err
		}
		_ = f.Close()
		<-ctx.Done()
		return "", ctx.Err()
	}
	o.Tools = append(o.Tools, tool.New("sort", "sorts", sorts, &tool.Options{Attempts: 5}))
	o.Models[sorter] = testsuite.NewScript(turns("done", call("pay", nil), call("sort", nil), call(agent.AskUserTool, map[string]any{"question": "Go on?"}))...)
	o.Agents = append(o.Agents, agent.Definition{Name: sorter, Model: sorter, Tools: []string{"pay", "sort", agent.AskUserTool}, Stateless: build == "a"})
}

func (w *policyWorld) blocks() string { return filepath.Join(w.Dir, "blocks") }

// The worker of stateless runs is killed with -9 while a tool of one run works, and while another run waits
// for an answer. A third run is interrupted, and resumed under a build whose agent of that name keeps
// sessions. All of them come to the end of a run to which nothing happens, in one execution each, which
// replays; the killed ones have the same conversation, too. Nothing is stored, so no run can be forked or
// retried (OA-85, OA-112).
func TestEveryCrashOfAStatelessRun(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	p := newPolicies(t)
	first := p.build(t, "a")
	p.sort(t, columnCalm)
	p.answer(t, columnCalm)
	calm := p.sorted(t, columnCalm)
	cut := slices.IndexFunc(calm, func(line string) bool { return strings.HasSuffix(line, "sorted") })
	require.NoError(t, os.WriteFile(p.blocks(), nil, 0o600))
	p.sort(t, columnHold)
	p.blocked(t, columnHold)
	p.say(t, p.runs[columnHold], agent.InterruptCommand{Grace: agent.Duration(time.Second)})
	require.NotEmpty(t, p.suspended(t, p.runs[columnHold]).Holds)
	first.Stop()

	require.NoError(t, os.Remove(p.blocks()))
	doomed := p.process(t)
	p.sort(t, columnWaits)
	p.suspended(t, p.runs[columnWaits])
	require.NoError(t, os.WriteFile(p.blocks(), nil, 0o600))
	p.sort(t, columnKill)
	p.blocked(t, columnKill)
	kill(doomed)

	p.build(t, "b")
	p.say(t, p.runs[columnHold], agent.ResumeCommand{})
	for _, column := range []string{columnHold, columnKill, columnWaits} {
		t.Run(column, func(t *testing.T) {
			p.lengthen(t, column)
			p.answer(t, column)
			said := p.sorted(t, column)
			if column == columnHold { // the call that was cut off has another result
				require.Len(t, said, len(calm))
				require.Contains(t, said[cut], "The tool was interrupted")
				said[cut] = calm[cut]
			}
			require.Equal(t, calm, said)
		})
	}
	p.storesNothing(t)
	for v, err := range worker.Preflight(t.Context(), p.temporal, &worker.Options{TaskQueue: p.queue}, &worker.PreflightOptions{Closed: 100}) {
		require.NoError(t, err)
		require.NoError(t, v.Err(), v.Session)
	}
}

// sort starts a run of the stateless agent.
func (p *policies) sort(t *testing.T, column string) {
	t.Helper()
	run, err := p.Start(t.Context(), sorter, "go", nil)
	require.NoError(t, err)
	p.runs[column] = run
}

// blocked waits until a run's tool blocks.
func (p *policies) blocked(t *testing.T, column string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(p.reached(p.runs[column].Session)); return err == nil }, patience, 20*time.Millisecond, column)
}

// lengthen sends a run so many events that another agent's run would continue as new.
func (p *policies) lengthen(t *testing.T, column string) {
	t.Helper()
	for range newExecutionAt {
		require.NoError(t, signals.Signal(t.Context(), p.temporal, p.runs[column].Session, agent.EmitCommand{Topic: "nobody.waits"}))
	}
}

func (p *policies) answer(t *testing.T, column string) {
	t.Helper()
	asked := p.suspended(t, p.runs[column]).Requests
	require.Len(t, asked, 1)
	p.say(t, p.runs[column], agent.AnswerCommand{Request: asked[0].ID, Text: "yes"})
}

// sorted checks a run's end, and that nobody can continue from it. It returns the conversation.
func (p *policies) sorted(t *testing.T, column string) []string {
	t.Helper()
	run := p.runs[column]
	out := p.result(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "done", out.Text)
	n, twice := p.paidBy(run.Session)
	require.False(t, twice, "a payment was made twice")
	require.Equal(t, 1, n)
	require.Len(t, p.executions(t, run), 1)
	none := func(_ *client.PreparedRun, err error) {
		t.Helper()
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.ErrorContains(t, err, "stateless agent, which keeps no session")
	}
	none(p.Fork(t.Context(), run.Session, &client.ForkOptions{NewSession: true, Text: "fork"}))
	none(p.Retry(t.Context(), run.Session, nil))
	messages, err := p.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	return linesOf(messages, run.Session)
}

// storesNothing checks that the store is empty.
func (p *policies) storesNothing(t *testing.T) {
	t.Helper()
	for h, err := range p.dir.Heads(t.Context(), "") {
		require.NoError(t, err)
		assert.Fail(t, "the store has a head", h.Session)
	}
	for c, err := range p.dir.Chunks(t.Context(), "") {
		require.NoError(t, err)
		assert.Fail(t, "the store has a chunk", c.Name)
	}
}
