package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Children is the part that keeps the sub-agents of the run, as far as reports say.
type Children struct {
	List []Child `json:"list,omitempty"`
	// CheckAt is when the run checks children that may have ended without a report.
	CheckAt time.Time `json:"check_at,omitzero"`
	// EndWaitUntil is the time until which the run's end waits for the children.
	EndWaitUntil time.Time `json:"end_wait_until,omitzero"`
}

// Child is a sub-agent's run, as the parent knows it.
type Child struct {
	Session string `json:"session"`
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent"`
	Task    string `json:"task"`
	// Call is the call that waits for the child's result; empty for a child in the background.
	Call string `json:"call,omitempty"`
	// Released means that a call waited for the child until it was suspended (safetynet.go). The child
	// is in the background since, but the server still cancels it when this execution closes.
	Released bool `json:"released,omitempty"`
	// ShownAt is the turn in which the model was shown how the child stands; zero if that has changed since.
	ShownAt int `json:"shown_at,omitempty"`
	// Ordered means that a child that rests was ordered to go on or to end, and has not reported since. It
	// counts as working: it reports also if it refuses the order.
	Ordered bool `json:"ordered,omitempty"`
	// StartedBy is the call that started the child.
	StartedBy string `json:"started_by"`
	// Started means that the child is known to have started, so that it can get orders.
	Started    bool                     `json:"started,omitempty"`
	Status     agent.Status             `json:"status"`
	Suspension *agent.SuspensionSummary `json:"suspension,omitempty"`
	Seq        int64                    `json:"seq,omitempty"` // of its last report
	AsOf       time.Time                `json:"as_of"`
	// Detached means that the child began under an earlier execution of this run. Temporal does
	// not deliver its result to this execution, so the run has to ask for it.
	Detached bool `json:"detached,omitempty"`
	// Ending means that the child has reported its end, and its outcome has not come yet.
	Ending bool `json:"ending,omitempty"`
	// PendingOrders are the orders that the child gets as soon as it has started.
	PendingOrders []wire.ParentOrder `json:"pending_orders,omitempty"`
	// Outcome is set when the child has ended.
	Outcome *agent.Outcome `json:"outcome,omitempty"`
}

// Limits of children.
const (
	// maxWorking is how many children may work at once. The server fails a workflow task that
	// signals more than 2,000 workflows, and an end, a hold or a stop signals all children.
	maxWorking = 256
	// maxEnded is how many ended children are remembered.
	maxEnded = 256
	// maxChildText bounds, in bytes, what a run keeps of a child's answer.
	maxChildText = 2 << 10
	// maxReleasedText is maxChildText of a released child, until a wait has shown its answer.
	maxReleasedText = 64 << 10
	// maxSession bounds a child's session in bytes, because it is a workflow id.
	maxSession = 255
)

// endWaitTime is how long a run waits at its end for the children that it cancelled.
const endWaitTime = 10 * time.Second

func (c Children) clone() Children {
	c.List = slices.Clone(c.List)
	return c
}

// notEnded reports whether a child is not known to have ended.
func (c Child) notEnded() bool { return c.Outcome == nil }

// maxAhead is how many events a child may have recorded since its last report. A forged report with
// a higher number would make all true ones look old.
const maxAhead = 1 << 30

// isNews reports whether a report with this number is new and plausible.
func (c Child) isNews(seq int64) bool { return seq > c.Seq && seq-c.Seq <= maxAhead }

// find returns the index of a session's child; -1 if there is none.
func (c Children) find(session string) int {
	return slices.IndexFunc(c.List, func(one Child) bool { return one.Session == session })
}

func (c Children) sessions() (all []string) {
	for _, one := range c.List {
		all = append(all, one.Session)
	}
	return all
}

// startedBy returns the children that a call has started.
func (c Children) startedBy(call string) (all []string) {
	for _, one := range c.List {
		if one.StartedBy == call {
			all = append(all, one.Session)
		}
	}
	return all
}

func (c Children) countNotEnded() (n int) {
	for _, one := range c.List {
		if one.notEnded() {
			n++
		}
	}
	return n
}

// anyNotEnded reports whether any child is not known to have ended.
func (c Children) anyNotEnded() bool { return slices.ContainsFunc(c.List, Child.notEnded) }

// starting reports whether any child is not known to have started.
func (c Children) starting() bool {
	return slices.ContainsFunc(c.List, func(one Child) bool { return one.notEnded() && !one.Started })
}

// isWorking reports whether a child has neither ended nor is suspended, as far as reports say.
func (c Child) isWorking() bool {
	return c.notEnded() && (c.Ordered || c.Status != agent.StatusSuspended)
}

// isUnread reports whether the model has not read how the child stands before this turn.
func (c Child) isUnread(turn int) bool { return c.ShownAt == 0 || c.ShownAt == turn }

// shown records that the model is shown how a child stands. Its answer need not be kept whole any more.
func (c *Children) shown(i, turn int) {
	one := &c.List[i]
	*one = one.short()
	one.ShownAt = turn
}

// short returns a child whose answer is not kept whole.
func (c Child) short() Child {
	if c.Outcome != nil && c.Released {
		c.Outcome = shorterOutcome(c.Outcome)
	}
	return c
}

// ordered records that a child got an order to go on or to end. One that works does so anyway.
func (c *Children) ordered(i int) { c.List[i].Ordered = c.List[i].Status == agent.StatusSuspended }

// awaitsGrant reports whether a child is suspended for a grant only: this run or an ancestor will
// let it continue.
func (c Child) awaitsGrant() bool {
	return c.notEnded() && c.Suspension != nil && c.Suspension.Kind == agent.SuspensionAwaitingBudget
}

// isWorking reports whether a session's child works.
func (c Children) isWorking(session string) bool {
	i := c.find(session)
	return i >= 0 && c.List[i].isWorking()
}

func (c Children) anyWorking() bool { return slices.ContainsFunc(c.List, Child.isWorking) }

// endedOrSuspended reports whether a child has ended, or is suspended until something other than the
// runtime lets it continue. A child that waits for a grant does not count.
func (c Children) endedOrSuspended(session string) bool {
	i := c.find(session)
	return i >= 0 && !c.List[i].isWorking() && !c.List[i].awaitsGrant()
}

// blocksEnd reports whether the run's end still waits for children.
func (c Children) blocksEnd(at time.Time) bool { return c.anyNotEnded() && at.Before(c.EndWaitUntil) }

// counts counts the children by status, as far as reports say.
func (c Children) counts() (n agent.ChildCounts) {
	for _, one := range c.List {
		switch {
		case !one.notEnded():
			n.Ended++
		case one.Status == agent.StatusSuspended:
			n.Suspended++
		default:
			n.Running++
		}
	}
	return n
}

// trim drops what exceeds the children's share of the state (childShare). It has one pass for each
// kind of data, each with the oldest child first:
//
//  1. texts of released children that are kept whole
//  2. texts of ended children
//  3. ended children
//  4. requests and texts of suspensions
//  5. tasks
//
// What then remains of maxWorking children fits. An outcome with a handoff is never cut: the run's
// own handoff is made from it.
func (c *Children) trim() {
	size := 0
	for _, one := range c.List {
		size += one.jsonLen()
	}
	shed := func(i int, change func(*Child)) {
		size -= c.List[i].jsonLen()
		change(&c.List[i])
		size += c.List[i].jsonLen()
	}
	for i := 0; i < len(c.List) && size > childShare; i++ {
		if c.List[i].Released {
			shed(i, func(one *Child) { *one = one.short() })
		}
	}
	for i := 0; i < len(c.List) && size > childShare; i++ {
		if o := c.List[i].Outcome; o != nil && o.Handoff == nil {
			shed(i, func(one *Child) {
				less := *o // a copy: the state before this step shares the outcome
				less.Text, less.Output, less.Files, less.Error = "", nil, nil, codeOnly(o.Error)
				one.Outcome = &less
			})
		}
	}
	c.List = slices.DeleteFunc(c.List, func(one Child) bool {
		drop := size > childShare && !one.notEnded() && one.Outcome.Handoff == nil
		if drop {
			size -= one.jsonLen()
		}
		return drop
	})
	for i := 0; i < len(c.List) && size > childShare; i++ {
		if note := c.List[i].Suspension; note != nil {
			shed(i, func(one *Child) {
				one.Suspension = &agent.SuspensionSummary{ID: fit(note.ID, receiptFrame), Kind: fit(note.Kind, receiptFrame), Turn: note.Turn, Since: note.Since, Open: note.Open}
			})
		}
	}
	for i := 0; i < len(c.List) && size > childShare; i++ {
		shed(i, func(one *Child) { one.Task = "" })
	}
}

// add appends a child, and drops the oldest ended ones beyond maxEnded.
func (c *Children) add(one Child) {
	ended := len(c.List) - c.countNotEnded()
	c.List = slices.DeleteFunc(c.List, func(old Child) bool {
		drop := !old.notEnded() && ended > maxEnded
		if drop {
			ended--
		}
		return drop
	})
	c.List = append(c.List, one)
	c.trim()
}

// queueOrder keeps an order for a child that has not begun: the last one about holds, the last stop
// and the last cancel. Each order about holds has all holds above the child, so the last one is
// enough. PendingOrders need no size limit: the run does not continue as new until the child has
// started.
func (c *Children) queueOrder(i int, o wire.ParentOrder) {
	ends := func(o wire.ParentOrder) agent.Verb {
		if o.Verb == agent.VerbStop || o.Verb == agent.VerbCancel {
			return o.Verb
		}
		return ""
	}
	owed := slices.DeleteFunc(slices.Clone(c.List[i].PendingOrders), func(old wire.ParentOrder) bool { return ends(old) == ends(o) })
	c.List[i].PendingOrders = append(owed, o)
}

// started records that a child has started, and returns the orders that wait for it.
func (c *Children) started(i int, run string, at time.Time) (owed []wire.ParentOrder) {
	one := &c.List[i]
	owed = one.PendingOrders
	one.Started, one.Run, one.Status, one.AsOf, one.PendingOrders = true, run, agent.StatusRunning, at, nil
	return owed
}

// ended records a child's outcome.
func (c *Children) ended(i int, kept *agent.Outcome, at time.Time) {
	one := &c.List[i]
	// From the list: Temporal's outcome of a terminated child names no run and no agent.
	kept.Session, kept.Run, kept.Agent = one.Session, one.Run, one.Agent
	one.Status, one.Suspension, one.AsOf, one.PendingOrders, one.Outcome = kept.Status, nil, at, nil, kept
	one.ShownAt, one.Ordered = 0, false
}

// reported records a child's report, and returns whether its status has changed.
func (c *Children) reported(i int, r wire.ChildReport, at time.Time) (changed bool) {
	one := &c.List[i]
	changed = one.Status != r.Status
	one.Seq, one.AsOf, one.Suspension, one.Status, one.ShownAt, one.Ordered = r.Seq, at, nil, r.Status, 0, false
	if r.Suspension != nil {
		note := wire.BoundedSummary(*r.Suspension)
		one.Suspension = &note
	}
	return changed
}

// granted records that a child gets the grant that it waits for. The child works again from now on;
// its own report of that comes later.
func (c *Children) granted(session string) {
	one := &c.List[c.find(session)]
	if one.Suspension != nil && one.Suspension.Kind == agent.SuspensionAwaitingBudget {
		one.Status, one.Suspension = agent.StatusRunning, nil
	}
}

// release makes a child one in the background.
func (c *Children) release(i int) { c.List[i].Call, c.List[i].Released = "", true }

// anyReleased reports whether any child that has not ended is released, and began under this execution.
func (c Children) anyReleased() bool {
	return slices.ContainsFunc(c.List, func(one Child) bool { return one.Released && one.notEnded() && !one.Detached })
}

// awaitsMore records that a child is suspended still, since the grant that it got is less than what
// it has used already. It never worked again, so it reports no other status.
func (c *Children) awaitsMore(i int, at time.Time) {
	if one := &c.List[i]; one.Status == agent.StatusRunning {
		one.Status, one.Suspension = agent.StatusSuspended, &agent.SuspensionSummary{Kind: agent.SuspensionAwaitingBudget, Owner: agent.OwnerRuntime, Since: at}
	}
}

// newExecution records that a new execution has started. Temporal no longer delivers a child's result,
// so only the child's own report and a check find its end. A child that had reported its end stays
// Ending, because the check of the last execution is gone.
func (c *Children) newExecution(at time.Time) {
	for i := range c.List {
		one := &c.List[i]
		one.Detached, one.Ending = one.notEnded(), one.Ending && one.notEnded()
	}
	c.CheckAt = at.Add(parentCheckFirst)
}

// ending records that a child has reported its end. The next check is soon, in case this one finds
// nothing.
func (c *Children) ending(i int, at time.Time) {
	c.List[i].Ending, c.CheckAt = true, at.Add(parentCheckFirst)
}

// scheduleCheck sets the next check. Checks become rarer as the run gets older, down to one each
// lookMost.
func (c *Children) scheduleCheck(began, at time.Time) {
	c.CheckAt = at.Add(min(max(at.Sub(began), parentCheckFirst), lookMost))
}

// startEndWait sets how long the run's end waits for the children.
func (c *Children) startEndWait(at time.Time) { c.EndWaitUntil = at.Add(endWaitTime) }

// takeFiles returns the files that children in the background have given back, and forgets them.
func (c *Children) takeFiles(sessions []string) (files []agent.File) {
	for i, one := range c.List {
		if one.Outcome == nil || len(one.Outcome.Files) == 0 || !slices.Contains(sessions, one.Session) {
			continue
		}
		files = append(files, one.Outcome.Files...)
		less := *one.Outcome // a copy: the state before this step shares the outcome
		less.Files = nil
		c.List[i].Outcome = &less
	}
	return files
}
