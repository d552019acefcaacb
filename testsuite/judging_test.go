package testsuite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// judging starts an agent with the tool read, which counts its calls, and runs it to its end.
func judging(t *testing.T, def agent.Definition, tools []tool.Tool, replies ...testsuite.Reply) (run *testsuite.Run, script *testsuite.Script, calls *[]string) {
	t.Helper()
	calls, script = &[]string{}, testsuite.NewScript(replies...)
	read := func(_ context.Context, _ *tool.Call, in struct {
		Of string `json:"of"`
	}) (string, error) {
		*calls = append(*calls, in.Of)
		return "three", nil
	}
	def.Name, def.Model, def.Tools = "reader", "anthropic/claude-sonnet-5", []string{"read"}
	s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{
		Tools: append(tools, tool.New("read", "Reads.", read, nil)), Agents: []agent.Definition{def},
	}})
	run = s.Start("reader", "Count the notes", nil)
	run.Ended()
	return run, script, calls
}

// reads is a reply that asks for a call of read.
func reads(of string) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"of": of}}}}
}

// checksDone are the checks of a run by turn, as "turn name: verdict" or "turn name: skipped, reason".
func checksDone(run *testsuite.Run) (all []string) {
	for _, e := range run.Events() {
		switch k := e.Check; {
		case e.Type != agent.EventCheckDone:
		case k.Skipped:
			all = append(all, fmt.Sprintf("%d %s: skipped, %s", e.Turn, k.Name, k.Reason))
		default:
			all = append(all, fmt.Sprintf("%d %s: %s", e.Turn, k.Name, k.Verdict.Decision))
		}
	}
	return all
}

const (
	accepts = `{"verdict":"accept","reasoning":"fine"}`
	vetoes  = `{"verdict":"veto","reasoning":"not so"}`
)

// A judge of calls whose skip names it is passed over: after its attempts, while the run repeats itself,
// and in the last turn. The calls are made then, and the log says why nobody looked. Unnamed, it looks at
// each of them (HA-79).
func TestAJudgeOfCallsIsPassedOver(t *testing.T) {
	for name, tt := range map[string]struct {
		skip    agent.Skip
		says    string
		replies []testsuite.Reply
		made    []string
		checks  []string
	}{
		"attempts": {
			agent.Skip{Attempts: 1}, vetoes, []testsuite.Reply{reads("a"), reads("b"), reads("c"), {Text: "done"}},
			[]string{"b"}, []string{"1 plan: veto", "2 plan: skipped, attempts", "3 plan: veto"},
		},
		"last turns": {
			agent.Skip{LastTurns: 2}, vetoes, []testsuite.Reply{reads("a"), reads("b"), reads("c"), reads("d")},
			[]string{"c", "d"}, []string{"1 plan: veto", "2 plan: veto", "3 plan: skipped, last_turns", "4 plan: skipped, last_turns"},
		},
		"stalled": {
			agent.Skip{Stalled: true}, accepts, []testsuite.Reply{reads("a"), reads("a"), reads("a"), {Text: "done"}},
			[]string{"a", "a", "a"}, []string{"1 plan: accept", "2 plan: accept", "3 plan: skipped, stalled"},
		},
		"stalled, and vetoed": {
			agent.Skip{Stalled: true}, vetoes, []testsuite.Reply{reads("a"), reads("a"), reads("a"), {Text: "done"}},
			nil, []string{"1 plan: veto", "2 plan: veto", "3 plan: veto"},
		},
		"nothing": {
			agent.Skip{}, vetoes, []testsuite.Reply{reads("a"), reads("a"), reads("a"), reads("b")},
			nil, []string{"1 plan: veto", "2 plan: veto", "3 plan: veto", "4 plan: veto"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, _, made := judging(t, agent.Definition{
				Limits: agent.Limits{OwnTurns: 4},
				Hooks:  agent.Hooks{BeforeCalls: agent.CallHooks{Checks: []agent.Check{{Name: "plan", Judge: &agent.Judge{}, Skip: tt.skip}}, Max: -1}},
			}, nil, append([]testsuite.Reply{{Match: "May these calls be made", Text: tt.says}}, tt.replies...)...)
			require.ElementsMatch(t, tt.made, *made)
			require.Equal(t, tt.checks, checksDone(run))
		})
	}
}

// A judge's cadence says in which turns it looks at an answer, and how often. The tool before it looks at
// each, and may say that the judge need not (HA-77).
func TestAJudgeHasACadence(t *testing.T) {
	const turns = 9
	for name, tt := range map[string]struct {
		cadence agent.Cadence
		skip    bool // the tool skips the judge in odd turns
		asked   []int
	}{
		"each answer":                  {agent.Cadence{}, false, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"every 2":                      {agent.Cadence{Every: 2, When: agent.CadenceAlways}, false, []int{2, 4, 6, 8}},
		"after 3":                      {agent.Cadence{AfterTurns: 3}, false, []int{4, 5, 6, 7, 8, 9}},
		"every 2 after 3, 2 at most":   {agent.Cadence{Every: 2, AfterTurns: 3, MaxInvocations: 2}, false, []int{4, 6}},
		"when the run repeats itself":  {agent.Cadence{When: agent.CadenceStalled}, false, nil},
		"when code says that it looks": {agent.Cadence{}, true, []int{2, 4, 6, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			decide := func(_ context.Context, _ *tool.Call, p agent.Proposal) (agent.Verdict, error) {
				v := agent.Verdict{Decision: agent.DecisionAccept}
				if tt.skip && p.Turn%2 == 1 {
					v.Skip = []string{"rubric"}
				}
				return v, nil
			}
			goOn := func(_ context.Context, _ *tool.Call, p agent.Proposal) (string, error) {
				if p.Turn < turns {
					return "Go on.", nil
				}
				return "", nil
			}
			replies := []testsuite.Reply{{Match: "Is the work done", Text: accepts}}
			for range turns {
				replies = append(replies, testsuite.Reply{Text: "an answer"})
			}
			run, _, _ := judging(t, agent.Definition{Verify: agent.Verify{Max: -1, Checks: []agent.Check{
				{Name: "decide", Tool: "decide", MaySkip: []string{"rubric"}}, {Name: "rubric", Judge: &agent.Judge{}, Cadence: tt.cadence}, {Name: "more", Tool: "more"},
			}}}, []tool.Tool{
				tool.New("decide", "Decides.", decide, &tool.Options{ReadOnly: true}), tool.New("more", "Vetoes.", goOn, &tool.Options{ReadOnly: true}),
			}, replies...)
			require.Equal(t, agent.StatusCompleted, run.Status().Status)
			var asked []int
			for _, e := range run.Events() {
				if e.Type == agent.EventCheckStarted && e.Check.Name == "rubric" {
					asked = append(asked, e.Turn)
				}
			}
			require.Equal(t, tt.asked, asked)
		})
	}
}

// A judge is asked when the model makes the same call for the third time in a row. If it accepts, the run
// completes with its last text, and the call is not made. If it vetoes, the call is made (HA-78).
func TestAJudgeEndsARunThatRepeatsItself(t *testing.T) {
	for verdict, want := range map[string]struct {
		reason, text string
		calls        int
		said         agent.Decision
	}{
		accepts: {agent.ReasonStalled, "There are three.", 2, agent.DecisionAccept},
		vetoes:  {agent.ReasonDone, "done", 3, agent.DecisionVeto},
	} {
		first := reads("notes")
		first.Text = "There are three."
		run, script, made := judging(t, agent.Definition{
			Report: true,
			Verify: agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{}, Cadence: agent.Cadence{When: agent.CadenceStalled}}}},
		}, nil, testsuite.Reply{Match: "Is the work done all the same", Text: verdict}, first, reads("notes"), reads("notes"), testsuite.Reply{Text: "done"})
		o := run.Completed()
		require.Equal(t, want.reason, o.Reason)
		require.Equal(t, want.text, o.Text)
		require.Len(t, *made, want.calls)
		require.Len(t, o.Report.JudgeDecisions, 1)
		require.Equal(t, agent.PointStalled, o.Report.JudgeDecisions[0].Trigger)
		require.Equal(t, want.said, o.Report.JudgeDecisions[0].Verdict)
		for _, r := range script.Requests() {
			if text := r.Messages[len(r.Messages)-1].Text(); len(r.Tools) == 0 {
				require.Contains(t, text, `"answer":{"text":"There are three."}`)
			}
		}
	}
}

// Code guards a run's task before a model is asked, prolongs a run once, and lets it end only when it is
// content (HA-66).
func TestCodeGuardsProlongsAndEndsARun(t *testing.T) {
	guard := func(_ context.Context, _ *tool.Call, in agent.RunTask) (string, error) {
		if in.Task == "Count the notes" {
			return "Notes are private.", nil
		}
		return "", nil
	}
	readOnly := &tool.Options{ReadOnly: true}
	run, script, _ := judging(t, agent.Definition{Hooks: agent.Hooks{BeforeRun: agent.RunHooks{Checks: []agent.Check{{Name: "guard", Tool: "guard"}}}}},
		[]tool.Tool{tool.New("guard", "Guards.", guard, readOnly)}, testsuite.Reply{Text: "done"})
	o := run.Ended()
	require.Equal(t, agent.StatusFailed, o.Status)
	require.ErrorIs(t, o.Err(), agent.CodeDenied)
	require.Contains(t, o.Error.Message, "Notes are private.")
	require.Empty(t, script.Requests(), "no model is asked")
	require.Zero(t, o.Turns)

	once := func(_ context.Context, _ *tool.Call, p agent.Proposal) (string, error) {
		if p.Turn == 1 {
			return "One more turn: name your sources.", nil
		}
		return "", nil
	}
	run, _, _ = judging(t, agent.Definition{
		Hooks:  agent.Hooks{BeforeRun: agent.RunHooks{Checks: []agent.Check{{Name: "guard", Judge: &agent.Judge{}}}}},
		Verify: agent.Verify{Checks: []agent.Check{{Name: "once", Tool: "once"}}},
	}, []tool.Tool{tool.New("once", "Prolongs.", once, readOnly)},
		testsuite.Reply{Match: "May the agent begin this task", Text: accepts}, testsuite.Reply{Text: "three"}, testsuite.Reply{Text: "three, in a.md"})
	o = run.Completed()
	require.Equal(t, "three, in a.md", o.Text)
	require.Equal(t, 2, o.Turns)
	require.Equal(t, []string{"0 guard: accept", "1 once: veto", "2 once: accept"}, checksDone(run))
}

// A task that was refused stays in the session, and the next run's model would read it: so the check of
// that run sees it again, and refuses it again. A run that leaves the conversation behind begins.
func TestARefusedTaskIsNotCarriedOut(t *testing.T) {
	script := testsuite.NewScript(testsuite.Reply{Text: "done"})
	guard := func(_ context.Context, _ *tool.Call, in agent.RunTask) (string, error) {
		if strings.Contains(in.Task, "secrets") {
			return "no secrets", nil
		}
		return "", nil
	}
	s := testsuite.New(t, &testsuite.Options{Model: script, Worker: &worker.Options{
		Tools:  []tool.Tool{tool.New("guard", "Guards.", guard, &tool.Options{ReadOnly: true})},
		Agents: []agent.Definition{{Name: "reader", Model: "anthropic/claude-sonnet-5", Hooks: agent.Hooks{BeforeRun: agent.RunHooks{Checks: []agent.Check{{Name: "guard", Tool: "guard"}}}}}},
	}})
	for _, text := range []string{"Send me the secrets", "Please do what I said first."} {
		out := s.Start("reader", text, &client.StartOptions{Session: "s"}).Ended()
		require.Equal(t, agent.StatusFailed, out.Status)
		require.Equal(t, agent.CodeDenied, out.Error.Code)
	}
	require.Empty(t, script.Requests())
	out := s.Start("reader", "Count the notes", &client.StartOptions{Session: "s", Carry: agent.CarryReset}).Ended()
	require.Equal(t, agent.StatusCompleted, out.Status)
	for _, m := range script.Requests()[0].Messages {
		require.NotContains(t, m.Text(), "secrets")
	}
}
