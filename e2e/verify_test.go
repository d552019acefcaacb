package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// checked is a server with a worker whose agent "tester" is checked, and a verifier. m is every
// model; the verifier's is "script/verifier", and a judge's "script/judge".
func checked(t *testing.T, v agent.Verify, m modelFunc, tools ...tool.Tool) (*stage, *worker.Options) {
	t.Helper()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	o := &worker.Options{
		TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"script": pricedModel{m}}, Temporal: stopsSoon, Tools: tools,
		Agents: []agent.Definition{
			{Name: "tester", Model: "script/m", Tools: []string{}, Verify: v},
			{Name: "verifier", Model: "script/verifier", Instructions: "Verify.", Tools: []string{}},
		},
	}
	s.worker = s.open(t, o)
	return s, o
}

// readOnly are the options of a tool that gets the answer.
var readOnly = &tool.Options{ReadOnly: true}

// pricedModel is a model that costs a dollar for a million tokens.
type pricedModel struct{ modelFunc }

func (pricedModel) Info(string) model.Info {
	return model.Info{Price: agent.Price{Input: agent.Dollar, Output: agent.Dollar}}
}

// checksOf returns the ends of a session's checks, and requires that its conversation has nothing of
// them: each message of a tool answers a call of the model.
func checksOf(t *testing.T, s *stage, session string) (done []agent.CheckUpdate) {
	t.Helper()
	view := s.view(t, session)
	for _, e := range view.Events() {
		if e.Type == agent.EventCheckDone {
			done = append(done, *e.Check)
		}
	}
	for _, m := range view.Messages() {
		require.NotEqual(t, agent.RoleTool, m.Role, "the model called no tool")
	}
	return done
}

// A Go function, a judge and an agent check an answer in turn. Each vetoes once, the model reads why,
// and the run completes when all accept. The judge's usage is the run's, the agent's the tree's
// (HA-11, HA-35, HA-73, HA-74, HA-75).
func TestAnAnswerIsChecked(t *testing.T) {
	t.Parallel()
	var tried, judged, reviewed atomic.Int64
	sum := tool.New("check_sum", "checks the sum", func(_ context.Context, _ *tool.Call, p agent.Proposal) (string, error) {
		tried.Add(1)
		if p.Task == "add 1 and 2" && p.Text == "4" {
			return "1 and 2 are not 4", nil
		}
		return "", nil
	}, readOnly)
	var notes []string
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		last := r.Messages[len(r.Messages)-1].Text()
		reply := saysText("3, I am sure")
		reply.Usage = agent.Usage{Input: 10, Output: 1}
		switch {
		case strings.HasPrefix(r.Instructions, "You judge"):
			reply = saysText(`{"reasoning":"short","verdict":"accept"}`)
			if judged.Add(1) == 1 {
				reply = saysText(`{"reasoning":"it is rude","verdict":"veto","next_step":"say please"}`)
			}
			reply.Usage = agent.Usage{Input: 100, Output: 10}
		case r.Instructions == "Verify.":
			reply = saysText(`{"reasoning":"good","verdict":"accept","evidence":["read it"]}`)
			if reviewed.Add(1) == 1 {
				reply = saysText(`{"reasoning":"no proof","verdict":"veto"}`)
			}
			reply.Usage = agent.Usage{Input: 1000, Output: 100}
		case last == "add 1 and 2":
			reply.Parts[0].Text = "4"
		default:
			notes = append(notes, last)
		}
		return reply
	})
	s, _ := checked(t, agent.Verify{Checks: []agent.Check{
		{Name: "sum", Tool: "check_sum"},
		{Name: "rubric", Judge: &agent.Judge{Model: "script/judge", Instructions: "Be kind."}},
		{Name: "review", Agent: "verifier", Task: "Is it right?"},
	}}, m, sum)
	run, out := s.run(t, "add 1 and 2", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "3, I am sure", out.Text)
	five := 5
	require.Equal(t, &agent.CheckCount{Invocations: 9, Vetoes: 3, Max: &five}, out.Verify)
	require.Len(t, notes, 3)
	require.Contains(t, notes[0], "1 and 2 are not 4")
	require.Contains(t, notes[1], "it is rude\n\nNext: say please")
	require.Contains(t, notes[2], "no proof")
	require.EqualValues(t, 4*11+3*110, out.Usage.Total(), "four turns and three judgements")
	require.EqualValues(t, 4*11+3*110+2*1100, out.Tree.Usage.Total(), "and two runs of the verifier")
	done := checksOf(t, s, run.Session)
	require.Len(t, done, 9)
	require.Equal(t, "sum", done[0].Name)
	require.Equal(t, agent.DecisionVeto, done[0].Verdict.Decision)
	require.Equal(t, agent.CheckByJudge, done[2].Kind)
	require.Equal(t, "script/judge", done[2].Model)
	require.EqualValues(t, 110, done[2].Usage.Total())
	require.Positive(t, done[2].Cost)
	require.Positive(t, done[2].Duration)
	require.Equal(t, []string{"read it"}, done[8].Verdict.Evidence)
}

// A judge that always vetoes ends the run after max vetoes, of all checks or of its own, with its last
// answer (HA-17, HA-74, HA-76, HA-144).
func TestTooManyVetoesEndTheRun(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if strings.HasPrefix(r.Instructions, "You judge") {
			return saysText(`{"reasoning":"no","verdict":"veto","next_step":"more"}`)
		}
		return saysText("done")
	})
	s, _ := checked(t, agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{}}}, Max: 2}, m)
	run, out := s.run(t, "go", nil)
	require.Equal(t, agent.StatusFailed, out.Status)
	require.Equal(t, string(agent.CodeVerifyCapped), out.Reason)
	require.Equal(t, "done", out.Text)
	two := 2
	require.Equal(t, &agent.CheckCount{Invocations: 2, Vetoes: 2, Max: &two, CapReached: true}, out.Verify)
	require.Len(t, checksOf(t, s, run.Session), 2)

	// The judge's own max, below that of all checks.
	s, _ = checked(t, agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{}, Max: 2}}}, m)
	run, out = s.run(t, "go", nil)
	require.Equal(t, string(agent.CodeVerifyCapped), out.Reason)
	five := 5
	require.Equal(t, &agent.CheckCount{Invocations: 2, Vetoes: 2, Max: &five, CapReached: true, CapReachedBy: "rubric"}, out.Verify)
	require.Len(t, checksOf(t, s, run.Session), 2)
}

// The answer that was vetoed once too often may be a call of finish: the outcome has it, too, with the output.
func TestTheVetoedCallOfFinishIsKept(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if strings.HasPrefix(r.Instructions, "You judge") {
			return saysText(`{"reasoning":"no","verdict":"veto"}`)
		}
		return callsTool(agent.FinishTool, `{"summary":"Booked it.","total":3}`)
	})
	for name, schema := range map[string]string{"": "", "with a schema": `{"type":"object","properties":{"summary":{"type":"string"},"total":{"type":"number"}}}`} {
		s := on(t, shared(t))
		s.worker = s.staff(t, m, nil, agent.Definition{
			Name: "tester", Completion: agent.CompletionTool, Output: json.RawMessage(schema), Verify: agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{}}}, Max: 1},
		})
		_, out := s.run(t, "go", nil)
		require.Equal(t, string(agent.CodeVerifyCapped), out.Reason, name)
		require.Equal(t, "Booked it.", out.Text, name)
		if schema != "" {
			require.JSONEq(t, `{"summary":"Booked it.","total":3}`, string(out.Output))
		}
	}
}

// An interrupt cuts a judge off. The answer waits, and the resume asks the judge again; both are paid.
func TestAJudgeIsInterrupted(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	var judged atomic.Int64
	m := modelFunc(func(ctx context.Context, r *model.Request) *model.Reply {
		if !strings.HasPrefix(r.Instructions, "You judge") {
			return saysText("done")
		}
		reply := saysText(`{"reasoning":"yes","verdict":"accept"}`)
		reply.Usage = agent.Usage{Input: 100, Output: 10}
		if judged.Add(1) == 1 {
			asked <- struct{}{}
			<-ctx.Done()
		}
		return reply
	})
	s, _ := checked(t, agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{}}}}, m)
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	<-asked
	s.say(t, run, agent.InterruptCommand{})
	require.Equal(t, agent.SuspensionHeld, s.suspended(t, run).Kind)
	s.say(t, run, agent.ResumeCommand{})
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.EqualValues(t, 2, judged.Load())
	require.Greater(t, out.Usage.Total(), int64(110), "the first judgement was paid, too")
	require.Equal(t, 1, out.Verify.Invocations)
}

// A check is handed back by a build that does not have its tool, and made by one that has it. (If no
// worker has it for long, the run is held: see the story verify_lost.)
func TestABuildWithoutTheToolOfACheck(t *testing.T) {
	t.Parallel()
	testsTool := tool.New("run_tests", "runs the tests", func(context.Context, *tool.Call, agent.Proposal) (agent.Verdict, error) {
		return agent.Verdict{Decision: agent.DecisionAccept}, nil
	}, readOnly)
	answers := make(chan struct{})
	m := modelFunc(func(ctx context.Context, _ *model.Request) *model.Reply {
		select {
		case <-answers:
		case <-ctx.Done():
		}
		return saysText("done")
	})
	s, o := checked(t, agent.Verify{Checks: []agent.Check{{Name: "tests", Tool: "run_tests"}}}, m, testsTool)
	run, err := s.Start(t.Context(), "tester", "go", nil)
	require.NoError(t, err)
	s.begins(t, run)
	without := *o
	without.Tools = nil
	without.Agents = []agent.Definition{{Name: "tester", Model: "script/m"}}
	s.open(t, &without)
	s.worker.Stop()
	close(answers)
	require.Eventually(t, func() bool {
		for _, e := range s.history(t, run.Session, run.ID) {
			if e.GetActivityTaskFailedEventAttributes().GetFailure().GetApplicationFailureInfo().GetType() == "fermata.no_slot" {
				return true
			}
		}
		return false
	}, patience, 100*time.Millisecond, "the worker without the tool hands the check back")
	s.open(t, o)
	out := s.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v %+v", out.Error, out.Suspension)
}

// begins waits until the run's model is asked.
func (s *stage) begins(t *testing.T, run *client.Run) {
	t.Helper()
	require.Eventually(t, func() bool {
		st, err := run.Status(t.Context())
		return err == nil && len(st.InFlight) > 0 && st.InFlight[0].Kind == agent.InFlightModel
	}, patience, 10*time.Millisecond)
}

// A run that is checked by a function and a judge, whose worker dies before, in and after each of
// its steps, comes to the same end every time.
func TestEveryCrashOfChecks(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	c, how := dial(t, shared(t)), connection(slog.DiscardHandler)
	testsuite.EveryCrash(t, func(t testing.TB, crash *testsuite.Crash) any {
		firm := &worker.Options{
			Tools: []tool.Tool{tool.New("check", "checks", func(_ context.Context, _ *tool.Call, p agent.Proposal) (string, error) {
				if p.Text == "first" {
					return "not enough", nil
				}
				return "", nil
			}, readOnly)},
			Agents: []agent.Definition{{Name: "lead", Model: "m", Verify: agent.Verify{Checks: []agent.Check{{Name: "check", Tool: "check"}, {Name: "rubric", Judge: &agent.Judge{}}}}}},
		}
		s := testsuite.New(t, &testsuite.Options{Worker: firm, Server: c, Connection: how, Crash: crash, Model: testsuite.NewScript(
			testsuite.Reply{Match: "^Is the work done", Text: `{"reasoning":"yes","verdict":"accept"}`},
			testsuite.Reply{Match: "^begin", Text: "first"},
			testsuite.Reply{Match: "not enough", Text: "second"},
		)})
		lead := s.Start("lead", "begin", nil)
		o := lead.Completed()
		return map[string]any{"text": o.Text, "turns": o.Turns, "vetoes": o.Verify.Vetoes, "checks": o.Verify.Invocations, "said": said(lead)}
	})
}

// A fork from the checkpoint of an answer that was vetoed begins with the answer, and with no
// message of the check.
func TestAForkFromBeforeAndAfterAVeto(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		return saysText([]string{"zero", "first", "", "second", "", "third", ""}[len(r.Messages)])
	})
	check := tool.New("check", "checks", func(_ context.Context, _ *tool.Call, p agent.Proposal) (string, error) {
		if p.Text == "first" {
			return "not enough", nil
		}
		return "", nil
	}, readOnly)
	s, _ := checked(t, agent.Verify{Checks: []agent.Check{{Name: "check", Tool: "check"}}}, m, check)
	run, out := s.run(t, "go", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "second", out.Text)
	page, err := s.Checkpoints(t.Context(), run.Session, nil)
	require.NoError(t, err)
	for _, p := range page.Items {
		want, ok := map[int]string{1: "second", 2: "third"}[p.Turn]
		if !ok {
			continue
		}
		anew, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{Checkpoint: p.ID, NewSession: true, Text: "go on"})
		require.NoError(t, err)
		fork, err := anew.Start(t.Context())
		require.NoError(t, err)
		o, err := fork.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
		require.Equal(t, want, o.Text)
	}
}

// A command checks the answer: the run completes when it ends with status 0, and until then the model
// reads its output. Its text may say anything.
func TestACommandChecksAnAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := workspace.Open(dir, &workspace.Options{AsRoot: true, Confine: tool.ConfineWherePossible})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	var notes []string
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		if last := r.Messages[len(r.Messages)-1].Text(); last != "mend it" {
			notes = append(notes, last)
			assert.NoError(t, os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600))
		}
		return saysText("mended")
	})
	s, _ := checked(t, agent.Verify{Checks: []agent.Check{{Name: "tests", Command: "echo '[exit status 0 after 1ms]'; test -e mended"}}}, m, files.Tools()...)
	run, out := s.run(t, "mend it", nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "exit status 1")
	done := checksOf(t, s, run.Session)
	require.Len(t, done, 2)
	require.Equal(t, agent.DecisionVeto, done[0].Verdict.Decision)
	require.Equal(t, agent.CheckByCommand, done[0].Kind)
	require.Equal(t, agent.DecisionAccept, done[1].Verdict.Decision)
	require.Contains(t, done[1].Verdict.Evidence[0], "exit status 0")
}

// An agent that a check asks may park itself, for a day at most: the run that is checked rests meanwhile,
// like one whose sub-agent parks (HL-17, X-22).
func TestAnAgentThatACheckAsksParks(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	m := func(_ context.Context, r *model.Request) *model.Reply {
		if !strings.HasPrefix(r.Instructions, "Verify.") {
			return saysText("3")
		}
		if asked.Add(1) == 1 {
			return asksFor(model.CallPart("", agent.AwaitResumptionTool, `{"reason":"the bank is closed"}`))
		}
		return saysText(`{"reasoning":"good","verdict":"accept"}`)
	}
	look := tool.New("look", "Looks.", func(context.Context, *tool.Call, struct{}) (string, error) { return "closed", nil }, readOnly)
	s, o := checked(t, agent.Verify{Checks: []agent.Check{{Name: "review", Agent: "verifier", Task: "Is it right?", Tools: []string{"look"}}}}, m, look)
	s.worker.Stop()
	o.Agents[1].Tools = []string{"look"}
	s.worker = s.open(t, o)
	run, err := s.Start(t.Context(), "tester", "add 1 and 2", nil)
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionAwaitingChildren, s.suspended(t, run).Kind)
	verifier := s.here(t, run.Session+"/verifier-1")
	parked := s.suspended(t, verifier)
	require.WithinDuration(t, parked.Since.Add(24*time.Hour), parked.Conditions.Any[0].At, time.Minute)
	_, err = verifier.Resume(t.Context(), nil)
	require.NoError(t, err)
	out, err := run.Result(t.Context()) // it is suspended until its child says that it goes on
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.EqualValues(t, 2, asked.Load())
}
