package loop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Equal calls in a row: the model is told at the first number and the run ends
// at the second (catalogue X-26).
const (
	repeatWarn  = 3
	repeatLimit = 6
)

// What one reply may ask for, and how much all its results may say together, in
// bytes: they become one message, which has to fit into a payload.
const (
	maxCalls   = 64
	maxResults = 256 << 10
)

// dispatch takes the calls of a reply. Each is recorded before it is made, and
// so counts as a repeat whatever becomes of it (catalogue PA-87).
func (s *step) dispatch(calls []agent.ToolCall, in Replied, given *Giving) {
	s.Phase, s.Calls = Working, nil
	var looping *Call
	for _, c := range calls {
		s.record(agent.Event{Type: agent.CallRequested, Call: &agent.CallNote{Call: c.ID, Tool: c.Tool}})
		if c.Tool != agent.FinishTool {
			s.Ticks = 0
		}
		s.Calls = append(s.Calls, Call{ToolCall: c, State: Waiting})
		if last := &s.Calls[len(s.Calls)-1]; s.repeated(last) {
			looping = last
		}
	}
	r := in.Reply
	switch {
	case looping != nil:
		s.looped(looping.Tool)
		return
	case given != nil:
		s.skipWaiting(given.Why)
		return
	case s.Stopping != nil:
		s.skipWaiting(whyStopped)
		return
	}
	if r.OutputFault != "" {
		s.Repaired++
	}
	if s.Repaired > s.Spec.Repairs {
		s.fail(agent.Errorf(agent.BadOutput, "the output does not fit the agent's schema: %s", r.OutputFault))
		return
	}
	s.rejectSome(r)
	if !s.takeAside(in) {
		s.rule(r)
	}
}

// looped ends a run whose model makes one call without end, or asks about it.
func (s *step) looped(tool string) {
	err := agent.Errorf(agent.LoopDetected, "the model made the same call of %s %d times in a row", tool, repeatLimit)
	if s.Spec.OnLoop == agent.AskOnReached {
		s.skipWaiting("the same call was made too often")
	}
	s.reached(err, s.Spec.OnLoop)
}

func (s *step) skipWaiting(why string) {
	for i := range s.Calls {
		if s.Calls[i].State == Waiting {
			s.skip(i, why)
		}
	}
}

// rejectSome answers the calls that are not to be made whatever the rules say.
func (s *step) rejectSome(r agent.Reply) {
	for i := range s.Calls {
		if i >= maxCalls {
			s.settle(i, agent.ToolResult{
				Call: s.Calls[i].ID, Tool: s.Calls[i].Tool, Status: agent.CallRejected,
				Text: fmt.Sprintf("Not executed: one reply may ask for %d calls. Ask for the others in the next.", maxCalls),
			})
			continue
		}
		if result, ok := s.reject(s.Calls[i].ToolCall, r); ok {
			s.settle(i, result)
		}
	}
}

// repeated counts a call that equals the one before it.
func (s *step) repeated(c *Call) bool {
	digest := callDigest(c.ToolCall)
	if s.Repeat.Digest != digest {
		s.Repeat = Repeat{Digest: digest}
	}
	s.Repeat.Count++
	if s.Repeat.Count == repeatWarn {
		c.Note = fmt.Sprintf("You have made this same call %d times in a row. Its result will not change: do something else.", repeatWarn)
	}
	return s.Repeat.Count >= repeatLimit
}

// reject answers a call that is not to be made.
func (s *step) reject(c agent.ToolCall, r agent.Reply) (agent.ToolResult, bool) {
	result := agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallRejected}
	_, known := s.Spec.Tool(c.Tool)
	switch {
	case slices.Contains(s.Beyond, c.Tool):
		result.Text = fmt.Sprintf("Permission denied: %s is beyond what this agent may use.", c.Tool)
	case !known:
		result.Text = fmt.Sprintf("Tool not found: %s. The tools are: %s.", c.Tool, s.toolNames())
	case c.Malformed != "":
		result.Text = malformed(c.Malformed)
	case c.Tool == agent.FinishTool && s.finishes():
		return s.finishCall(c, r), true
	default:
		return result, false
	}
	return result, true
}

// finishes tells whether the tool finish is ours.
func (s *step) finishes() bool { return s.Spec.Completion == agent.CompleteTool }

func (s *step) finishCall(c agent.ToolCall, r agent.Reply) agent.ToolResult {
	if r.OutputFault != "" {
		return agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallRejected, Text: "The arguments do not fit: " + r.OutputFault}
	}
	return agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallOK, Text: "The work is done."}
}

func (s *step) toolNames() string {
	var names []string
	for _, t := range s.Spec.Toolset {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// startCalls starts as many waiting calls as may run at once, and ends the turn
// when there is none left.
func (s *step) startCalls() {
	active := s.active()
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.State != Waiting || !s.mayBegin(c) {
			continue
		}
		switch tool, _ := s.Spec.Tool(c.Tool); {
		case tool.By == agent.BySubAgent:
			if !s.held() {
				s.delegate(c)
			}
			continue
		case slices.Contains(lifecycleNames, c.Tool):
			s.oversee(c)
			continue
		case active >= s.Spec.ParallelTools:
			continue
		}
		active++
		c.State, c.Since = Active, s.At
		s.record(agent.Event{Type: agent.CallStarted, Call: &agent.CallNote{Call: c.ID, Tool: c.Tool}})
		s.callTool(c)
	}
	if !slices.ContainsFunc(s.Calls, func(c Call) bool { return c.State != Done }) {
		s.endCalls()
	}
}

func (s *step) callTool(c *Call) {
	tool, _ := s.Spec.Tool(c.Tool)
	s.do(CallTool{Turn: s.Turn, Call: c.ToolCall, Of: c.Of, Tool: tool, Edited: c.Edited, Approver: c.Approver, Answers: c.Answers})
}

// mayBegin tells whether a call may begin now. A pause lets the turn in progress
// end; a run that rests under any hold begins nothing. What had to be approved
// waits for the rest of what is asked.
func (s *step) mayBegin(c *Call) bool {
	resting := s.Wait != nil && s.Wait.Resting
	for _, h := range s.Holds {
		if resting || h.Verb == agent.Interrupt {
			return false
		}
	}
	return !c.Approved || len(s.Requests) == 0
}

func (s *step) active() (n int) {
	for _, c := range s.Calls {
		if c.State == Active {
			n++
		}
	}
	return n
}

// returned takes a result. A late one, for a run that went on without it, is refused.
func (s *step) returned(in Returned) error {
	r := in.Result
	i := slices.IndexFunc(s.Calls, func(c Call) bool { return c.ID == r.Call && c.State == Active })
	if s.Phase != Working || i < 0 {
		return s.refuse("the result of call %s is not waited for", r.Call)
	}
	if in.Hold != nil && r.Status == agent.CallSkipped && !s.justified(*in.Hold) {
		s.outdated(*in.Hold)
		s.callTool(&s.Calls[i]) // it was not begun
		return nil
	}
	switch {
	case in.Ask != nil && s.Stopping == nil:
		s.askFor(i, *in.Ask)
	case in.Ask != nil:
		s.settle(i, agent.ToolResult{Call: r.Call, Tool: r.Tool, Status: agent.CallFailed, Text: "Not finished: it asked something, and nobody is asked any more, since the run is being stopped."})
	default:
		if r.Status == agent.CallOK {
			s.keepSet(i, in.Set) // what a call that failed has set is not kept
		}
		s.settle(i, r)
	}
	s.heed(in.Hold)
	if s.active() == 0 {
		s.Giving = nil
	}
	return nil
}

// slow makes a call anew by a step of its own that was too slow for a local one,
// unless the run gives up what it has in flight.
func (s *step) slow(call string) error {
	i := slices.IndexFunc(s.Calls, func(c Call) bool { return c.ID == call && c.State == Active })
	if s.Phase != Working || i < 0 {
		return s.refuse("the result of call %s is not waited for", call)
	}
	c := &s.Calls[i]
	if s.Giving != nil {
		s.settle(i, agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallFailed, Text: "The tool was slow, and was not called again: " + s.Giving.Why + "."})
		if s.active() == 0 {
			s.Giving = nil
		}
		return nil
	}
	tool, _ := s.Spec.Tool(c.Tool)
	s.do(CallTool{Turn: s.Turn, Call: c.ToolCall, Of: c.Of, Tool: tool, Answers: c.Answers, Regular: true})
	return nil
}

// settle gives a call its one result.
func (s *step) settle(i int, r agent.ToolResult) {
	c := &s.Calls[i]
	if most := maxResults / len(s.Calls); len(r.Text) > most {
		whole := max(r.Size, len(r.Text))
		r.Text, r.Size = agent.Cut(r.Text, most, whole), whole
	}
	if c.Note != "" {
		r.Text += "\n\n" + c.Note
	}
	if c.Edited && r.Status != agent.CallSkipped {
		r.Text = fmt.Sprintf("[made with other arguments, as the user decided: %s]\n%s", c.Arguments, r.Text)
	}
	if r.Status == agent.CallUnknown {
		s.unknown(*c)
	}
	c.State, c.Result = Done, &r
	event := agent.Event{Type: agent.CallDone, Call: &agent.CallNote{Call: c.ID, Tool: c.Tool, Status: r.Status}}
	if r.Status == agent.CallUnknown {
		event.Type = agent.CallLost
	}
	s.record(event)
	s.count(c.Tool, r.Status)
}

func (s *step) count(tool string, status agent.CallStatus) {
	s.Tools = slices.Clone(s.Tools) // checkpoints keep the older counts
	if _, known := s.Spec.Tool(tool); !known && len(s.Tools) >= maxCounted {
		tool = otherTools
	}
	i := slices.IndexFunc(s.Tools, func(t agent.ToolCount) bool { return t.Tool == tool })
	if i < 0 {
		i = len(s.Tools)
		s.Tools = append(s.Tools, agent.ToolCount{Tool: tool})
	}
	t := &s.Tools[i]
	t.Calls++
	switch status {
	case agent.CallOK:
		t.OK++
	case agent.CallFailed:
		t.Failed++
	case agent.CallUnknown:
		t.Unknown++
	case agent.CallSkipped:
		t.Skipped++
	default:
		t.Rejected++
	}
}

// endCalls ends a turn whose calls all have their results.
func (s *step) endCalls() {
	s.sayResults()
	s.endTurn()
	finish := slices.IndexFunc(s.Calls, func(c Call) bool {
		return s.finishes() && c.Tool == agent.FinishTool && c.Result.Status == agent.CallOK
	})
	var arguments json.RawMessage
	if finish >= 0 {
		arguments = s.Calls[finish].Arguments
	}
	s.Calls, s.Phase = nil, Resting
	switch {
	case finish < 0:
	case s.Stopping != nil:
		s.Due = false // what it was at is done; what was sent meanwhile is said at the end
	case !s.deliver(true):
		s.finish(arguments)
	}
}

// sayResults makes the results one message, in the order of the calls
// (catalogue HA-45).
func (s *step) sayResults() {
	m := agent.Message{Role: agent.RoleTool}
	for _, c := range s.Calls {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartResult, Result: c.Result})
	}
	s.say(m)
}

// abandonTurn gives every call that is still open a result, since the run ends
// in mid-turn: no call of the model is ever left without one.
func (s *step) abandonTurn() {
	if len(s.Calls) == 0 {
		return
	}
	for i, c := range s.Calls {
		r := agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallSkipped, Text: "Not executed: the run ended before."}
		s.Calls[i].Request = ""
		switch c.State {
		case Done:
			continue
		case Below:
			r.Text = "Not finished: the run ended before the agent did."
		case Active:
			r.Status, r.Text = agent.CallUnknown, "Unknown outcome: the run ended while the call was in progress. It may or may not have had its effect."
		}
		s.settle(i, r)
	}
	s.sayResults()
	s.endTurn()
	s.Calls = nil
}

// callDigest is equal for calls that ask for the same thing, however their JSON is written.
func callDigest(c agent.ToolCall) string {
	sum := sha256.Sum256(slices.Concat([]byte(c.Tool+"\x00"), canonical(c.Arguments), []byte(c.Malformed)))
	return hex.EncodeToString(sum[:8])
}

// Digest is the first 16 hex digits of the SHA-256 of canonical arguments: what a
// person compares to be sure which arguments were seen (wire §4).
func Digest(arguments json.RawMessage) string {
	sum := sha256.Sum256(canonical(arguments))
	return hex.EncodeToString(sum[:8])
}

// canonical rewrites JSON with sorted keys and without white space.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}
