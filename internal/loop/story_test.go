package loop

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

var (
	update  = flag.Bool("update", false, "rewrite the traces in testdata")
	numbers = flag.String("numbers", "", "instead of comparing stories, write what they decide, without a word, to this `FILE`")
)

// Each file of testdata is a story: prose, and then each input with what came of it: the
// rules that applied (*), the events that were recorded, the effects (->) and where the
// run stands (=). The invariants hold after every input.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	if *numbers != "" {
		writeNumbers(t, files)
		return
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			require.NoError(t, err)
			require.Len(t, archive.Files, 1, "a file has one story")
			told := play(t, string(archive.Files[0].Data))
			if *update {
				archive.Files[0].Data = []byte(told)
				require.NoError(t, os.WriteFile(path, txtar.Format(archive), 0o644))
				return
			}
			require.Equal(t, string(archive.Files[0].Data), told, "run with -update and look at the difference")
		})
	}
}

// player feeds a machine from lines.
type player struct {
	t       require.TestingT
	state   State
	now     time.Time
	full    bool
	half    bool  // its history is half full
	near    bool  // its history is nearly full
	waiting bool  // signals came before, and are not taken yet
	moved   State // of a run that was suspended elsewhere
	ended   State // of the session's run before
	wrong   error // why the last input was refused; nil if it was taken
	// estimates are those of the calls that were asked for, by call.
	estimates map[string]agent.Charge
	watch     func(before State, m Moment, in Input, done *step) // sees each step that is taken; it may be nil
	out       strings.Builder
}

// play tells a story anew: its inputs are the lines that begin with ">".
func play(t *testing.T, story string) string {
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for line := range strings.Lines(story) {
		if input, ok := strings.CutPrefix(line, "> "); ok {
			p.line(strings.TrimSpace(input))
		}
	}
	return p.out.String()
}

func (p *player) line(line string) {
	fmt.Fprintf(&p.out, "> %s\n", line)
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "after":
		d, err := time.ParseDuration(rest)
		require.NoError(p.t, err)
		p.now = p.now.Add(d)
		return
	case "long-history": // the history is long
		p.full = true
		return
	case "half-full": // the history is half full
		p.full, p.half = true, true
		return
	case "near-limit": // the history is nearly full
		p.full, p.half, p.near = true, true, true
		return
	case "signals-wait": // they came before the inputs until "signals-taken"
		p.waiting = true
		return
	case "moves": // what comes next happens elsewhere, to a run that goes on with this one
		p.moved = exported(p.t, p.state)
		p.state = State{}
		return
	case "next": // what comes next happens to the session's next run
		require.Equal(p.t, RunEnded, p.state.Phase)
		p.ended = exported(p.t, p.state)
		p.state = State{}
		return
	case "continued": // a new execution, whose history is short; its state went over the wire
		p.full, p.half, p.near = false, false, false
		raw, err := json.Marshal(p.state)
		require.NoError(p.t, err)
		p.state = State{}
		require.NoError(p.t, json.Unmarshal(raw, &p.state))
		p.step(Continued{})
		return
	}
	p.step(p.input(verb, rest))
}

func (p *player) step(in Input) {
	before, m := p.state, Moment{At: p.now, Revision: Revision, ContinueAsNewSuggested: p.full, HistoryHalfFull: p.half, NearHistoryLimit: p.near, SignalsWaiting: p.waiting}
	done, err := take(p.state, m, in)
	if p.wrong = err; err != nil {
		next, effects, _ := Step(p.state, m, in)
		require.Equal(p.t, before, next, "a refusal leaves the state as it was")
		require.Empty(p.t, effects)
		fmt.Fprintf(&p.out, "  refused %s: %s\n", agent.CodeOf(err), err)
		return
	}
	if p.watch != nil {
		p.watch(before, m, in, done)
	}
	next, effects := done.State, done.effects
	p.state = next
	checkInvariants(p.t, before, next, effects)
	checkModelCalls(p.t, before, in, effects)
	checkRest(p.t, done)
	for _, name := range done.fired {
		fmt.Fprintf(&p.out, "  * %s\n", name)
	}
	for _, e := range newEvents(before, next) {
		fmt.Fprintf(&p.out, "  %d %s%s\n", e.Seq, e.Type, describe(e))
	}
	for _, e := range effects {
		fmt.Fprintf(&p.out, "  -> %s\n", effectText(e))
		if c, ok := e.(CallTool); ok && c.Estimate.Estimated {
			if p.estimates == nil {
				p.estimates = map[string]agent.Charge{}
			}
			p.estimates[c.Call] = c.Estimate
		}
	}
	fmt.Fprintf(&p.out, "  = %s, turn %d%s\n", next.phaseName(), next.Turn.N, waitText(next)+unsavedText(next))
}

// exported is a state as an export has it: it went over the wire, and all of its
// log is stored.
func exported(t require.TestingT, s State) (out State) {
	s.Log = Log{Head: "moved", Seq: s.Log.Seq, Version: 1}
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

func newEvents(before, after State) (events []agent.Event) {
	for _, e := range after.Log.Tail {
		if e.Seq > before.Log.Seq {
			events = append(events, e)
		}
	}
	return events
}

// input reads one line.
func (p *player) input(verb, rest string) Input {
	switch verb {
	case "begin":
		return Begin{Session: "s", Run: "r", Start: agent.Start{Agent: "a", Input: agent.Input{Text: rest}}}
	case "begin-unnamed": // without a session
		return Begin{Session: "0199a6f1-0000-7000-8000-000000000001", Run: "r", Start: agent.Start{Agent: "a", Input: agent.Input{Text: rest}}}
	case "opened": // "sources" are those whose tools are to be listed
		spec := agent.Spec{V: 1}
		said := struct {
			*agent.Spec
			Sources []string
		}{Spec: &spec}
		p.decode(rest, &said)
		spec.Name, spec.Model = "a", "m"
		spec.Definition = spec.Definition.WithDefaults()
		l := p.ended.Log
		return Opened{Spec: &spec, Head: l.Head, Seq: l.Seq, Version: l.Version, Counters: p.ended.Counters, Receipts: p.ended.Receipts(true), Backlog: p.ended.Backlog(), Sources: said.Sources}
	case "listed":
		in := Listed{}
		p.decode(rest, &in)
		return in
	case "not-listed":
		return Listed{Err: agent.Errorf(agent.Code(rest), "no")}
	case "started": // a start that says more
		start := agent.Start{Agent: "a"}
		p.decode(rest, &start)
		if start.Import != "" {
			return Begin{Session: "s", Run: "r2", Start: start}
		}
		return Begin{Session: "s", Run: "r", Start: start}
	case "opened-old": // a session that has a log, in an older version of its state
		in := p.input("opened", "").(Opened)
		in.Head, in.Seq, in.Version, in.StateVersion, in.TerminatedRuns = "old", 40, 7, 1, strings.Fields(rest)
		return in
	case "located":
		in := Located{Head: "old", Seq: 40, Version: 7}
		p.decode(rest, &in)
		return in
	case "imported":
		spec := agent.Spec{V: 1}
		spec.Name, spec.Model = "a", "m"
		return Imported{Export: "e", State: p.moved, Spec: &spec}
	case "not-imported":
		return Imported{Err: agent.Errorf(agent.Code(rest), "no")}
	case "set": // a call that sets keys of the state
		f := strings.SplitN(rest, " ", 2)
		in := ToolReturned{Result: agent.ToolResult{Call: f[0], Tool: p.toolOf(f[0]), Status: agent.CallOK, Text: "kept"}}
		p.decode(f[1], &in.StateChanges)
		return in
	case "saves": // a call that saves artifacts, as name=content
		f := strings.Fields(rest)
		in := ToolReturned{Result: agent.ToolResult{Call: f[0], Tool: p.toolOf(f[0]), Status: agent.CallOK, Text: "made"}}
		for _, one := range f[1:] {
			name, content, _ := strings.Cut(one, "=")
			in.Artifacts = append(in.Artifacts, contentFile(p.state.Session, name, content))
		}
		return in
	case "skill": // a call of the tool skill, with what it has loaded or ended
		call, raw, _ := strings.Cut(rest, " ")
		in := ToolReturned{Result: agent.ToolResult{Call: call, Tool: p.toolOf(call), Status: agent.CallOK, Text: "active"}, Skill: &agent.SkillUpdate{}}
		p.decode(raw, in.Skill)
		return in
	case "notes": // calls, the first of which writes a version of the notebook with one goal
		f := strings.SplitN(rest, " ", 3)
		version, err := strconv.Atoi(f[0])
		require.NoError(p.t, err)
		calls := p.input("calls", f[2]).(ModelReplied)
		calls.Reply.Notebook = &wire.NotebookUpdate{Notebook: agent.Notebook{Version: version, Goals: []string{f[1]}}, Size: 100}
		for range p.state.Spec.Rules {
			calls.Reply.RuleMatches = [][]int{{0}}
		}
		return calls
	case "compacts": // a summary in the place of what is before an event
		f := strings.SplitN(rest, " ", 2)
		from, err := strconv.Atoi(f[0])
		require.NoError(p.t, err)
		return ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{
			Finish: agent.FinishStop, Usage: tokens(), Parts: []agent.Part{{Type: agent.PartText, Text: f[1]}},
			Compaction: &agent.Compaction{Strategy: agent.CompactionHybrid, Reason: agent.CompactedForWindow, KeepFrom: int64(from)},
		}}
	case "terminated": // the workflow was terminated
		return Terminated{Reason: agent.ReasonTerminated}
	case "instructions":
		return Refreshed{Instructions: rest, Policy: p.state.Refreshing.Fetching}
	case "same-instructions":
		return Refreshed{Policy: true, Same: true}
	case "no-instructions":
		return Refreshed{Policy: p.state.Refreshing.Fetching, Err: agent.Errorf(agent.Code(rest), "no")}
	case "not-opened":
		return Opened{Err: agent.Errorf(agent.Code(rest), "no")}
	case "says":
		return ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishStop, Usage: tokens(), Parts: []agent.Part{{Type: agent.PartText, Text: rest}}}}
	case "calls":
		return p.replied(wire.Reply{Finish: agent.FinishToolCalls, Usage: tokens(), Parts: p.calls(rest)})
	case "replies":
		r := wire.Reply{Finish: agent.FinishStop, Usage: tokens()}
		p.decode(rest, &r)
		return p.replied(r)
	case "late": // the reply to the model call of an event, whatever is asked now
		ask, reply, _ := strings.Cut(rest, " ")
		in := p.input("replies", reply).(ModelReplied)
		var err error
		in.AskSeq, err = strconv.ParseInt(ask, 10, 64)
		require.NoError(p.t, err)
		return in
	case "steps": // a flow's next steps: path, tool and arguments of each
		return p.steps(rest)
	case "drops": // what a flow does not wait for any more
		return FlowAnswered{AskSeq: p.state.Turn.AskSeq, Answer: wire.FlowAnswer{Dropped: strings.Fields(rest)}}
	case "flow": // whatever else a flow may answer
		in := FlowAnswered{AskSeq: p.state.Turn.AskSeq}
		p.decode(rest, &in.Answer)
		return in
	case "returns":
		return FlowAnswered{AskSeq: p.state.Turn.AskSeq, Answer: wire.FlowAnswer{Done: true, Text: rest}}
	case "flow-slow":
		return FlowSlow{AskSeq: p.state.Turn.AskSeq}
	case "flow-fails":
		return FlowFailed{AskSeq: p.state.Turn.AskSeq, Err: agent.Errorf(agent.Code(rest), "no")}
	case "fails":
		return ModelFailed{AskSeq: p.state.Turn.AskSeq, Err: agent.Errorf(agent.Code(rest), "no")}
	case "delays":
		return ModelDelayed{AskSeq: p.state.Turn.AskSeq, Until: p.now.Add(10 * time.Minute), Err: agent.Errorf(agent.Code(rest), "slow down")}
	case "result":
		f := append(strings.SplitN(rest, " ", 3), "") // without a text
		return ToolReturned{Result: agent.ToolResult{Call: f[0], Tool: p.toolOf(f[0]), Status: agent.CallStatus(f[1]), Text: f[2]}}
	case "judged": // a check: its call, what it has used, and its verdict
		f := strings.SplitN(rest, " ", 3)
		in := ToolReturned{Result: agent.ToolResult{Call: f[0], Tool: p.toolOf(f[0]), Status: agent.CallOK, Text: f[2]}}
		var u agent.Usage
		if p.decode(f[1], &u); u != (agent.Usage{}) {
			in.Charges = []agent.Charge{{Model: "j", Usage: u, Cost: p.state.modelPrice("j").Of(u)}}
		}
		in.Estimate = p.estimates[f[0]]
		return in
	case "missing": // no worker has what a check or a step needs
		call, what, _ := strings.Cut(rest, " ")
		return ToolReturned{Result: agent.ToolResult{Call: call, Tool: p.toolOf(call), Status: agent.CallSkipped}, Missing: agent.Errorf(agent.CodeUnknownTool, "tool %q is not in this worker's build", what)}
	case "child-judges", "child-answers": // an agent that looks at an answer, and one that gives its own
		f := strings.SplitN(rest, " ", 2)
		return ChildEnded{Session: f[0], Outcome: &agent.Outcome{Session: f[0], Status: agent.StatusCompleted, Reason: "done", Output: json.RawMessage(f[1])}}
	case "generated": // the result of a flow's model call, with what it has used
		f := strings.SplitN(rest, " ", 4)
		in := p.input("result", strings.Join([]string{f[0], f[1], f[3]}, " ")).(ToolReturned)
		in.Charges = []agent.Charge{{Model: "m"}}
		p.decode(f[2], &in.Charges[0].Usage)
		in.Charges[0].Cost, in.Estimate = p.state.modelPrice("m").Of(in.Charges[0].Usage), p.estimates[f[0]]
		return in
	case "lost": // a flow's model call whose worker was lost, with what its attempts have left
		call, charges, _ := strings.Cut(rest, " ")
		in := ToolReturned{Result: agent.ToolResult{Call: call, Tool: agent.GenerateTool, Status: agent.CallUnknown, Text: "lost"}, FromRuntime: true, Estimate: p.estimates[call]}
		p.decode(charges, &in.Charges)
		return in
	case "asks": // a tool, in the middle of its call
		call, text, _ := strings.Cut(rest, " ")
		text, kept, _ := strings.Cut(text, " keeping ")
		return ToolReturned{Result: agent.ToolResult{Call: call, Tool: p.toolOf(call), Status: agent.CallOK}, Question: &agent.ToolQuestion{
			Text: text, Choices: []string{"red", "blue"}, State: json.RawMessage(kept),
		}}
	case "asks-for": // with a deadline of the question's own
		after, rest, _ := strings.Cut(rest, " ")
		in := p.input("asks", rest).(ToolReturned)
		d, err := time.ParseDuration(after)
		require.NoError(p.t, err)
		in.Question.Timeouts = &agent.AnswerTimeouts{Deadline: agent.Duration(d)}
		return in
	case "waits": // a flow's step, in the middle of its call
		call, until, _ := strings.Cut(rest, " ")
		in := ToolReturned{Result: agent.ToolResult{Call: call, Tool: p.toolOf(call), Status: agent.CallOK}, Question: &agent.ToolQuestion{Text: "wait", Name: "w", Until: &agent.Conditions{}}}
		p.decode(until, in.Question.Until)
		return in
	case "sealed":
		return Sealed{Head: fmt.Sprintf("head-%d", p.state.Log.SealingSeq), Seq: p.state.Log.SealingSeq}
	case "not-sealed":
		return SealFailed{Err: agent.Errorf(agent.Code(rest), "no")}
	case "looked": // at the files that a daemon watches
		in := Looked{N: p.state.Watch.N}
		p.decode(rest, &in.Seen)
		return in
	case "not-looked":
		return Looked{N: p.state.Watch.N, Err: agent.Errorf(agent.Code(rest), "no")}
	case "cancelled": // by Temporal itself
		return Cancel{}
	case "signals-taken":
		p.waiting = false
		return SignalsTaken{}
	case "timer":
		return TimerFired{}
	case "handoff-made":
		return HandoffMade{Handoff: agent.Handoff{Summary: rest}}
	case "slow":
		return LocalToolSlow{Call: rest}
	case "not-started": // a tool's step that met a hold
		f := strings.Fields(rest)
		n, err := strconv.Atoi(f[2])
		require.NoError(p.t, err)
		return ToolReturned{Result: agent.ToolResult{Call: f[0], Tool: p.toolOf(f[0]), Status: agent.CallSkipped}, Hold: &agent.HoldRef{Session: f[1], N: n}}
	case "begin-child": // a run below another, which says how
		start := &wire.ChildStart{}
		p.decode(rest, start)
		return Begin{Session: "s/a-1", Run: "r", ChildStart: start, Start: agent.Start{Agent: "a", Input: agent.Input{Text: "go"}}}
	case "made": // the run's own workspace
		return WorkspaceMade{}
	case "not-made":
		return WorkspaceMade{Err: agent.Errorf(agent.CodeInvalidInput, "no repository")}
	case "workspace-ended": // its result, and its branch
		f := append(strings.Fields(rest), "")
		return WorkspaceEnded{Outcome: agent.WorkspaceOutcome{Result: agent.WorkspaceResult(f[0]), Branch: f[1]}}
	case "child-started":
		return ChildStarted{Session: rest, Run: "run of " + rest}
	case "child-refused":
		return ChildStarted{Session: rest, Err: agent.Errorf(agent.CodeChildFailed, "no")}
	case "child-ended":
		f := strings.SplitN(rest, " ", 3)
		return ChildEnded{Session: f[0], Outcome: &agent.Outcome{Session: f[0], Status: agent.Status(f[1]), Reason: "done", Text: f[2]}}
	case "child-says":
		r := wire.ChildReport{Run: "r"}
		p.decode(rest, &r)
		r.From = firstOf(r.From, "run of "+r.Session)
		return ChildReported{Report: r}
	case "ordered":
		o := wire.ParentOrder{}
		p.decode(rest, &o)
		o.Run, o.From = firstOf(o.Run, p.state.Run), firstOf(o.From, p.state.Parent.Start.Parent.Run)
		return ParentOrdered{Order: o}
	case "granted":
		o := wire.GrantOrder{}
		p.decode(rest, &o)
		o.Run, o.From = firstOf(o.Run, p.state.Run), firstOf(o.From, p.state.Parent.Start.Parent.Run)
		return ParentGranted{Order: o}
	case "parent-checked":
		return ParentChecked{Gone: rest == "gone"}
	case "refused":
		return CommandRefused{Verb: rest, Err: agent.Errorf(agent.CodeInvalidInput, "no")}
	}
	return p.said(verb, rest)
}

// said reads a verb and its payload; "update" before the payload says how it came, "@id" is the verb's id,
// "+ana:q-1" an approver who proved to be one.
func (p *player) said(verb, rest string) Input {
	said := CommandReceived{}
	for {
		word, more, _ := strings.Cut(rest, " ")
		switch {
		case word == "update": // and no signal: its sender waits for the answer
			said.PolicyChecked = true
		case strings.HasPrefix(word, "@"):
			said.ID = word[1:]
		case strings.HasPrefix(word, "+"):
			who, request, _ := strings.Cut(word[1:], ":")
			said.Proofs = append(said.Proofs, Proof{Request: request, Principal: who})
		default:
			said.Command = p.command(agent.Verb(strings.TrimSuffix(verb, "!")), rest)
			return said
		}
		rest = more
	}
}

func (p *player) command(verb agent.Verb, payload string) agent.Command {
	switch verb {
	case agent.VerbPause:
		return command[agent.PauseCommand](p, payload)
	case agent.VerbInterrupt:
		return command[agent.InterruptCommand](p, payload)
	case agent.VerbResume:
		return command[agent.ResumeCommand](p, payload)
	case agent.VerbStop:
		return command[agent.StopCommand](p, payload)
	case agent.VerbCancel:
		return command[agent.CancelCommand](p, payload)
	case agent.VerbSend:
		return command[agent.SendCommand](p, payload)
	case agent.VerbAnswer:
		return command[agent.AnswerCommand](p, payload)
	case agent.VerbApprove:
		return command[agent.ApproveCommand](p, payload)
	case agent.VerbReject:
		return command[agent.RejectCommand](p, payload)
	case agent.VerbAnswers:
		return command[agent.AnswersCommand](p, payload)
	case agent.VerbEmit:
		return command[agent.EmitCommand](p, payload)
	}
	require.FailNow(p.t, "unknown input", verb)
	return nil
}

func command[C agent.Command](p *player, payload string) agent.Command {
	var c C
	p.decode(payload, &c)
	return c
}

// replied reads the calls of await_resumption as the step does that asks the model, except for
// checks.
func (p *player) replied(r wire.Reply) Input {
	for _, part := range r.Parts {
		if part.Call == nil || part.Call.Tool != agent.AwaitResumptionTool {
			continue
		}
		parking := wire.ParkRequest{}
		if json.Unmarshal(part.Call.Arguments, &parking) != nil || parking.Reason == "" {
			parking.Err = agent.Errorf(agent.CodeInvalidInput, "reason is missing")
		}
		r.ParkRequests = append(r.ParkRequests, parking)
	}
	return ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: r}
}

func tokens() agent.Usage { return agent.Usage{Input: 10, Output: 5} }

func (p *player) decode(raw string, into any) {
	if raw != "" {
		d := json.NewDecoder(strings.NewReader(raw))
		d.DisallowUnknownFields()
		require.NoError(p.t, d.Decode(into), raw)
	}
}

// calls reads "add {"a":1} | add not json".
func (p *player) calls(rest string) (parts []agent.Part) {
	for c := range strings.SplitSeq(rest, " | ") {
		tool, arguments, _ := strings.Cut(c, " ")
		call := &agent.ToolCall{Tool: tool}
		if json.Valid([]byte(arguments)) {
			call.Arguments = json.RawMessage(arguments)
		} else {
			call.Malformed = arguments
		}
		parts = append(parts, agent.Part{Type: agent.PartToolCall, Call: call})
	}
	return parts
}

func (p *player) toolOf(call string) string {
	for _, c := range p.state.Calls.List {
		if c.ID == call {
			return c.Tool
		}
	}
	return "?"
}

// steps reads what a flow asks for: "path tool {…} | path tool {…}".
func (p *player) steps(rest string) Input {
	in := FlowAnswered{AskSeq: p.state.Turn.AskSeq}
	for _, one := range strings.Split(rest, " | ") {
		f := strings.SplitN(strings.TrimSpace(one), " ", 3)
		c := agent.ToolCall{ProviderID: f[0], Tool: f[1], Arguments: json.RawMessage("{}")}
		if len(f) > 2 {
			c.Arguments = json.RawMessage(f[2])
		}
		in.Answer.Steps = append(in.Answer.Steps, wire.FlowStep{ToolCall: c})
		if c.Tool == agent.AwaitResumptionTool {
			park := wire.ParkRequest{}
			p.decode(string(c.Arguments), &park.Conditions)
			in.Answer.ParkRequests = append(in.Answer.ParkRequests, park)
		}
	}
	return in
}
