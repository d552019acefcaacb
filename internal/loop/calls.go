package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// Calls is the part that keeps the tool calls of the turn, each with a machine of its
// own, and what became of those before.
type Calls struct {
	List []Call `json:"list,omitempty"`
	// Counts count what became of all calls of the conversation, by tool, and Before those of
	// them that the run has found: it is a fork of the one that made them.
	Counts          []agent.ToolCount `json:"counts,omitempty"`
	InheritedCounts []agent.ToolCount `json:"inherited_counts,omitempty"`
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
	// Remark is a remark of the runtime that is added to the result's text.
	Remark string `json:"remark,omitempty"`
	// OriginRun is the run that asked for the call, if this run goes on with that one's turn: an
	// effect that both had would have one key.
	OriginRun string `json:"origin_run,omitempty"`
	// Request is what the call waits for, while it is open.
	Request string `json:"request,omitempty"`
	// Children are the sub-agents that the call waits for; empty for the one that it started.
	Children []string `json:"children,omitempty"`
	// Approved calls begin when no request of the turn is open any more.
	Approved bool `json:"approved,omitempty"`
	// Approver is who proved to be one and approved the call.
	Approver string `json:"approver,omitempty"`
	// Edited means that the arguments are a person's and not the model's.
	Edited bool `json:"edited,omitempty"`
	// Answers are those to what the tool has asked.
	Answers []agent.ToolAnswer `json:"answers,omitempty"`
	// StateChanges are keys of the session's state that the call has set.
	StateChanges map[string]json.RawMessage `json:"state_changes,omitempty"`
	// Bytes is what the result counts in the log (see weight).
	Bytes int `json:"bytes,omitempty"`
	// Size is the call's length in JSON, at most; Said is that of its result's text.
	Size       int `json:"size,omitempty"`
	ResultSize int `json:"result_size,omitempty"`
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
	return slices.IndexFunc(c.List, func(k Call) bool { return k.ID == id && k.State == CallRunning })
}

// wasStarted reports whether a tool was at the call.
func (k Call) wasStarted() bool { return !k.Since.IsZero() }

// hasDecision reports whether a person has let the call be made, or be made again.
func (k Call) hasDecision() bool { return k.Approved || len(k.Answers) > 0 }

func (c Calls) count(state CallState) (n int) {
	for _, k := range c.List {
		if k.State == state {
			n++
		}
	}
	return n
}

func (c Calls) runningCount() int { return c.count(CallRunning) }

// done reports whether every call of the turn has its result.
func (c Calls) done() bool { return c.count(CallDone) == len(c.List) }

// start begins a turn's calls.
func (c *Calls) start(calls []agent.ToolCall) {
	c.List = nil
	for i, call := range calls {
		c.List = append(c.List, Call{ToolCall: call, State: CallPending})
		c.measure(i)
	}
}

// measure measures a call after a change.
func (c *Calls) measure(i int) { c.List[i].Size = c.List[i].jsonLen() }

// clear ends the turn's calls.
func (c *Calls) clear() { c.List = nil }

func (c *Calls) remark(i int, note string) { c.List[i].Remark = note }

// begin makes a call one that a tool is at.
func (c *Calls) begin(i int, at time.Time) {
	enter(callTransitions, &c.List[i].State, CallRunning)
	c.List[i].Since = at
}

// awaitChildren makes a call one that waits for sub-agents; for the one that it starts if on is
// empty.
func (c *Calls) awaitChildren(i int, on []string, at time.Time) {
	enter(callTransitions, &c.List[i].State, CallAwaitingChildren)
	c.List[i].Children, c.List[i].Since = on, at
}

// awaitRequest makes a call wait for the answer to a request.
func (c *Calls) awaitRequest(i int, request string) {
	enter(callTransitions, &c.List[i].State, CallAwaitingAnswer)
	c.List[i].Request = request
}

// approve lets a call that awaits its approval be made, with edited arguments if there
// are any.
func (c *Calls) approve(i int, approver string, edited json.RawMessage) {
	enter(callTransitions, &c.List[i].State, CallPending)
	k := &c.List[i]
	k.Request, k.Approved, k.Approver = "", true, approver
	if len(edited) > 0 {
		k.Arguments, k.Edited = edited, true
	}
	c.measure(i)
}

// answer lets a call be made again whose tool has asked for it itself.
func (c *Calls) answer(i int, a agent.ToolAnswer) {
	enter(callTransitions, &c.List[i].State, CallPending)
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
	return k.jsonLen() - c.List[i].Size
}

// finish gives a call its one result, of which so many bytes are somebody's, and returns it
// as it is told: no longer than there is space. What the log has of the call is not kept any
// more.
func (c *Calls) finish(i int, r agent.ToolResult, bytes, space int) agent.ToolResult {
	enter(callTransitions, &c.List[i].State, CallDone)
	k := &c.List[i]
	most := maxResults / len(c.List)
	k.Bytes = min(bytes, most)
	k.ResultSize = min(space, resultJSONLen(r.Text, bytes), ownWords+7*most)
	if most = min(most, bytesWithin(r.Text, k.ResultSize)); len(r.Text) > most {
		whole := max(r.Size, len(r.Text))
		r.Text, r.Size = excerpt.Of(r.Text, most, whole), whole
	}
	if k.Remark != "" {
		r.Text += "\n\n" + k.Remark
	}
	if k.Edited && r.Status != agent.CallSkipped {
		r.Text = fmt.Sprintf("[made with other arguments, as the user decided: %s]\n%s", k.Arguments, r.Text)
		k.ResultSize += k.edits()
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
		if c.List[i].Bytes, c.List[i].ResultSize = 0, 0; k.Result != nil {
			c.List[i].Bytes, c.List[i].ResultSize = min(len(k.Result.Text), maxResults), jsonLen(k.Result.Text)
		}
		c.measure(i)
	}
}

// adopt makes the calls those of a run that goes on elsewhere with the turn of another.
func (c *Calls) adopt(from string) {
	for i := range c.List {
		c.List[i].OriginRun = firstOf(c.List[i].OriginRun, from)
	}
}

// inheritCounts continues the counts of the run that this one is a fork of.
func (c *Calls) inheritCounts(counts []agent.ToolCount) { c.Counts, c.InheritedCounts = counts, counts }

// countResult counts a call that is done; known means that the agent has the tool.
func (c *Calls) countResult(tool string, known bool, status agent.CallStatus) {
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

// rememberUnknown remembers a call of which nobody knows whether it had its effect.
func (c *Calls) rememberUnknown(i int, run string) {
	k := c.List[i]
	c.Unknown = append(slices.Clip(c.Unknown), agent.UnknownEffect{
		Call: k.ID, Tool: k.Tool, Key: agent.IdempotencyKey(firstOf(k.OriginRun, run), k.ID), Since: k.Since.UTC().Format(time.RFC3339),
	})
	if n := len(c.Unknown) - maxUnknown; n > 0 {
		c.Unknown = slices.Clone(c.Unknown[n:])
	}
}

// maxStateChanges bounds what the calls of one turn set together, in bytes of keys and JSON: one
// event of the log keeps it. It is what a session's whole state may have.
const maxStateChanges = 256 << 10

// keepStateChanges keeps what a call has set, or says in its result that it did not: a run that rests
// before the turn ends has only so much space.
func (c *Calls) keepStateChanges(i int, set map[string]json.RawMessage, space int) {
	size := changesSize(set)
	for _, k := range c.List {
		size += changesSize(k.StateChanges)
	}
	if size > maxStateChanges || changesJSONLen(set) > space {
		c.List[i].Remark = fmt.Sprintf("[what the call set was not kept: the calls of this turn set %d bytes, and at most %d are taken]", size, maxStateChanges)
		return
	}
	c.List[i].StateChanges = set
	c.measure(i)
}

// toolReturned takes a result. A late one, for a run that went on without it, is refused.
func (s *step) toolReturned(in ToolReturned) error {
	r := in.Result
	i := s.Calls.running(r.Call)
	if i < 0 {
		return s.refuse("the result of call %s is not waited for", r.Call)
	}
	if in.Hold != nil && r.Status == agent.CallSkipped && !s.justified(*in.Hold) {
		s.outdated(*in.Hold)
		if !s.historyNearlyFull() {
			s.callTool(i, false) // it was not begun
			return nil
		}
	}
	switch {
	case in.Question != nil && s.End.Stopping == nil:
		s.askPerson(i, *in.Question)
	case in.Question != nil:
		s.setResult(i, agent.CallFailed, "Not finished: it asked something, and nobody is asked any more, since the run is being stopped.")
	default:
		if r.Status == agent.CallOK {
			s.Calls.keepStateChanges(i, in.StateChanges, s.space()) // what a call that failed has set is not kept
		}
		said := len(r.Text)
		if in.FromRuntime {
			said = 0
		}
		s.setResultAs(i, r, said)
	}
	if in.ToolsChange != nil {
		s.toolsChanged(*in.ToolsChange)
	}
	s.takeMetHold(in.Hold)
	if s.Calls.runningCount() == 0 {
		s.End.endAbort()
	}
	return nil
}

// localToolSlow makes a call anew by a step of its own that was too slow for a local one, unless
// the run gives up what it has in flight. A stop gives it the time of calls that have begun.
func (s *step) localToolSlow(call string) error {
	i := s.Calls.running(call)
	if i < 0 {
		return s.refuse("the result of call %s is not waited for", call)
	}
	why := ""
	switch a := s.End.Aborting; {
	case a != nil:
		why = a.Reason
	case s.historyNearlyFull():
		why = reasonHistoryLimit
	default:
		s.callTool(i, true)
		return nil
	}
	s.setResult(i, agent.CallFailed, "The tool was slow, and was not called again: "+why+".")
	if s.Calls.runningCount() == 0 {
		s.End.endAbort()
	}
	return nil
}
