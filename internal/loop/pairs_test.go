package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// world does what a machine asks for, one thing after the other, and says two
// verbs on the way.
type world struct {
	t       *testing.T
	state   State
	now     time.Time
	todo    []Input
	turn    int
	prompt  bool // what is given up comes back as held at once; else it is too late for that
	checks  bool // its answer is checked
	history []string
}

// A run with a tool, an approval beside another tool, a question, a park and an
// answer: everything that a run can be at.
var pairsScript = []string{
	`[{"tool":"add","arguments":{"a":1}}]`,
	`[{"tool":"pay","arguments":{"eur":1}},{"tool":"add","arguments":{"a":2}}]`,
	`[{"tool":"ask_user","arguments":{"question":"Where to?"}},{"tool":"add","arguments":{"a":3}}]`,
	`[{"tool":"await_resumption","arguments":{"reason":"wait"}}]`,
}

func newWorld(t *testing.T, prompt bool) *world { return newWorldWith(t, prompt, false) }

func newWorldWith(t *testing.T, prompt, checks bool) *world {
	w := &world{checks: checks, t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), prompt: prompt}
	w.step(Begin{Session: "s", Run: "r", Start: agent.Start{Agent: "a", Input: agent.Input{Text: "go"}}})
	return w
}

// step gives the machine an input, and notes what it asks for.
func (w *world) step(in Input) error {
	before := w.state
	next, effects, err := Step(w.state, Moment{At: w.now, Revision: Revision}, in)
	w.history = append(w.history, fmt.Sprintf("%T %+v -> %s %s %v", in, in, next.phaseName(), next.Status(), err))
	if err != nil {
		require.Equal(w.t, before, next, "a refusal changes nothing")
		return err
	}
	w.state = next
	checkInvariants(w.t, before, next, effects)
	for _, e := range effects {
		w.note(e)
	}
	return nil
}

func (w *world) note(e Effect) {
	switch e := e.(type) {
	case Open:
		spec := agent.Spec{V: 1, Definition: agent.Definition{
			Name: "a", Model: "m", Tools: []string{agent.AskUserTool, agent.AwaitResumptionTool}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}},
		}.WithDefaults(), Toolset: []agent.ToolSpec{{Name: "add", ReadOnly: true}, {Name: "pay"}}}
		if w.checks {
			spec.Verify = agent.Verify{Checks: []agent.Check{{Name: "tests", Tool: "run"}, {Name: "rubric", Judge: &agent.Judge{Model: "j"}}}, Max: 3}
		}
		w.todo = append(w.todo, Opened{Spec: &spec})
	case CallModel:
		w.todo = append(w.todo, w.reply(e))
	case CallTool:
		in := ToolReturned{Result: agent.ToolResult{Call: e.Call, Tool: e.Tool, Status: agent.CallOK, Text: "1"}}
		if e.Check != nil { // the first answer is vetoed
			in.Result.Text = fmt.Sprintf(`{"verdict":%q}`, map[bool]string{true: "veto", false: "accept"}[w.state.Checks.Vetoes == 0])
		}
		w.todo = append(w.todo, in)
	case Seal:
		w.todo = append(w.todo, Sealed{Head: "h", Seq: e.To})
	case MakeHandoff:
		w.todo = append(w.todo, HandoffMade{Handoff: e.Known})
	case ContinueAsNew:
		w.todo = append(w.todo, Continued{})
	case CancelInFlight:
		w.abandon()
	}
}

// pairsUsage is what each call of the model uses: more than is guessed of one that is dropped.
var pairsUsage = agent.Usage{Input: 2000, Output: 5}

func (w *world) reply(e CallModel) Input {
	in := ModelReplied{AskSeq: e.Seq, Reply: wire.Reply{Finish: agent.FinishStop, Usage: pairsUsage, Parts: []agent.Part{{Type: agent.PartText, Text: "done"}}}}
	if e.Summary != "" || w.turn >= len(pairsScript) {
		return in
	}
	var calls []agent.ToolCall
	require.NoError(w.t, json.Unmarshal([]byte(pairsScript[w.turn]), &calls))
	w.turn++
	in.Reply = wire.Reply{Finish: agent.FinishToolCalls, Usage: pairsUsage}
	for i, c := range calls {
		in.Reply.Parts = append(in.Reply.Parts, agent.Part{Type: agent.PartToolCall, Call: &calls[i]})
		rules := []int{}
		if c.Tool == "pay" {
			rules = []int{0}
		}
		in.Reply.RuleMatches = append(in.Reply.RuleMatches, rules)
		if c.Tool == agent.AwaitResumptionTool {
			in.Reply.ParkRequests = append(in.Reply.ParkRequests, wire.ParkRequest{Reason: "wait", Conditions: agent.Conditions{After: agent.Duration(time.Hour), OnTimeout: agent.OnTimeoutResumeWithInput, Input: "go"}})
		}
	}
	return in
}

func (w *world) abandon() {
	if !w.prompt {
		return
	}
	for i, in := range w.todo {
		switch in := in.(type) {
		case ModelReplied:
			w.todo[i] = ModelReplied{AskSeq: in.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld, Usage: in.Reply.Usage, Parts: []agent.Part{{Type: agent.PartText, Text: "I was"}}}}
		case ToolReturned:
			in.Result.Partial = true
			w.todo[i] = in
		}
	}
}

// next does the next thing: what is in flight, or what somebody would do to a run
// that rests.
func (w *world) next() {
	if len(w.todo) > 0 {
		in := w.todo[0]
		w.todo = w.todo[1:]
		if err := w.step(in); err != nil {
			require.ErrorIs(w.t, err, agent.CodeStale, "%+v", in)
		}
		return
	}
	switch {
	case len(w.state.Holds.List) > 0:
		require.NoError(w.t, w.step(CommandReceived{Command: agent.ResumeCommand{}}))
	case len(w.state.Requests.Open) > 0 && w.state.Requests.Open[0].Type == agent.RequestApproval:
		require.NoError(w.t, w.step(CommandReceived{Command: agent.ApproveCommand{Request: w.state.Requests.Open[0].ID}}))
	case len(w.state.Requests.Open) > 0:
		require.NoError(w.t, w.step(CommandReceived{Command: agent.AnswerCommand{Request: w.state.Requests.Open[0].ID, Text: "Rome"}}))
	case !w.state.NextTimer.IsZero():
		w.now = w.state.NextTimer
		require.NoError(w.t, w.step(TimerFired{}))
	default:
		require.Fail(w.t, "the run is stuck", "%+v", w.state)
	}
}

var pairsVerbs = []agent.Command{
	agent.PauseCommand{}, agent.InterruptCommand{}, agent.ResumeCommand{}, agent.ResumeCommand{Message: "hello", FromSummary: true}, agent.StopCommand{}, agent.CancelCommand{},
	agent.SendCommand{Text: "hi"}, agent.SendCommand{Text: "hi", Mode: agent.SendQueue}, agent.SendCommand{Text: "hi", Mode: agent.SendInterrupt},
	agent.AnswerCommand{Request: "q-2", Text: "Oslo"}, agent.ApproveCommand{Request: "q-1"}, agent.RejectCommand{Request: "q-1", Reason: "no"}, agent.EmitCommand{Topic: "t"},
}

// Every verb and every pair of two verbs, at every step of a run: whatever is
// said, and when, the invariants hold and the run comes to an end. Unless all tests are
// asked for, a fifth of them are played.
func TestEveryPairOfVerbsAtEveryStep(t *testing.T) {
	t.Parallel()
	const most = 200
	length := 0
	for w := newWorld(t, true); w.state.Phase != RunEnded; length++ {
		w.next()
	}
	require.Greater(t, length, 15)
	for _, prompt := range []bool{true, false} {
		t.Run(fmt.Sprintf("prompt %t", prompt), func(t *testing.T) {
			t.Parallel()
			everyPair(length, func(i, j int, first, second agent.Command) {
				play2(t, newWorld(t, prompt), i, j, first, second, most)
			})
		})
	}
}

// The same of a run whose answer is checked, from the step on at which its first check begins.
func TestEveryPairOfVerbsDuringChecks(t *testing.T) {
	t.Parallel()
	const most = 200
	length, begins := 0, 0
	for w := newWorldWith(t, true, true); w.state.Phase != RunEnded; length++ {
		if w.next(); w.state.Checks.Made > 0 && begins == 0 {
			begins = length + 1
		}
	}
	require.Greater(t, length-begins, 4)
	for _, prompt := range []bool{true, false} {
		t.Run(fmt.Sprintf("prompt %t", prompt), func(t *testing.T) {
			t.Parallel()
			everyPair(length-begins, func(i, j int, first, second agent.Command) {
				play2(t, newWorldWith(t, prompt, true), begins+i, begins+j, first, second, most)
			})
		})
	}
}

// everyPair plays each pair of verbs at each pair of steps, or a fifth of them.
func everyPair(length int, play func(i, j int, first, second agent.Command)) {
	sometimes := every(5)
	for _, first := range pairsVerbs {
		for _, second := range pairsVerbs {
			for i := range length {
				for j := i; j < length; j += 1 + (j-i)*2 { // near to each other, and further apart
					sometimes(func() { play(i, j, first, second) })
				}
			}
		}
	}
}

func play2(t *testing.T, w *world, i, j int, first, second agent.Command, most int) {
	prompt := w.prompt
	defer func() {
		if t.Failed() {
			t.Logf("prompt %t: %T at %d, %T at %d\n%s", prompt, first, i, second, j, join(w.history))
			t.FailNow()
		}
	}()
	for n := 0; w.state.Phase != RunEnded; n++ {
		require.Less(t, n, most, "the run does not end")
		for _, say := range []struct {
			at      int
			command agent.Command
		}{{i, first}, {j, second}} {
			if n == say.at && w.state.Phase != RunEnded && w.state.Phase != RunOpening {
				w.say(say.command)
			}
		}
		if w.state.Phase != RunEnded {
			w.next()
		}
	}
}

func (w *world) say(c agent.Command) {
	err := w.step(CommandReceived{Command: c})
	if err == nil {
		return
	}
	codes := []agent.Code{agent.CodeNotSuspended, agent.CodeNeedsAnswer, agent.CodeStale, agent.CodeClosed, agent.CodeNotFound, agent.CodeInvalidInput}
	require.True(w.t, slices.Contains(codes, agent.CodeOf(err)), "%v", err)
}

func join(lines []string) (text string) {
	for _, l := range lines {
		text += l + "\n"
	}
	return text
}
