package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/testsuite"
)

// traveller asks for all that there is to ask for.
func traveller() role {
	return role{
		agent.Definition{
			Name: "traveller", Tools: []string{agent.AskUserTool, "pay"}, OnLimit: agent.LimitActionAsk, Limits: agent.Limits{Turns: 4},
			Rules:       []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}, Reason: "It costs."}},
			ClientTools: []agent.ToolSpec{{Name: "seat", Description: "tells the seat"}},
		},
		[]testsuite.Reply{
			asksFor("How do you travel?", "train", "plane"), calls("pay", map[string]any{"eur": 800}), calls("seat", map[string]any{}),
			calls("pay", map[string]any{"eur": 7}), {Text: "Have a good trip."},
		},
	}
}

// A person at the terminal is asked everything, and the run goes on (PA-05).
func TestRunAsksAtTheTerminal(t *testing.T) {
	s := scripted(t, traveller()).works(pay())
	d := s.sits("run", "traveller", "To Rome", "--session", s.session("a"))
	d.sees("session "+s.session("a")).answers("  1  plane\nyour answer (a number, or a text): ", "0")
	d.sees("q-1 answered").sees("q-2, approval: Run pay? It costs. (pay eur=800)")
	d.answers("approve? ", "e").answers("as one line of JSON: ", `{"eur":80}`).sees("paid 80 EUR")
	d.answers("the result, as one line of JSON", `"12A"`).sees("q-3 answered")
	d.answers("approve? ", "n").answers("why not?", "too much").sees("q-4 rejected").sees("rejected Not executed: it was not approved. too much")
	d.answers("your answer (a number, or a text): ", "continue").sees("limit_turns is renewed")
	r := d.ends(0)
	require.Contains(t, r.out, "Have a good trip.\ncompleted")
	require.Equal(t, 1, strings.Count(r.out, "session "+s.session("a")), "told once")
}

// Without a terminal the command ends where the run rests, and says what to do
// (HL-25, HL-48, OA-20, OA-21, OA-113, OA-115, OA-118, PA-77).
func TestRunWithoutATerminal(t *testing.T) {
	s := scripted(t, traveller()).works(pay())
	id := s.session("a")
	r := s.run("run", "traveller", "To Rome", "--session", id)
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.out, "suspended (s-1): waits for the answer to q-1 · ")
	require.Contains(t, r.out, "How do you travel?\n  0  train\n  1  plane\n  fermata answer "+id+" --request q-1 --choice 0 --address ")
	require.Contains(t, r.out, "\n  fermata attach "+id)

	r = s.run("wait", id, "--json")
	require.Equal(t, 3, r.exit, r.err)
	o := lastLine[agent.Outcome](t, r.out)
	require.Equal(t, []any{agent.StatusSuspended, "q-1"}, []any{o.Status, o.Suspension.Requests[0].ID})
	r = s.run("attach", id, "--json")
	require.Equal(t, 3, r.exit, r.err)
	require.Equal(t, agent.StatusSuspended, lastLine[agent.Outcome](t, r.out).Status)

	s.wrongAnswers(id)
	r = s.run("answer", id, "by train", "--request", "q-1")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, id+": q-1 answered, it is running\n", r.out)
	require.Equal(t, 3, s.run("wait", id).exit)
	r = s.run("approve", id, "--request", "q-2", "--edit", `{"eur":80}`, "--json", "--by", "ana")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, agent.EffectAccepted, lastLine[agent.Ack](t, r.out).Effect)
	require.Equal(t, 3, s.run("wait", id).exit)
	require.Zero(t, s.run("answer", id, "--request", "q-3", "--result", `{"seat":"12A"}`).exit)
	require.Equal(t, 3, s.run("wait", id).exit)
	require.Zero(t, s.run("reject", id, "--request", "q-4", "--reason", "too much").exit)
	require.Equal(t, 3, s.run("wait", id).exit)
	require.Zero(t, s.run("answer", id, "--request", "q-5", "--choice", "continue").exit)
	r = s.run("attach", id)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "q-2 approved by ana, with other arguments")
	s.fails(6, "[closed]", "resume", id)
	s.fails(6, "[not_found]", "handoff", id)
}

// wrongAnswers tries what a run that asks q-1, a question, does not take.
func (s *stage) wrongAnswers(id string) {
	s.t.Helper()
	s.fails(2, "[invalid_input] --request is required: name the request that you saw; open: q-1 (question)", "answer", id, "x")
	s.fails(2, "open: q-1 (question)", "approve", id)
	s.fails(2, "[invalid_input] an answer is required: a TEXT, --choice N, --result JSON or --file", "answer", id, "--request", "q-1")
	s.fails(2, "[invalid_input] --reason is required", "reject", id, "--request", "q-1")
	s.fails(2, "TEXT, --choice and --result exclude each other", "answer", id, "x", "--request", "q-1", "--choice", "0")
	s.fails(2, "--result is not JSON", "answer", id, "--request", "q-1", "--result", "{")
	s.fails(2, "--edit must be an object", "approve", id, "--request", "q-1", "--edit", "[]")
	s.fails(2, "it takes answer, not approve", "approve", id, "--request", "q-1")
	s.fails(2, `[invalid_input] "2" is not one of the choices of request q-1: 0 "train", 1 "plane"`, "answer", id, "--request", "q-1", "--choice", "2")
	s.fails(2, `"boat" is not one of the choices`, "answer", id, "--request", "q-1", "--choice", "boat")
	s.fails(2, "the token can't be read", "approve", id, "--request", "q-1", "--token-file", "nowhere")
	s.fails(6, "[not_found] request q-9 of session "+id+" is not open; open is q-1", "answer", id, "x", "--request", "q-9")
	s.fails(6, "[not_found]", "answer", s.session("nobody"), "x", "--request", "q-1")
	s.fails(6, "see fermata ls", "approve", s.session("nobody"))
	s.fails(6, "[needs_answer]", "resume", id)
	s.fails(6, "[stale]", "resume", id, "--suspension", "s-9")
}

// A named answer that comes after the deadline reaches the run, which records it. The command fails, and
// says so (HX-59).
func TestALateAnswerFails(t *testing.T) {
	s := scripted(t, role{
		agent.Definition{Name: "traveller", Tools: []string{agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(time.Second), Default: "Oslo"}},
		[]testsuite.Reply{asksFor("Where to?"), {Text: "done", Delay: time.Minute}},
	}).works()
	run := s.begin("a", "traveller", nil)
	require.Eventually(t, func() bool {
		status, err := run.Status(t.Context())
		return err == nil && status.Turn == 2
	}, time.Minute, 20*time.Millisecond)
	s.fails(6, "the late answer is recorded", "answer", run.Session, "Rome", "--request", "q-1")
	s.fails(6, "answer refused: request q-1 was decided by its deadline", "answer", run.Session, "Rome", "--request", "q-1")
	s.fails(6, "[not_found] request q-9", "answer", run.Session, "Rome", "--request", "q-9")
	require.Contains(t, s.run("events", run.Session).out, "request.answered_late")
	_, err := run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}

// The commands ask as well, where a person is there.
func TestAnswerAtTheTerminal(t *testing.T) {
	s := scripted(t, traveller()).works(pay())
	run := s.begin("a", "traveller", nil)
	s.rests(run)
	d := s.sits("answer", run.Session)
	d.answers("your answer (a number, or a text): ", "1")
	require.Contains(t, d.ends(0).out, run.Session+": q-1 answered, it is running\n")
	s.rests(run)
	d = s.sits("approve", run.Session, "--always")
	d.sees("│ {\n│   \"eur\": 800\n│ }").answers("approve q-2? y(es), n(o): ", "n")
	require.Contains(t, d.ends(2).err, "nothing was sent")
	d = s.sits("approve", run.Session)
	d.answers("approve? ", "a")
	require.Contains(t, d.ends(0).out, "q-2 approved")
	s.rests(run)
	d = s.sits("answer", run.Session, "--request", "q-3")
	d.answers("the result", "")
	require.Contains(t, d.ends(2).err, "nothing was sent")
}

// family is a lead that gives work to a buyer, who gives work to a payer, who
// asks before each payment.
func family() []role {
	return []role{
		{agent.Definition{Name: "lead", Agents: []agent.SubAgent{{Agent: "buyer", Tools: []string{"*"}}, {Agent: "payer", Tools: []string{"*"}}}}, []testsuite.Reply{
			{Match: "^go$", Calls: []testsuite.Call{{Tool: "subagent__payer", Arguments: map[string]any{"task": "pay"}}}},
			{Match: "^deep$", Calls: []testsuite.Call{{Tool: "subagent__buyer", Arguments: map[string]any{"task": "buy"}}}},
			{Text: "never"}, {Text: "All is bought."},
		}},
		{agent.Definition{Name: "buyer", Agents: []agent.SubAgent{{Agent: "payer", Tools: []string{"*"}}}}, []testsuite.Reply{
			calls("subagent__payer", map[string]any{"task": "pay"}), {Text: "Bought."},
		}},
		{agent.Definition{Name: "payer", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}}, []testsuite.Reply{
			calls("pay", map[string]any{"eur": 5}), {Text: "Paid."},
		}},
	}
}

// What runs below ask is asked too, at whatever depth.
func TestRunAsksForRunsBelow(t *testing.T) {
	s := scripted(t, family()...).works(pay())
	id := s.session("a")
	r := s.run("run", "lead", "go", "--session", id)
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.out, "waits for its sub-agents")
	require.Contains(t, r.out, "  fermata approve "+id+"/payer-1 --request q-1 --address ")
	s.fails(6, "a request with this id is open in session "+id+"/payer-1: use that session", "approve", id, "--request", "q-1")
	s.fails(2, "open: q-1 (approval, pay, in session "+id+"/payer-1)", "approve", id)

	r = s.run("tree", id)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `(?m)^  /payer-1 +payer +suspended +0 +1 turn, .* +49 turns, 4999 agents +input_required, q-1 approval$`, r.out)
	r = s.run("tree", id, "--json")
	require.Len(t, lastLine[struct{ Nodes []agent.Node }](t, r.out).Nodes, 2)
	var errs bytes.Buffer
	require.Equal(t, agent.CodeNotWritten.ExitStatus(), newCLI(strings.NewReader(""), full{}, &errs).execute(t.Context(), append([]string{"tree", id}, s.flags...)))
	require.Regexp(t, `^(temporal .*\n)?fermata: error \[not_written\] standard output`, errs.String())
	s.fails(6, "[not_found]", "tree", s.session("nobody"))

	s.fails(2, "it takes approve or reject, not answer", "answer", id, "x", "--request", "payer-1/q-1")
	s.fails(6, "[not_found]", "approve", id, "--request", id+"/payer-2/q-1")
	d := s.sits("attach", id)
	d.sees(id+"/payer-1 (payer) is suspended").sees("q-1 · approval · payer in "+id+"/payer-1").answers("approve? ", "y")
	require.Contains(t, d.ends(0).out, "All is bought.\ncompleted")
	d = s.sits("run", "lead", "deep", "--session", s.session("b"))
	d.sees("payer in "+s.session("b")+"/buyer-1/payer-1").answers("approve? ", "y")
	require.Contains(t, d.ends(0).out, "All is bought.\ncompleted")
}

// An approver proves to be one with a token; the others are told who decides.
func TestApproversNeedAToken(t *testing.T) {
	def := role{agent.Definition{Name: "payer", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Approvers: []string{"ana@acme.com"}, Confirm: agent.ConfirmDigest}}},
		[]testsuite.Reply{calls("pay", map[string]any{"eur": 5}), {Text: "Paid."}}}
	s := scripted(t, def)
	keys, err := env.ApprovalKeys.Verifiers()
	require.NoError(t, err)
	s.options.ApprovalKeys = keys
	s.works(pay())
	run := s.begin("a", "payer", nil)
	s.rests(run)

	s.fails(6, "[denied]", "approve", run.Session, "--request", "q-1")
	s.fails(2, "--session and --principal are required", "token", "--session", run.Session)
	s.fails(2, "name what the token allows", "token", "--session", run.Session, "--principal", "ana@acme.com")
	s.fails(2, "answer, approve and reject want a request", "token", "--session", run.Session, "--principal", "ana@acme.com", "--verb", "approve")
	s.fails(6, `[denied] request q-1 has no approver "bo"; it names ana@acme.com`, "token", "--session", run.Session, "--request", "q-1", "--principal", "bo")
	s.fails(6, "[not_found] request q-9 of session "+run.Session+" is not open; open is q-1", "token", "--session", run.Session, "--request", "q-9", "--principal", "ana@acme.com")
	r := s.run("token", "--session", run.Session, "--request", "q-1", "--principal", "ana@acme.com", "--for", "1h")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^v1\.k1\.\S+\n$`, r.out)
	file := t.TempDir() + "/token"
	writeFile(t, file, r.out)

	r = s.run("inbox", "--approver", "ana@acme.com", "--session", run.Session)
	require.Regexp(t, `(?m)^`+run.Session+` +q-1 +approval +payer +\S+ +Run pay\? \[ana@acme.com\]$`, r.out)
	d := s.sits("attach", run.Session)
	d.sees("takes a decision of its approvers only:").sees("approve " + run.Session + " --request q-1 ").sees("--token-file FILE   # only ana@acme.com")
	r = s.run("approve", run.Session, "--request", "q-1", "--token-file", file)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, d.ends(0).out, "q-1 approved by ana@acme.com")
}

// Ctrl-C holds a run and asks what comes next; nothing but a choice stops it.
func TestCtrlC(t *testing.T) {
	slow := role{agent.Definition{Name: "slow"}, []testsuite.Reply{
		{Match: "^(go|And now\\?)$", Text: "At last, and never.", Delay: time.Hour}, {Match: "You are being stopped", Text: `{"summary":"I had half"}`}, {Match: ".*", Text: "As you say."},
	}}
	s := scripted(t, slow).works()

	d := s.sits("run", "slow", "go", "--session", s.session("message")).sees("slow · slow")
	d.presses().sees("interrupting").sees("held").sees("held. What next?").answers("> ", "x").sees("type r, s, l, or a message")
	d.answers("> ", "Be brief.").sees("continues (s-1, operator")
	require.Contains(t, d.ends(0).out, "As you say.\ncompleted")

	d = s.sits("run", "slow", "go", "--session", s.session("away")).sees("slow · slow")
	d.presses().sees("> ").presses()
	r := d.ends(130)
	require.Contains(t, r.err, "left; the run stays held: continue it with fermata resume "+s.session("away")+" --address ")
	require.NotContains(t, r.err, "continues by itself")
	st, err := s.Get(t.Context(), s.session("away"))
	require.NoError(t, err)
	require.Equal(t, agent.SuspensionHeld, s.rests(st).Suspension.Kind)

	// It is held still: who comes later says what is to happen.
	d = s.sits("attach", s.session("away")).sees("held (interrupt): Ctrl-C; Ctrl-C asks what to do")
	d.presses().answers("> ", "l")
	d.ends(3)
	d = s.sits("attach", s.session("away")).sees("Ctrl-C asks what to do")
	d.presses().answers("> ", "s").sees("handed over: the work of 1 agent, summed up by model")
	require.Contains(t, d.ends(4).out, "fermata handoff "+s.session("away")+" --md --address ")
	r = s.run("handoff", s.session("away"), "--md")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "# Handoff of slow: stopped (Ctrl-C)")

	// A handoff briefs the next one.
	r = s.run("handoff", s.session("away"))
	file := t.TempDir() + "/left.json"
	writeFile(t, file, r.out)
	r = s.run("run", "slow", "--briefing", file)
	require.Zero(t, r.exit, r.err)

	// SIGTERM leaves the run as it is.
	d = s.sits("run", "slow", "go", "--session", s.session("term")).sees("slow · slow")
	d.leave()
	require.Contains(t, d.ends(130).err, "interrupted; the run continues by itself: see fermata attach "+s.session("term"))
	run, err := s.Get(t.Context(), s.session("term"))
	require.NoError(t, err)
	status, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusRunning, status.Status)
	_, err = run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}

// Ctrl-C instead of an answer holds too; resumed, it is asked again. The end
// of the input leaves the question open.
func TestCtrlCAtAQuestion(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "asker", Tools: []string{agent.AskUserTool}}, []testsuite.Reply{asksFor("How?"), {Text: "Well."}}}).works()
	d := s.sits("run", "asker", "go", "--session", s.session("a"))
	d.sees("your answer: ").presses().answers("> ", "r").answers("your answer: ", "").sees("q-1, question: How? stays open:")
	d.sees("waits for the answer to q-1; Ctrl-C asks what to do").presses().answers("> ", "r").sees("your answer: ")
	require.NoError(t, d.typed.Close())
	r := d.ends(3)
	require.Contains(t, r.out, "fermata answer "+s.session("a")+" --request q-1 '…' --address ")
	run, err := s.Get(t.Context(), s.session("a"))
	require.NoError(t, err)
	q, err := s.Request(t.Context(), run.Session, "q-1")
	require.NoError(t, err)

	// Somebody else may be quicker: then nobody is asked any more.
	d = s.sits("attach", run.Session).sees("your answer: ")
	_, err = s.Answer(context.Background(), q, "So.", &fermata.AnswerOptions{By: "bo"})
	require.NoError(t, err)
	d.sees("q-1 answered by bo")
	d.ends(0)
}

// Nobody knows yet whether arguments fit the tool when they are sent.
func TestAnEditIsNotCalledApproved(t *testing.T) {
	s := scripted(t, role{
		agent.Definition{Name: "payer", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}},
		[]testsuite.Reply{calls("pay", map[string]any{"eur": 800}), {Text: "Well."}},
	}).works(pay())
	run := s.begin("a", "payer", nil)
	s.rests(run)
	r := s.run("approve", run.Session, "--request", "q-1", "--edit", `{"eur":"much"}`, "--wait")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, run.Session+": q-1 has other arguments, and the call is made if they fit the tool, it is running\n")
	require.NotContains(t, r.out, "q-1 approved")
	require.Contains(t, s.run("transcript", run.Session).out, "do not fit the tool")
}
