package loop

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// State is all that a run is. It leaves the process as JSON: continue-as-new
// carries it, and the query state shows it. The zero State is a run that has
// not begun.
type State struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	Phase   Phase  `json:"phase"`
	// Imported is the export that the session came with; empty for one that began
	// here. Former is the run that this one goes on with, where it did.
	Imported string `json:"imported,omitempty"`
	Former   string `json:"former,omitempty"`
	// Sources are asked for their tools, and Point is where the log begins for the
	// run, until it has opened.
	Sources []string `json:"sources,omitempty"`
	Point   *Located `json:"point,omitempty"`
	// Start is what was asked for, until the run has opened, and Brief the text of
	// its briefing.
	Start *agent.Start `json:"start,omitempty"`
	Brief string       `json:"brief,omitempty"`
	// Spec is the recorded Spec without what only the model reads.
	Spec   *agent.Spec       `json:"spec,omitempty"`
	Limits agent.Limits      `json:"limits,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	Task   string            `json:"task,omitempty"` // the first characters of what was asked

	Since   time.Time `json:"since"` // of the status
	Started time.Time `json:"started"`
	// Deadline is when the working time is over; zero where it has no limit. It
	// stands still while the run is suspended.
	Deadline time.Time `json:"deadline,omitzero"`

	Turn  int               `json:"turn"`
	Asked time.Time         `json:"asked,omitzero"` // since when the model is asked
	Ask   int64             `json:"ask,omitempty"`  // the event up to which it is: names the model call
	Calls []Call            `json:"calls,omitempty"`
	Usage agent.Usage       `json:"usage"`
	Cost  agent.USD         `json:"cost_usd"`
	Tools []agent.ToolCount `json:"tools,omitempty"`
	Text  string            `json:"text,omitempty"` // the last that the model said

	// How often in a row the model has only talked, missed the schema, or sent a
	// reply that was of no use.
	Nudged   int    `json:"nudged,omitempty"`
	Repaired int    `json:"repaired,omitempty"`
	Retried  int    `json:"retried,omitempty"`
	Repeat   Repeat `json:"repeat,omitzero"`

	// Numbers count over the session's life and are never used again.
	Numbers agent.Numbers `json:"numbers"`
	// Holds are at most two: the run's own and an inherited one.
	Holds []agent.Hold `json:"holds,omitempty"`
	// Heard are the last holds that were heard of, lifted or not, by the session
	// that was held. Steps carry them, so that no old hold stops a new step.
	Heard []agent.Heard `json:"heard,omitempty"`
	// Wait is the open suspension; nil while the run waits for nobody.
	Wait     *Wait     `json:"wait,omitempty"`
	Requests []Request `json:"requests,omitempty"` // open ones
	Decided  []Decided `json:"decided,omitempty"`  // the last ones that were
	Park     *Park     `json:"park,omitempty"`
	Letters  []Letter  `json:"letters,omitempty"` // messages that the model has not got
	// Events wait for a daemon to deal with them, one after the other. Due tells that
	// it has something to deal with, and Ticks how often in a row its interval has
	// woken it without need.
	Events   []agent.EmitOrder `json:"events,omitempty"`
	Due      bool              `json:"due,omitempty"`
	Ticks    int               `json:"ticks,omitempty"`
	Always   []string          `json:"always,omitempty"` // tools that need no approval any more
	Giving   *Giving           `json:"giving,omitempty"` // what is in flight is being given up
	Stopping *Stopping         `json:"stopping,omitempty"`
	// Birth is what the run above said of this one; nil for a root.
	Birth *agent.Birth `json:"birth,omitempty"`
	// Beyond are tools that the run may not use though its agent has them, and
	// Inherited the rules that hold below it too.
	Beyond    []string     `json:"beyond,omitempty"`
	Inherited []agent.Rule `json:"inherited,omitempty"`
	Children  []Child      `json:"children,omitempty"`
	// Reported tells that the parent knows the run as suspended.
	Reported bool `json:"reported,omitempty"`
	// LeaseAt is when a run that rests looks for its parent again; Leasing tells
	// that it is looking.
	LeaseAt time.Time `json:"lease_at,omitzero"`
	Leasing bool      `json:"leasing,omitempty"`
	// Early is a hold above that a step met, and that the run was not told of yet.
	Early *agent.Heard `json:"early,omitempty"`
	// LookAt is when the run looks after children that may have gone without a word.
	LookAt time.Time `json:"look_at,omitzero"`
	// LeaveBy is until when an end waits for the runs below.
	LeaveBy time.Time `json:"leave_by,omitzero"`
	// Unknown are calls of which nobody knows whether they had their effect.
	Unknown []agent.UnknownEffect `json:"unknown,omitempty"`
	Parked  time.Duration         `json:"parked,omitempty"` // spent suspended
	// Note is said to the model once, behind everything, and is not stored.
	Note string `json:"note,omitempty"`
	// Fresh is why the next turn begins from a summary; empty where it does not.
	Fresh string `json:"fresh,omitempty"`
	// Sum is what the summary is for that the model is asked for, in phase summing.
	Sum Summary `json:"sum,omitempty"`
	// Heavy is one more than the turn in which the state was too large to be carried
	// over; zero where it never was.
	Heavy int `json:"heavy,omitempty"`
	// Squeezed tells that the conversation was compacted in this turn: what is still
	// too long is cut.
	Squeezed bool `json:"squeezed,omitempty"`
	// Base is what was used up when a limit was renewed.
	Base agent.Limits `json:"base,omitzero"`
	// Posts are the last messages of the session that came with an id.
	Posts []agent.Post `json:"posts,omitempty"`
	// Told are the last verbs with an id and what became of them.
	Told    []Told              `json:"told,omitempty"`
	Refused []agent.RefusedVerb `json:"refused,omitempty"`
	// Wake is when the machine wants its next Tick; zero where nothing is due.
	Wake time.Time `json:"wake,omitzero"`

	// Stint is where the spans of the run's work hang.
	Stint agent.Stint `json:"stint,omitzero"`

	Log Log `json:"log"`
	// Outcome is set when the run is ending.
	Outcome *agent.Outcome `json:"outcome,omitempty"`
}

// Phase is what the machine is at.
type Phase string

// The phases, in the order in which a run meets them.
const (
	New       Phase = ""
	Opening   Phase = "opening"   // waits for the Spec and the session's head
	Locating  Phase = "locating"  // waits for the point in the log where the run begins
	Importing Phase = "importing" // waits for the state of a run that was suspended elsewhere
	Listing   Phase = "listing"   // waits for the tools of the Spec's sources
	Resting   Phase = "resting"   // between two turns, for as long as something stands before the next
	Asking    Phase = "asking"    // waits for the model
	Working   Phase = "working"   // waits for the turn's calls
	Summing   Phase = "summing"   // waits for the model's summary
	Carrying  Phase = "carrying"  // waits for the last seal before a new execution
	Draining  Phase = "draining"  // waits for the runs below
	Folding   Phase = "folding"   // waits for the handoff
	Ending    Phase = "ending"    // waits for the last seal of the run
	Ended     Phase = "ended"
)

// Log is a session's log as the run sees it: a chain of sealed chunks, of which
// it knows the last, and the events that are not sealed yet.
type Log struct {
	// Head names the last sealed chunk; empty at a session's beginning.
	Head string `json:"head,omitempty"`
	// Version is that of the session's head in the store.
	Version int64 `json:"version,omitempty"`
	// Fence is that of the last write outside of Temporal that the run has decided; who
	// performs it names the decision.
	Fence agent.Fence   `json:"fence,omitzero"`
	Seq   int64         `json:"seq"` // of the last event
	Tail  []agent.Event `json:"tail,omitempty"`
	Bytes int           `json:"bytes,omitempty"` // of the tail, about
	// Sealing is the number of the last event that is being sealed; zero while none is.
	Sealing int64 `json:"sealing,omitempty"`
	// Behind tells that the session's head does not have all that waits for a daemon.
	Behind bool `json:"behind,omitempty"`
	// Closed tells that a run which goes on in a new execution has sealed what there was.
	Closed bool `json:"closed,omitempty"`
	// Fault is why the last attempt to seal failed, Tries how many did in a row, and
	// Again when the next is made.
	Fault *agent.Error `json:"fault,omitempty"`
	Tries int          `json:"tries,omitempty"`
	Again time.Time    `json:"again,omitzero"`
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
	// Of is the run that asked for it, where this one goes on with that one's turn: an
	// effect that both had would have one key.
	Of string `json:"of,omitempty"`
	// Request is what the call waits for, while it is open.
	Request string `json:"request,omitempty"`
	// On are the runs below that the call waits for; empty for the one it started.
	On []string `json:"on,omitempty"`
	// Approved calls are begun when no request of the turn is open any more.
	Approved bool `json:"approved,omitempty"`
	// Approver is who proved to be one, and let it be made.
	Approver string `json:"approver,omitempty"`
	// Edited tells that the arguments are a person's and not the model's.
	Edited bool `json:"edited,omitempty"`
	// Answers are those to what the tool has asked.
	Answers []agent.ToolAnswer `json:"answers,omitempty"`
	// Set are keys of the session's state that the call has set.
	Set map[string]json.RawMessage `json:"set,omitempty"`
}

// CallState is where a call stands.
type CallState string

// The states of a call.
const (
	Waiting  CallState = "waiting"  // for others to be done: there is a limit of calls at once
	Awaiting CallState = "awaiting" // the answer to its request
	Below    CallState = "below"    // runs below this one
	Active   CallState = "running"
	Done     CallState = "done"
)

// Repeat counts equal calls in a row.
type Repeat struct {
	Digest string `json:"digest"`
	Count  int    `json:"count"`
}

// Sizes of the log's tail, in bytes: past the first it is sealed while the run
// goes on, past the second the run waits for the store.
const (
	sealAt = 256 << 10
	waitAt = 1 << 20
)

// clone returns a state whose slices can be changed without changing s. The
// log's tail is only ever appended to, so its clipped slice is enough.
func (s State) clone() State {
	s.Calls = slices.Clone(s.Calls)
	s.Tools = slices.Clone(s.Tools)
	s.Holds = slices.Clone(s.Holds)
	s.Heard = slices.Clone(s.Heard)
	s.Requests = slices.Clone(s.Requests)
	s.Decided = slices.Clip(s.Decided)
	s.Letters = slices.Clip(s.Letters)
	s.Events = slices.Clip(s.Events)
	s.Always = slices.Clip(s.Always)
	s.Posts = slices.Clip(s.Posts)
	s.Told = slices.Clip(s.Told)
	s.Refused = slices.Clip(s.Refused)
	s.Children = slices.Clone(s.Children)
	s.Wait = copied(s.Wait)
	s.Park = copied(s.Park)
	s.Giving = copied(s.Giving)
	s.Stopping = copied(s.Stopping)
	return s
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Status is the run's status on the wire. A run that is ending still runs: an
// end is not told before it is stored.
func (s State) Status() agent.Status {
	switch {
	case s.Phase == New:
		return agent.Pending
	case s.Phase == Ended:
		return s.Outcome.Status
	case s.Wait == nil || s.over():
		return agent.Running
	case s.Wait.Saved:
		return agent.Suspended
	}
	return agent.Suspending
}

// Unwritten tells whether the run has no part in the log yet.
func (s State) Unwritten() bool {
	return s.Phase == New || s.Phase == Opening || s.Phase == Locating || s.Phase == Importing || s.Phase == Listing
}

// over tells whether the run's outcome is decided.
func (s State) over() bool { return s.Phase == Ending || s.Phase == Ended }

// doing lists what the run is at.
func (s State) doing() []agent.Doing {
	doing := []agent.Doing{}
	switch s.Phase {
	case Asking, Summing:
		doing = append(doing, agent.Doing{Kind: agent.DoingModel, What: s.Spec.Model, Since: s.Asked})
	case Carrying, Ending:
		doing = append(doing, agent.Doing{Kind: agent.DoingStore, What: "transcript", Since: s.Since})
	default:
		if s.Wait != nil && s.Wait.Resting && !s.Wait.Saved {
			doing = append(doing, agent.Doing{Kind: agent.DoingStore, What: "transcript", Since: s.Since})
		}
	}
	for _, c := range s.Calls {
		switch c.State {
		case Active:
			doing = append(doing, agent.Doing{Kind: agent.DoingTool, Call: c.ID, What: c.Tool, Since: c.Since})
		case Below:
			doing = append(doing, agent.Doing{Kind: agent.DoingChild, Call: c.ID, What: c.Tool, Since: c.Since})
		}
	}
	return doing
}

// View is the answer to the query status.
func (s State) View(now time.Time) agent.RunStatus {
	v := agent.RunStatus{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: s.Status(), Since: s.Since, Turn: s.Turn,
		Doing: s.doing(), Suspension: s.Suspension(), Children: s.counts(), Queued: len(s.Letters), Labels: s.Labels, Usage: s.Usage, Cost: s.Cost,
		Limits: s.used(now), Seq: s.Log.Seq, Refused: s.Refused, Fault: s.Log.Fault,
	}
	if d := s.daemon(); d != nil {
		v.Events = &agent.Used[int]{Used: len(s.Events), Max: d.Queue}
	}
	switch {
	case s.Phase == Ended:
		v.Reason = s.Outcome.Reason
	case s.Stopping != nil:
		v.Reason = "stopping"
	}
	return v
}

func (s State) redacted() bool { return s.Spec != nil && s.Spec.Redact }

func (s State) agent() string {
	if s.Spec != nil {
		return s.Spec.Name
	}
	if s.Start != nil {
		return s.Start.Agent
	}
	return ""
}

func (s State) used(now time.Time) (u agent.LimitsUsed) {
	if l := s.Limits.Turns; l > 0 {
		u.Turns = &agent.Used[int]{Used: s.Turn - s.Base.Turns, Max: l}
	}
	if l := s.Limits.Tokens; l > 0 {
		u.Tokens = &agent.Used[int64]{Used: s.Usage.Total() - s.Base.Tokens, Max: l}
	}
	if l := s.Limits.CostUSD; l > 0 {
		u.CostUSD = &agent.Used[agent.USD]{Used: s.Cost - s.Base.CostUSD, Max: l}
	}
	if l := s.Limits.WallClock; l > 0 && !s.Deadline.IsZero() {
		if s.Wait != nil && s.Wait.Resting {
			now = s.Since // it stands still
		}
		left := agent.Duration(s.Deadline.Sub(now).Round(time.Second))
		u.Clock = &agent.Used[agent.Duration]{Used: l - left, Max: l}
	}
	return u
}

// Memo is what a listing shows of the run.
func (s State) Memo() agent.Memo {
	m := agent.Memo{
		V: agent.Version, Run: s.Run, Task: s.Task, Status: s.Status(), Since: s.Since,
		Turn: s.Turn, Cost: s.Cost, Labels: s.Labels,
	}
	if s.Phase == Ended {
		m.Reason = s.Outcome.Reason
	}
	if s.Wait != nil && !s.over() {
		m.Suspension = s.Wait.ID
		for _, r := range s.Requests {
			m.Requests = append(m.Requests, r.memo())
		}
	}
	if s.redacted() {
		m.Task = ""
		for i := range m.Requests {
			m.Requests[i].Text = ""
		}
	}
	return m
}
