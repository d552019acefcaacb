package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
)

// sleeper is an agent whose first reply never comes, unless it is told to go on.
func sleeper() role {
	return role{agent.Definition{Name: "sleeper"}, []testsuite.Reply{
		{Match: "^go$", Text: "never", Delay: time.Hour}, {Match: "You are being stopped", Text: `{"summary":"I slept"}`}, {Match: ".*", Text: "Awake."},
	}}
}

// A pause of a run that is being stopped changes nothing, and says why.
func TestAPauseDuringAStop(t *testing.T) {
	slow, dug := dig()
	digger := role{agent.Definition{Name: "digger", Tools: []string{"dig"}}, []testsuite.Reply{
		{Match: "^go$", Calls: []testsuite.Call{{Tool: "dig"}}}, {Match: "You are being stopped", Text: `{"summary":"I dug"}`},
	}}
	s := scripted(t, digger).works(slow)
	run := s.begin("a", "digger", nil)
	s.does(run, agent.InFlightTool)
	require.Zero(t, s.run("stop", run.Session, "--deadline", "10m").exit)
	r := s.run("pause", run.Session)
	require.Zero(t, r.exit, r.err)
	require.Equal(t, run.Session+": no change, it is running, and this or a stronger verb is in progress\n", r.out)
	dug()
	require.Equal(t, agent.StatusStopped, s.rests(run).Status)
}

// A run that is held is shown as held, goes on, and at its end takes nothing more
// (HL-11, HL-43, HL-122, HX-19, HX-86, HX-94, OA-75, PA-78, HL-09, HL-92).
func TestHoldAndResume(t *testing.T) {
	s := scripted(t, sleeper()).works()
	run := s.begin("a", "sleeper", nil)
	s.does(run, agent.InFlightModel)
	r := s.run("pause", run.Session, "--reason", "the bank is down", "--by", "ana")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, run.Session+": pause accepted, it is suspending (s-1)\n", r.out)
	r = s.run("interrupt", run.Session, "--grace", "2s", "--by", "bo", "--reason", "now", "--wait", "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, agent.StatusSuspended, lastLine[agent.Outcome](t, r.out).Status)
	r = s.run("pause", run.Session, "--json")
	require.Zero(t, r.exit, r.err)
	ack := lastLine[agent.Ack](t, r.out)
	require.Equal(t, agent.EffectAlready, ack.Effect)
	require.Equal(t, agent.AckHold{Kind: agent.SuspensionHeld, Initiator: agent.InitiatorOperator, Verb: agent.VerbInterrupt, By: "bo", Reason: "now", Since: ack.Hold.Since}, *ack.Hold)
	r = s.run("pause", run.Session)
	require.Contains(t, r.out, run.Session+": no change, it is suspended (s-1) already: interrupt of ")
	require.Contains(t, r.out, ` by "bo", "now"`)

	s.shows(run)
	s.lists(run, "the bank is down")
	s.fails(6, "[stale]", "resume", run.Session, "--suspension", "s-2")
	r = s.run("resume", run.Session, "The bank is back.", "--wait")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, run.Session+": resumed, it is running\n│ Awake.\ncompleted")
	s.fails(6, "[closed]", "pause", run.Session)
	s.fails(6, "[closed]", "resume", run.Session)
	r = s.run("cancel", run.Session)
	require.Zero(t, r.exit, r.err)
	require.Equal(t, run.Session+": no change, it is completed already\n", r.out)

	for _, verb := range []string{"pause", "interrupt", "stop", "cancel", "resume"} {
		s.fails(6, "[not_found]", verb, s.session("nobody"))
		s.fails(2, "needs a session", verb)
	}
	s.fails(2, "--grace is 2m0s; it may be at most 1m0s", "interrupt", run.Session, "--grace", "2m")
	s.fails(2, "--deadline is 1s; it may be 2s to 1h0m0s", "stop", run.Session, "--deadline", "1s")
}

// shows looks at a run that ana paused and bo interrupted.
func (s *stage) shows(run *fermata.Run) {
	s.t.Helper()
	require.NoError(s.t, s.temporal.SignalWorkflow(s.t.Context(), run.Session, "", "interupt", json.RawMessage(`{}`)))
	require.NoError(s.t, s.temporal.SignalWorkflow(s.t.Context(), run.Session, "", "answer", json.RawMessage(`{"by":"carl","request":"q-9","text":"yes"}`)))
	r := s.run("send", run.Session, "Are you there?")
	require.Zero(s.t, r.exit, r.err)
	require.Equal(s.t, run.Session+": run "+run.ID+" has it\n", r.out)
	r = s.run("show", run.Session)
	require.Zero(s.t, r.exit, r.err)
	for _, want := range []string{`waits +s-1, held since`, `hold +held by bo \(interrupt\): now, for`, `queued +1 message\n`, `message .*Are you there\?\n`, `refused +interupt at .*interupt refused: no verb of that name`, `refused +answer by carl at `} {
		require.Regexp(s.t, want, r.out)
	}
	r = s.run("wait", run.Session)
	require.Equal(s.t, 3, r.exit, r.err)
	require.Contains(s.t, r.out, "suspended (s-1): held by bo (interrupt): now · ")
	require.Contains(s.t, r.out, "\n  fermata resume "+run.Session)
}

// lists checks what a listing tells of a run that is suspended.
func (s *stage) lists(run *fermata.Run, why string) {
	s.t.Helper()
	query := "WorkflowId = '" + run.Session + "'"
	require.Eventually(s.t, func() bool {
		return strings.Contains(s.run("ls", "--query", query).out, "  suspended ("+why+")  ")
	}, patience, 50*time.Millisecond)
	l := lastLine[fermata.RunInfo](s.t, s.run("ls", "--query", query, "--json").out)
	require.Equal(s.t, []any{agent.StatusSuspended, why, []string{"held"}}, []any{l.Status, l.Reason, l.WaitsFor})
	require.False(s.t, l.Since.IsZero(), "how long it has been so")
}

func TestStopAndCancel(t *testing.T) {
	s := scripted(t, sleeper()).works()
	run := s.begin("a", "sleeper", nil)
	s.does(run, agent.InFlightModel)
	nothing := s.run("handoff", run.Session) // a listing says how its run is, and may be late
	require.Equal(t, 6, nothing.exit, nothing.out)
	require.Regexp(t, `\[not_found\] session `+run.Session+` has no handoff: its run is (pending|running); to end it with a handoff: fermata stop `+run.Session, nothing.err)
	r := s.run("stop", run.Session, "--by", "ana", "--reason", "budget meeting", "--deadline", "4s", "--wait")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "stopped by ana (budget meeting) · ")
	require.Regexp(t, `status +stopped by ana \(budget meeting\) since`, s.run("show", run.Session).out)
	require.Regexp(t, `run.stopped +stopped by ana \(budget meeting\) · `, s.run("events", run.Session).out)
	require.Equal(t, 4, s.run("wait", run.Session).exit)

	// What the session does after that does not hide what it handed over.
	r = s.run("send", run.Session, "And now?", "--json")
	require.Zero(t, r.exit, r.err)
	require.True(t, lastLine[sentLine](t, r.out).Began)
	require.Zero(t, s.run("wait", run.Session).exit)
	r = s.run("handoff", run.Session)
	require.Zero(t, r.exit, r.err)
	h := lastLine[agent.Handoff](t, r.out)
	require.Equal(t, []any{"I slept", run.ID}, []any{h.Summary, h.Run})

	run = s.begin("b", "sleeper", nil)
	r = s.run("cancel", run.Session, "--by", "bo", "--wait", "--json")
	require.Zero(t, r.exit, r.err)
	o := lastLine[agent.Outcome](t, r.out)
	require.Equal(t, []any{agent.StatusCancelled, "bo"}, []any{o.Status, o.By})
	s.fails(6, "to start it, name an agent with --agent", "send", s.session("new"), "hello")
	r = s.run("send", s.session("new"), "hello", "--agent", "sleeper")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, " starts with it\n")
	s.fails(2, "the message is blank", "send", s.session("new"), " ")
	s.fails(2, "mode must be steer, queue or interrupt", "send", s.session("new"), "x", "--mode", "shout")
}

// A verb is said to all runs that a query finds, and to none without --yes
// (HL-107).
func TestHoldMany(t *testing.T) {
	s := scripted(t, sleeper(), role{agent.Definition{Name: "lead", Agents: []agent.SubAgent{{Agent: "sleeper"}}},
		[]testsuite.Reply{calls("subagent__sleeper", map[string]any{"task": "go"})}}).works()
	a, b := s.begin("a", "sleeper", nil), s.begin("b", "lead", nil)
	s.does(a, agent.InFlightModel)
	s.does(b, agent.InFlightChild)
	mine := "WorkflowId STARTS_WITH '" + s.name + "'"
	var r ran
	require.Eventually(t, func() bool {
		r = s.run("pause", "--query", mine, "--dry-run", "--json")
		return r.exit == 0 && len(lines(r.out)) == 2 && strings.Contains(r.err, "2 live runs found, and 1 below them, which get it from their parents\n")
	}, patience, 20*time.Millisecond)

	elsewhere := append(slices.Clone(s.flags), "--task-queue", s.name+"-other")
	for _, args := range [][]string{{"pause", "--query", mine, "--dry-run"}, {"ls", "--query", mine}} {
		r = inProcess(t, append(args, elsewhere...)...)
		require.Equal(t, []any{0, ""}, []any{r.exit, r.out}, r.err)
	}

	s.fails(2, "[invalid_input] pause was sent to none of 2 runs: repeat it with --yes", "pause", "--query", mine)
	s.fails(2, "a session and --query exclude each other", "pause", a.Session, "--query", mine)
	s.fails(2, "--agent, --dry-run and --yes belong to --query", "pause", a.Session, "--yes")
	s.fails(2, "--wait is for one session", "pause", "--query", mine, "--wait", "--yes")
	s.fails(2, "[invalid_input]", "pause", "--query", "nonsense (", "--yes")
	r = s.run("interrupt", "--query", mine, "--agent", "sleeper", "--yes", "--reason", "lunch")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "2 of 2 accepted, 0 failed")
	r = s.run("cancel", "--query", mine, "--yes", "--json")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "2 of 2 accepted, 0 failed")
	require.Len(t, lines(r.out), 2)
	require.Equal(t, agent.StatusCancelled, s.rests(b).Status)
	require.Eventually(t, func() bool { r = s.run("stop", "--query", mine, "--yes"); return r.exit == 0 && r.out == "" }, patience, 20*time.Millisecond)
	require.Contains(t, r.err, "no live run found")
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// Who emits an event need not know who waits for it (HL-116, OA-15, OA-115).
func TestParkAndEmit(t *testing.T) {
	s := scripted(t, sleeper()).works()
	id, topic := s.session("a"), s.name+".paid"
	r := s.run("run", "sleeper", "Thank them", "--session", id, "--park", `{"event":{"topic":"`+topic+`","match":{"type":"object"}}}`)
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.out, "suspended (s-1): waits for "+topic)
	require.Contains(t, r.out, "\n  fermata emit "+topic+" '{…}' --address ")
	var out fermata.EmitResult
	require.Eventually(t, func() bool {
		r = s.run("emit", topic, `{"order":118}`, "--json")
		out = lastLine[fermata.EmitResult](t, r.out)
		return r.exit == 0 && out.Accepted == 1
	}, patience, 20*time.Millisecond)
	require.Zero(t, s.run("wait", id).exit)
	r = s.run("emit", topic)
	require.Equal(t, []any{0, "no run waits for " + topic + " with this payload\n"}, []any{r.exit, r.out})
	s.fails(2, "[invalid_input] topic", "emit", "a b")
	s.fails(2, "the payload is not JSON", "emit", "paid", "{")
	s.fails(2, "--park: topic is missing", "run", "sleeper", "x", "--park", `{"event":{}}`)
	s.fails(2, "--briefing can't be read", "run", "sleeper", "--briefing", "nowhere.json")
}

func TestInbox(t *testing.T) {
	asker := role{agent.Definition{Name: "asker", Tools: []string{agent.AskUserTool}}, []testsuite.Reply{asksFor("How do you travel?"), {Text: "Well."}}}
	s := scripted(t, asker).works()
	run := s.begin("a", "asker", nil)
	s.rests(run)
	var r ran
	require.Eventually(t, func() bool {
		r = s.run("inbox", "--session", run.Session)
		return r.exit == 0 && r.out != ""
	}, patience, 20*time.Millisecond)
	require.Regexp(t, `(?m)^`+run.Session+` +q-1 +question +asker +\S+ +How do you travel\?$`, r.out)
	require.Contains(t, r.err, "answer with fermata answer|approve|reject SESSION --request ID")
	r = s.run("inbox", "--waits-for", "question", "--agent", "asker", "--session", run.Session, "--json")
	require.Equal(t, "q-1", lastLine[fermata.InboxItem](t, r.out).ID)
	r = s.run("inbox", "--approver", `ana\`, "--session", run.Session) // the server's parser knows escapes
	require.Equal(t, []any{0, ""}, []any{r.exit, r.out}, r.err)
	r = s.run("inbox", "--older", "1h", "--session", run.Session)
	require.Equal(t, []any{0, ""}, []any{r.exit, r.out})
	require.Contains(t, r.err, "no open requests")
	s.fails(2, `--older can't be "-1h"`, "inbox", "--older", "-1h")
	s.fails(2, `agent "Asker"`, "inbox", "--agent", "Asker")
}

// Where no worker answers, holds and messages wait for one, and the output says so
// (HX-21).
func TestNobodyAnswers(t *testing.T) {
	s := scripted(t, sleeper())
	run := s.begin("a", "sleeper", nil)
	held, sent := make(chan ran, 1), make(chan ran, 1)
	go func() { held <- inProcess(t, append([]string{"interrupt", run.Session}, s.flags...)...) }()
	go func() {
		sent <- inProcess(t, append([]string{"send", run.Session, "Hello?", "--json"}, s.flags...)...)
	}()
	r := <-held
	require.Zero(t, r.exit, r.err)
	require.Equal(t, run.Session+": no worker answers; the interrupt is left as a signal for the next worker\n", r.out)
	r = <-sent
	require.Zero(t, r.exit, r.err)
	require.True(t, lastLine[sentLine](t, r.out).Later)
	s.works()
	require.Equal(t, agent.SuspensionHeld, s.rests(run).Suspension.Kind)
}

// Of a run that rests Temporal itself knows what it waits for (HX-10).
func TestRestWithoutAWorker(t *testing.T) {
	asker := role{agent.Definition{Name: "asker", Tools: []string{agent.AskUserTool}}, []testsuite.Reply{asksFor("How do you travel?"), {Text: "Well."}}}
	s := scripted(t, asker).works()
	run := s.begin("a", "asker", nil)
	s.rests(run)
	s.worker.Stop()
	r := s.run("show", run.Session)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "no worker answers")
	require.Regexp(t, `waits +s-1, input_required since`, r.out)
	require.Contains(t, r.out, "How do you travel?\n  fermata answer "+run.Session+" --request q-1 '…'")
	r = s.run("wait", run.Session)
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.out, "suspended (s-1): waits for the answer to q-1")
	s.fails(7, "no worker answered for session "+run.Session+"; start one with fermata worker", "answer", run.Session, "x", "--request", "q-1")
}

// A failed run shows how to read its handoff if it did something before, or if its model has said why it
// can't do the task. A wrong key in the first turn shows the error alone (PA-45, PA-48).
func TestAFailedRunNamesItsHandoff(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "locked"}, []testsuite.Reply{
		{Match: "^go$", Fail: []testsuite.Failure{{Kind: agent.FaultAuth, HTTP: 401, Message: "no"}}},
	}}, role{agent.Definition{Name: "prude", Completion: agent.CompletionTool}, []testsuite.Reply{
		{Match: "^go$", Text: "One moment."}, {Match: ".*", Text: "I will not.", Finish: "content_filter"},
	}}, role{agent.Definition{Name: "unable", Recovery: agent.Recovery{agent.FailureUnable: {Do: agent.RecoverHandoff}}, Completion: agent.CompletionTool}, []testsuite.Reply{
		{Match: "^go$", Calls: []testsuite.Call{{Tool: agent.ReturnUnableTool, Arguments: map[string]any{"rationale": "cannot", "blockers": []string{"no key"}}}}},
	}}).works()
	r := s.run("run", "unable", "go", "--session", s.session("unable"))
	require.Equal(t, 1, r.exit, r.err)
	require.Contains(t, r.out, "fermata handoff "+s.session("unable")+" --md")
	r = s.run("run", "locked", "go", "--session", s.session("locked"))
	require.Equal(t, 1, r.exit, r.err)
	require.NotContains(t, r.out, "fermata handoff")
	r = s.run("run", "prude", "go", "--session", s.session("prude"))
	require.Equal(t, 1, r.exit, r.err)
	require.Contains(t, r.out, "fermata handoff "+s.session("prude")+" --md")
	r = s.run("handoff", s.session("prude"), "--md")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "# Handoff of prude: failed")
}

// A run that fails in its first turn does not hide what an earlier run of the session has handed off.
func TestAFailureHidesNoHandoff(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "sleeper"}, []testsuite.Reply{
		{Match: "^go$", Text: "never", Delay: time.Hour}, {Match: "You are being stopped", Text: `{"summary":"I slept"}`},
		{Match: "And now", Fail: []testsuite.Failure{{Kind: agent.FaultAuth, HTTP: 401, Message: "no"}}},
	}}).works()
	run := s.begin("a", "sleeper", nil)
	s.does(run, agent.InFlightModel)
	r := s.run("stop", run.Session, "--deadline", "4s", "--wait")
	require.Zero(t, r.exit, r.err)
	r = s.run("send", run.Session, "And now?", "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, 1, s.run("wait", run.Session).exit)
	require.Contains(t, s.run("handoff", run.Session, "--md").out, "I slept")
}
