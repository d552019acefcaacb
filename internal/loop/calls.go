package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Calls is the part that keeps the tool calls of the turn, each with a machine of its
// own, and counts of all calls of the run.
type Calls struct {
	List []Call `json:"list,omitempty"`
	// Counts count the results of the run's calls, by tool. A fork begins with the counts at its
	// checkpoint, which are InheritedCounts.
	Counts          []agent.ToolCount `json:"counts,omitempty"`
	InheritedCounts []agent.ToolCount `json:"inherited_counts,omitempty"`
	// Unknown are calls that may or may not have had their effect.
	Unknown []agent.UnknownEffect `json:"unknown,omitempty"`
}

// Call is a tool call of the turn.
type Call struct {
	agent.ToolCall
	State CallState `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Result is set when the call is done.
	Result *agent.ToolResult `json:"result,omitempty"`
	// Remark is a text of the runtime that is added to the result.
	Remark string `json:"remark,omitempty"`
	// OriginRun is the run that asked for the call, if this run was imported in the middle of that
	// run's turn, or tries it again and nobody knows whether a flow's step had its effect. It keeps
	// the call's idempotency key the same in both runs.
	OriginRun string `json:"origin_run,omitempty"`
	// Request is the open request that the call waits for; empty if it waits for none.
	Request string `json:"request,omitempty"`
	// Children are the sub-agents that the call waits for; empty means the one that it started.
	Children []string `json:"children,omitempty"`
	// Approved calls begin when no request of the turn is open any more.
	Approved bool `json:"approved,omitempty"`
	// Approver is the principal whose token approved the call; empty without a token.
	Approver string `json:"approver,omitempty"`
	// Edited means that a person has replaced the model's arguments.
	Edited bool `json:"edited,omitempty"`
	// Answers are a person's answers to the tool's own questions.
	Answers []agent.ToolAnswer `json:"answers,omitempty"`
	// StateChanges are keys of the session's state that the call has set.
	StateChanges map[string]json.RawMessage `json:"state_changes,omitempty"`
	// Files are those of the session that the call's arguments name, to be passed on (see pass.go).
	Files []agent.File `json:"files,omitempty"`
	// Step says how a flow's step is treated; zero outside of flows.
	Step wire.StepOptions `json:"step,omitzero"`
	// Wait is what a flow's step waits for; nil unless its state is awaiting_event.
	Wait *Park `json:"wait,omitempty"`
	// Dropped means that the flow does not wait for the step any more.
	Dropped bool `json:"dropped,omitempty"`
	// LeftOut means that the state has no space for what the flow's step would wait for. The step is
	// asked for again when another one has ended.
	LeftOut bool `json:"left_out,omitempty"`
	// Unknown says why it is unknown whether the step had its effect, while a person is asked
	// what to do about that; empty for other calls.
	Unknown string `json:"unknown,omitempty"`
	// Reserved is what a flow's model call in flight may use; zero for other calls.
	Reserved agent.Estimate `json:"reserved,omitzero"`
	// Bytes is what the result counts in the log (see weight.go).
	Bytes int `json:"bytes,omitempty"`
	// Size is the greatest length of the call in JSON, and ResultSize that of its result's text.
	Size       int `json:"size,omitempty"`
	ResultSize int `json:"result_size,omitempty"`
}

// Limits of the calls of one reply. Calls beyond maxCalls are rejected, and calls beyond maxAsked
// are left out of the message. maxResults bounds all results together, in bytes: they become one
// message, which must fit into a payload.
const (
	maxCalls   = 64
	maxAsked   = 128
	maxResults = 256 << 10
	// maxProviderID bounds a provider's id of a call by its length in JSON. A longer one is dropped.
	maxProviderID = 256
)

// Calls of tools that the agent does not have are counted under the names that the model used. After
// maxCounted rows, further unknown names share one row: each checkpoint and the outcome have all rows.
const (
	maxCounted = 128
	otherTools = "(others)"
)

// maxUnknown bounds how many calls with an unknown outcome are kept: the last ones.
const maxUnknown = 64

func (c Calls) clone() Calls {
	c.List = slices.Clone(c.List)
	c.Counts = slices.Clone(c.Counts)
	return c
}

// find returns the index of a call; -1 if the turn has none with this id.
func (c Calls) find(id string) int {
	return slices.IndexFunc(c.List, func(k Call) bool { return k.ID == id })
}

// findRunning returns the index of a call that is running; -1 if it is not.
func (c Calls) findRunning(id string) int {
	return slices.IndexFunc(c.List, func(k Call) bool { return k.ID == id && k.State == CallRunning })
}

// wasStarted reports whether the call has ever run. A step that only waits does nothing.
func (k Call) wasStarted() bool { return !k.Since.IsZero() && (k.Wait == nil || k.Wait.Again) }

// hasDecision reports whether a person has approved the call, or answered its question.
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

// set replaces the list by a turn's calls, all of them pending.
func (c *Calls) set(calls []agent.ToolCall) {
	c.List = nil
	for i, call := range calls {
		c.List = append(c.List, Call{ToolCall: call, State: CallPending})
		c.measure(i)
	}
}

// addStep adds a step of a flow to the open ones, with the answers that it has from before.
func (c *Calls) addStep(call agent.ToolCall, step wire.FlowStep, kept StepAnswers) {
	c.List = append(c.List, Call{ToolCall: call, State: CallPending, Files: step.Files, Step: step.StepOptions, OriginRun: step.OriginRun, Answers: kept.Answers, Since: kept.Since})
	c.measure(len(c.List) - 1)
}

// addCheck adds the call of a check.
func (c *Calls) addCheck(call agent.ToolCall) {
	c.List = append(c.List, Call{ToolCall: call, State: CallPending})
	c.measure(len(c.List) - 1)
}

// removeCheck removes the call of a check.
func (c *Calls) removeCheck(id string) {
	if c.List = slices.DeleteFunc(c.List, func(k Call) bool { return k.ID == id }); len(c.List) == 0 {
		c.List = nil // as a state has it that comes from JSON
	}
}

// setFiles sets the files that the calls from an index on pass on, in their order.
func (c *Calls) setFiles(from int, files [][]agent.File) {
	for i, list := range files {
		if from+i < len(c.List) && len(list) > 0 {
			c.List[from+i].Files = list
			c.measure(from + i)
		}
	}
}

// drop marks a step whose result nobody waits for.
func (c *Calls) drop(i int) { c.List[i].Dropped = true }

// droppedSteps returns the paths of the open steps whose results nobody waits for.
func (c Calls) droppedSteps() (paths []string) {
	for _, k := range c.List {
		if k.Dropped {
			paths = append(paths, k.ProviderID)
		}
	}
	return paths
}

// leaveOut marks a step for which the state has no space.
func (c *Calls) leaveOut(i int) { c.List[i].LeftOut = true }

// markUnknown records why a person is asked whether a step had its effect.
func (c *Calls) markUnknown(i int, why string) {
	c.List[i].Unknown = fit(cmp.Or(why, "nobody knows why"), maxWhy) // empty means that nobody is asked
	c.measure(i)
}

// awaitEvent makes a flow's step wait for an event or a time.
func (c *Calls) awaitEvent(i int, p *Park, at time.Time) {
	enter(callTransitions, &c.List[i].State, CallAwaitingEvent)
	c.List[i].Wait, c.List[i].Since = p, at
	c.measure(i)
}

// forgetArguments drops the arguments of a step whose run has begun. The step may be open for
// months, and the state would have to keep them. If it is made again, the function has them.
func (c *Calls) forgetArguments(i int) {
	c.List[i].Arguments, c.List[i].Files = nil, nil
	c.measure(i)
}

// removeDone removes the calls that are done.
func (c *Calls) removeDone() {
	c.List = slices.DeleteFunc(c.List, func(k Call) bool { return k.State == CallDone })
}

// measure updates a call's Size after a change.
func (c *Calls) measure(i int) { c.List[i].Size = c.List[i].jsonLen() }

// clear ends the turn's calls.
func (c *Calls) clear() { c.List = nil }

func (c *Calls) remark(i int, note string) { c.List[i].Remark = fit(note, maxRemark) }

// begin marks a call as running; most is what a flow's model call may use.
func (c *Calls) begin(i int, at time.Time, most agent.Estimate) {
	enter(callTransitions, &c.List[i].State, CallRunning)
	c.List[i].Since, c.List[i].Reserved = at, most
}

// awaitChildren makes a call wait for sub-agents, or for the one that it starts if on is empty.
func (c *Calls) awaitChildren(i int, on []string, at time.Time) {
	enter(callTransitions, &c.List[i].State, CallAwaitingChildren)
	c.List[i].Children, c.List[i].Since = on, at
}

// awaitRequest makes a call wait for the answer to a request.
func (c *Calls) awaitRequest(i int, request string) {
	enter(callTransitions, &c.List[i].State, CallAwaitingAnswer)
	c.List[i].Request = request
}

// approve approves a call, with edited arguments if there are any.
func (c *Calls) approve(i int, approver string, edited json.RawMessage) {
	enter(callTransitions, &c.List[i].State, CallPending)
	k := &c.List[i]
	k.Request, k.Approved, k.Approver = "", true, approver
	if len(edited) > 0 {
		k.Arguments, k.Edited = edited, true
	}
	c.measure(i)
}

// answer adds the answer to a call's own question, so that the call is made again.
func (c *Calls) answer(i int, a agent.ToolAnswer) {
	enter(callTransitions, &c.List[i].State, CallPending)
	k := &c.List[i]
	answers := slices.Clone(k.Answers) // states share the slice: see State.unshare
	for j := range answers {
		answers[j].State = nil // only the last one is used, and each may be long
	}
	k.Request, k.Wait, k.Answers = "", nil, append(answers, a)
	c.measure(i)
}

// growth returns how much longer a call is in JSON with edited arguments.
func (c Calls) growth(i int, edited json.RawMessage) int {
	if len(edited) == 0 {
		return 0
	}
	k := c.List[i]
	k.Arguments, k.Edited = edited, true
	return k.jsonLen() - c.List[i].Size
}

// finish sets a call's only result and returns it as the model sees it, cut to the space there is.
// bytes counts the text that a tool, model or person wrote, and most is how long the text may be.
// The state drops the arguments then: the log has them.
func (c *Calls) finish(i int, r agent.ToolResult, bytes, most, space int) agent.ToolResult {
	enter(callTransitions, &c.List[i].State, CallDone)
	k := &c.List[i]
	// The sizes come from what a tool or a person wrote, and not from the text below: the runtime's
	// own words may change in a later build, and a replay must decide the same.
	k.Bytes = min(bytes, most) + agent.Message{Parts: r.Files}.Size()
	long := resultJSONLen(r.Text, bytes)
	k.ResultSize = min(space, long, ownWords+7*most) // 7: see resultJSONLen
	if bytes != len(r.Text) || k.ResultSize < long { // else it was measured, and fits
		most = min(most, bytesWithin(r.Text, k.ResultSize))
	}
	if len(r.Text) > most {
		whole := max(r.Size, len(r.Text))
		r.Text, r.Size = excerpt.Of(r.Text, most, whole), whole
	}
	if k.Remark != "" {
		r.Text += "\n\n" + k.Remark
		k.Remark = ""
	}
	if k.Edited && r.Status != agent.CallSkipped {
		r.Text = fmt.Sprintf("[made with other arguments, as the user decided: %s]\n%s", k.Arguments, r.Text)
		k.ResultSize += k.edits()
	}
	k.Request, k.Result, k.Malformed, k.Answers, k.Wait, k.Unknown = "", &r, "", nil, nil, ""
	if k.Tool != agent.FinishTool && k.Tool != agent.ReturnUnableTool { // their arguments say how the run ends
		k.Arguments, k.Files = nil, nil
	}
	c.measure(i)
	return r
}

// leaveFiles says in a call's result how many of its files are not shown.
func (c *Calls) leaveFiles(i, n int) {
	if n == 0 {
		return
	}
	c.note(i, fmt.Sprintf("[%d files of this result are not shown: they are not this session's, or more than %d wait to be stored]", n, maxWaitingFiles), noteFrame)
}

// note adds a note to a call's result, which takes at most size bytes of JSON.
func (c *Calls) note(i int, text string, size int) {
	k := &c.List[i]
	r := *k.Result
	r.Text += "\n\n" + text
	k.Result, k.ResultSize = &r, k.ResultSize+size
	c.measure(i)
}

// recount computes the sizes of all calls again, for an imported state.
func (c *Calls) recount() {
	for i, k := range c.List {
		c.List[i].Unknown, c.List[i].Remark = fit(k.Unknown, maxWhy), fit(k.Remark, maxRemark)
		if c.List[i].Bytes, c.List[i].ResultSize = 0, 0; k.Result != nil {
			c.List[i].Bytes, c.List[i].ResultSize = min(len(k.Result.Text), maxResults)+agent.Message{Parts: k.Result.Files}.Size(), jsonLen(k.Result.Text)
		}
		c.measure(i)
	}
}

// adopt records the run that asked for the calls, in a state that was imported from it.
func (c *Calls) adopt(from string) {
	for i := range c.List {
		c.List[i].OriginRun = firstOf(c.List[i].OriginRun, from) // the first one counts after several imports
	}
}

// inheritCounts continues the counts at the point in the log where the run begins.
func (c *Calls) inheritCounts(counts []agent.ToolCount) { c.Counts, c.InheritedCounts = counts, counts }

// countResult counts a call's result; known means that the agent has the tool.
func (c *Calls) countResult(tool string, known bool, status agent.CallStatus) {
	c.Counts = slices.Clone(c.Counts) // checkpoints in the tail share the old slice
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

// rememberUnknown remembers a call that may or may not have had its effect, with its idempotency key.
func (c *Calls) rememberUnknown(i int, run, step string) {
	k := c.List[i]
	// Clip makes append copy: clone does not, so the state before this step shares the array.
	c.Unknown = append(slices.Clip(c.Unknown), agent.UnknownEffect{
		Call: k.ID, Tool: k.Tool, Key: agent.IdempotencyKey(firstOf(k.OriginRun, run), firstOf(step, k.ID)), Since: k.Since.UTC().Format(time.RFC3339),
	})
	c.Unknown = lastWithin(c.Unknown, maxUnknown, unknownShare, func(u agent.UnknownEffect) int { return unknownFrame + jsonLen(u.Tool) + jsonLen(u.Key) })
}

// maxStateChanges bounds what all calls of one turn set in the session's state, in bytes of keys and
// JSON: one event of the log has it all. A session's whole state has the same limit.
const maxStateChanges = 256 << 10

// keepStateChanges keeps the state changes of a call, or says in its result that they were dropped.
// They are in the run's state until the turn ends, and share its space with all else that waits.
func (c *Calls) keepStateChanges(i int, set map[string]json.RawMessage, space int) {
	size := changesSize(set)
	for _, k := range c.List {
		size += changesSize(k.StateChanges)
	}
	if size > maxStateChanges || changesJSONLen(set) > space {
		c.List[i].Remark = fmt.Sprintf("[what the call set was not kept: the calls of this turn set %d bytes, and the run has no space for them]", size)
		return
	}
	c.List[i].StateChanges = set
	c.measure(i)
}
