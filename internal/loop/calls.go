package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Calls is the part that keeps the tool calls of the turn, each with a machine of its
// own, and what became of those before.
type Calls struct {
	List []Call `json:"list,omitempty"`
	// Counts count what became of all calls of the conversation, by tool, and Before those of
	// them that the run has found: it is a fork of the one that made them.
	Counts []agent.ToolCount `json:"counts,omitempty"`
	Before []agent.ToolCount `json:"before,omitempty"`
	// Unknown are calls of which nobody knows whether they had their effect.
	Unknown []agent.UnknownEffect `json:"unknown,omitempty"`
}

// Call is a tool call of the turn.
type Call struct {
	agent.ToolCall
	State CallState `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Result is set when the call is done.
	Result *agent.ToolResult `json:"result,omitempty"`
	// Note is a remark of the runtime that is added to the result's text.
	Note string `json:"note,omitempty"`
	// Of is the run that asked for the call, if this run goes on with that one's turn: an
	// effect that both had would have one key.
	Of string `json:"of,omitempty"`
	// Request is what the call waits for, while it is open.
	Request string `json:"request,omitempty"`
	// On are the sub-agents that the call waits for; empty for the one that it started.
	On []string `json:"on,omitempty"`
	// Approved calls begin when no request of the turn is open any more.
	Approved bool `json:"approved,omitempty"`
	// Approver is who proved to be one and approved the call.
	Approver string `json:"approver,omitempty"`
	// Edited means that the arguments are a person's and not the model's.
	Edited bool `json:"edited,omitempty"`
	// Answers are those to what the tool has asked.
	Answers []agent.ToolAnswer `json:"answers,omitempty"`
	// Set are keys of the session's state that the call has set.
	Set map[string]json.RawMessage `json:"set,omitempty"`
	// Bytes is what the result counts in the log (see weight).
	Bytes int `json:"bytes,omitempty"`
	// Size is the call's length in JSON, at most; Said is that of its result's text.
	Size int `json:"size,omitempty"`
	Said int `json:"said,omitempty"`
}

// What one reply may ask for, and how much all its results may say together, in bytes:
// they become one message, which has to fit into a payload. Calls behind maxAsked are
// left out of the message.
const (
	maxCalls   = 64
	maxAsked   = 128
	maxResults = 256 << 10
	// maxProviderID bounds a provider's id of a call by its weight.
	maxProviderID = 256
)

// Tools that the agent does not have are counted under their own names until so many
// rows are there, and then in one: every checkpoint and the outcome have them all.
const (
	maxCounted = 128
	otherTools = "(others)"
)

// maxUnknown bounds how many calls of unknown outcome a handoff names: the last ones.
const maxUnknown = 64

func (c Calls) clone() Calls {
	c.List = slices.Clone(c.List)
	c.Counts = slices.Clone(c.Counts)
	return c
}

// find is the place of a call; -1 if the turn has none with this id.
func (c Calls) find(id string) int {
	return slices.IndexFunc(c.List, func(k Call) bool { return k.ID == id })
}

// running is the place of a call that a tool is at; -1 if no tool is.
func (c Calls) running(id string) int {
	return slices.IndexFunc(c.List, func(k Call) bool { return k.ID == id && k.State == Active })
}

// begun reports whether a tool was at the call.
func (k Call) begun() bool { return !k.Since.IsZero() }

// decided reports whether a person has let the call be made, or be made again.
func (k Call) decided() bool { return k.Approved || len(k.Answers) > 0 }

func (c Calls) count(state CallState) (n int) {
	for _, k := range c.List {
		if k.State == state {
			n++
		}
	}
	return n
}

func (c Calls) active() int { return c.count(Active) }

// done reports whether every call of the turn has its result.
func (c Calls) done() bool { return c.count(Done) == len(c.List) }

// ask begins a turn's calls.
func (c *Calls) ask(calls []agent.ToolCall) {
	c.List = nil
	for i, call := range calls {
		c.List = append(c.List, Call{ToolCall: call, State: Waiting})
		c.measure(i)
	}
}

// measure measures a call after a change.
func (c *Calls) measure(i int) { c.List[i].Size = c.List[i].inJSON() }

// forget ends the turn's calls.
func (c *Calls) forget() { c.List = nil }

func (c *Calls) remark(i int, note string) { c.List[i].Note = note }

// begin makes a call one that a tool is at.
func (c *Calls) begin(i int, at time.Time) {
	enter(callMoves, &c.List[i].State, Active)
	c.List[i].Since = at
}

// hand makes a call one that waits for sub-agents; for the one that it starts if on is
// empty.
func (c *Calls) hand(i int, on []string, at time.Time) {
	enter(callMoves, &c.List[i].State, Below)
	c.List[i].On, c.List[i].Since = on, at
}

// await makes a call wait for the answer to a request.
func (c *Calls) await(i int, request string) {
	enter(callMoves, &c.List[i].State, Awaiting)
	c.List[i].Request = request
}

// approve lets a call that awaits its approval be made, with edited arguments if there
// are any.
func (c *Calls) approve(i int, approver string, edited json.RawMessage) {
	enter(callMoves, &c.List[i].State, Waiting)
	k := &c.List[i]
	k.Request, k.Approved, k.Approver = "", true, approver
	if len(edited) > 0 {
		k.Arguments, k.Edited = edited, true
	}
	c.measure(i)
}

// answer lets a call be made again whose tool has asked for it itself.
func (c *Calls) answer(i int, a agent.ToolAnswer) {
	enter(callMoves, &c.List[i].State, Waiting)
	k := &c.List[i]
	answers := slices.Clone(k.Answers)
	for j := range answers {
		answers[j].State = nil // the newest counts, and each may be long
	}
	k.Request, k.Answers = "", append(answers, a)
	c.measure(i)
}

// growth is how much longer a call is with arguments of a person.
func (c Calls) growth(i int, edited json.RawMessage) int {
	if len(edited) == 0 {
		return 0
	}
	k := c.List[i]
	k.Arguments, k.Edited = edited, true
	return k.inJSON() - c.List[i].Size
}

// finish gives a call its one result, of which so many bytes are somebody's, and returns it
// as it is told: no longer than there is space. What the log has of the call is not kept any
// more.
func (c *Calls) finish(i int, r agent.ToolResult, bytes, space int) agent.ToolResult {
	enter(callMoves, &c.List[i].State, Done)
	k := &c.List[i]
	most := maxResults / len(c.List)
	k.Bytes = min(bytes, most)
	k.Said = min(space, resultInJSON(r.Text, bytes), ownWords+7*most)
	if most = min(most, bytesIn(r.Text, k.Said)); len(r.Text) > most {
		whole := max(r.Size, len(r.Text))
		r.Text, r.Size = agent.Cut(r.Text, most, whole), whole
	}
	if k.Note != "" {
		r.Text += "\n\n" + k.Note
	}
	if k.Edited && r.Status != agent.CallSkipped {
		r.Text = fmt.Sprintf("[made with other arguments, as the user decided: %s]\n%s", k.Arguments, r.Text)
		k.Said += k.edits()
	}
	k.Request, k.Result, k.Malformed, k.Answers = "", &r, "", nil
	if k.Tool != agent.FinishTool {
		k.Arguments = nil
	}
	c.measure(i)
	return r
}

// recount counts anew how long the calls are, and what their results say.
func (c *Calls) recount() {
	for i, k := range c.List {
		if c.List[i].Bytes, c.List[i].Said = 0, 0; k.Result != nil {
			c.List[i].Bytes, c.List[i].Said = min(len(k.Result.Text), maxResults), inJSON(k.Result.Text)
		}
		c.measure(i)
	}
}

// moved makes the calls those of a run that goes on elsewhere with the turn of another.
func (c *Calls) moved(from string) {
	for i := range c.List {
		c.List[i].Of = firstOf(c.List[i].Of, from)
	}
}

// goesOn continues the counts of the run that this one is a fork of.
func (c *Calls) goesOn(counts []agent.ToolCount) { c.Counts, c.Before = counts, counts }

// tally counts a call that is done; known means that the agent has the tool.
func (c *Calls) tally(tool string, known bool, status agent.CallStatus) {
	c.Counts = slices.Clone(c.Counts) // checkpoints keep the older counts
	if !known && len(c.Counts) >= maxCounted {
		tool = otherTools
	}
	i := slices.IndexFunc(c.Counts, func(t agent.ToolCount) bool { return t.Tool == tool })
	if i < 0 {
		i = len(c.Counts)
		c.Counts = append(c.Counts, agent.ToolCount{Tool: tool})
	}
	t := &c.Counts[i]
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

// lost remembers a call of which nobody knows whether it had its effect.
func (c *Calls) lost(i int, run string) {
	k := c.List[i]
	c.Unknown = append(slices.Clip(c.Unknown), agent.UnknownEffect{
		Call: k.ID, Tool: k.Tool, Key: agent.IdempotencyKey(firstOf(k.Of, run), k.ID), Since: k.Since.UTC().Format(time.RFC3339),
	})
	if n := len(c.Unknown) - maxUnknown; n > 0 {
		c.Unknown = slices.Clone(c.Unknown[n:])
	}
}

// maxSet bounds what the calls of one turn set together, in bytes of keys and JSON: one
// event of the log keeps it. It is what a session's whole state may have.
const maxSet = 256 << 10

// keep keeps what a call has set, or says in its result that it did not: a run that rests
// before the turn ends has only so much space.
func (c *Calls) keep(i int, set map[string]json.RawMessage, space int) {
	size := setSize(set)
	for _, k := range c.List {
		size += setSize(k.Set)
	}
	if size > maxSet || setInJSON(set) > space {
		c.List[i].Note = fmt.Sprintf("[what the call set was not kept: the calls of this turn set %d bytes, and at most %d are taken]", size, maxSet)
		return
	}
	c.List[i].Set = set
	c.measure(i)
}

// returned takes a result. A late one, for a run that went on without it, is refused.
func (s *step) returned(in Returned) error {
	r := in.Result
	i := s.Calls.running(r.Call)
	if i < 0 {
		return s.refuse("the result of call %s is not waited for", r.Call)
	}
	if in.Hold != nil && r.Status == agent.CallSkipped && !s.justified(*in.Hold) {
		s.outdated(*in.Hold)
		if !s.lacksRoom() {
			s.toolStep(i, false) // it was not begun
			return nil
		}
	}
	switch {
	case in.Ask != nil && s.End.Stopping == nil:
		s.askFor(i, *in.Ask)
	case in.Ask != nil:
		s.settle(i, agent.CallFailed, "Not finished: it asked something, and nobody is asked any more, since the run is being stopped.")
	default:
		if r.Status == agent.CallOK {
			s.Calls.keep(i, in.Set, s.space()) // what a call that failed has set is not kept
		}
		said := len(r.Text)
		if in.Own {
			said = 0
		}
		s.settleAs(i, r, said)
	}
	if in.Relisted != nil {
		s.relisted(*in.Relisted)
	}
	s.heed(in.Hold)
	if s.Calls.active() == 0 {
		s.End.endAbort()
	}
	return nil
}

// slow makes a call anew by a step of its own that was too slow for a local one, unless
// the run gives up what it has in flight. A stop gives it the time of calls that have begun.
func (s *step) slow(call string) error {
	i := s.Calls.running(call)
	if i < 0 {
		return s.refuse("the result of call %s is not waited for", call)
	}
	why := ""
	switch a := s.End.Aborting; {
	case a != nil:
		why = a.Why
	case s.lacksRoom():
		why = whyNoRoom
	default:
		s.toolStep(i, true)
		return nil
	}
	s.settle(i, agent.CallFailed, "The tool was slow, and was not called again: "+why+".")
	if s.Calls.active() == 0 {
		s.End.endAbort()
	}
	return nil
}
