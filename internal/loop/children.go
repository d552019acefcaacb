package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Children is the part that keeps the sub-agents of the run, as it has heard of them.
type Children struct {
	List []Child `json:"list,omitempty"`
	// CheckAt is when the run looks after children that may have ended without a report.
	CheckAt time.Time `json:"check_at,omitzero"`
	// EndWaitUntil is until when an end waits for the children.
	EndWaitUntil time.Time `json:"end_wait_until,omitzero"`
}

// Child is a sub-agent.
type Child struct {
	Session string `json:"session"`
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent"`
	Task    string `json:"task"`
	// Call is the call that waits for its result; empty for one in the background.
	Call string `json:"call,omitempty"`
	// StartedBy is the call that started it.
	StartedBy string `json:"started_by"`
	// Started means that it is known to have begun: it can be told something.
	Started    bool                     `json:"started,omitempty"`
	Status     agent.Status             `json:"status"`
	Suspension *agent.SuspensionSummary `json:"suspension,omitempty"`
	Seq        int64                    `json:"seq,omitempty"` // of its last report
	AsOf       time.Time                `json:"as_of"`
	// Detached means that it began under an earlier execution of this run: its end is known
	// only if it is looked for, also when it tells of it.
	Detached bool `json:"detached,omitempty"`
	// Ending means that it has told of its end, which is being looked for.
	Ending bool `json:"ending,omitempty"`
	// PendingOrders is what it has to be told when it has begun.
	PendingOrders []wire.ParentOrder `json:"pending_orders,omitempty"`
	// Outcome is set when it has ended.
	Outcome *agent.Outcome `json:"outcome,omitempty"`
}

// Bounds of children.
const (
	// maxWorking is how many children may work at once. The server ends a workflow's task
	// that tells more than 2,000 others something, and an end, a hold or a stop tells all.
	maxWorking = 256
	// maxEnded bounds how many children that have ended are remembered.
	maxEnded = 256
	// maxChildText bounds what a run keeps of a child's answer once it is told.
	maxChildText = 2 << 10
	// maxSession bounds a child's session in bytes: it is a workflow's id.
	maxSession = 255
)

// endWaitTime is how long an end waits for the children that it cancelled.
const endWaitTime = 10 * time.Second

func (c Children) clone() Children {
	c.List = slices.Clone(c.List)
	return c
}

// notEnded reports whether a child may still be working.
func (c Child) notEnded() bool { return c.Outcome == nil }

// maxAhead is how many events a child may have recorded since its last report. After a
// forged number that is higher no true one would be news.
const maxAhead = 1 << 30

// isNews reports whether a report of this number is news, and can be.
func (c Child) isNews(seq int64) bool { return seq > c.Seq && seq-c.Seq <= maxAhead }

// find is the place of a child; -1 if there is none of that session.
func (c Children) find(session string) int {
	return slices.IndexFunc(c.List, func(one Child) bool { return one.Session == session })
}

func (c Children) sessions() (all []string) {
	for _, one := range c.List {
		all = append(all, one.Session)
	}
	return all
}

// startedBy are the children that a call has started.
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

// anyNotEnded reports whether a child may still be working.
func (c Children) anyNotEnded() bool { return slices.ContainsFunc(c.List, Child.notEnded) }

// starting reports whether a child is not known to have begun.
func (c Children) starting() bool {
	return slices.ContainsFunc(c.List, func(one Child) bool { return one.notEnded() && !one.Started })
}

// isWorking reports whether a child works.
func (c Child) isWorking() bool { return c.notEnded() && c.Status != agent.StatusSuspended }

// awaitsGrant reports whether a child rests for nothing but a grant: this run, or one above,
// lets it go on.
func (c Child) awaitsGrant() bool {
	return c.notEnded() && c.Suspension != nil && c.Suspension.Kind == agent.SuspensionAwaitingBudget
}

// isWorking reports whether the child of a session goes on.
func (c Children) isWorking(session string) bool {
	i := c.find(session)
	return i >= 0 && c.List[i].isWorking()
}

func (c Children) anyWorking() bool { return slices.ContainsFunc(c.List, Child.isWorking) }

// endedOrSuspended reports whether a child has ended, or is suspended until somebody else than the
// runtime does something.
func (c Children) endedOrSuspended(session string) bool {
	i := c.find(session)
	return i >= 0 && !c.List[i].isWorking() && !c.List[i].awaitsGrant()
}

// blocksEnd reports whether an end has to wait for children.
func (c Children) blocksEnd(at time.Time) bool { return c.anyNotEnded() && at.Before(c.EndWaitUntil) }

// counts sums the children up by how they stand, as far as that was heard.
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

// trim sheds what is more than the children's share, the oldest first: what those said
// that have ended, then these children, then what those ask that rest, and their tasks. What
// is left of 256 that work fits.
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
		if o := c.List[i].Outcome; o != nil && o.Handoff == nil {
			shed(i, func(one *Child) {
				less := *o
				less.Text, less.Output, less.Error = "", nil, codeOnly(o.Error)
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

// add remembers a child that is started, instead of the oldest that have ended.
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

// queueOrder keeps what a child has to be told when it has begun: the last order about holds, the
// last stop and the last cancel. An order has all holds above the child, so the last one is
// enough. No size counts what is owed: a run does not carry over while a child begins.
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

// started takes that a child has begun, and returns what it has to be told.
func (c *Children) started(i int, run string, at time.Time) (owed []wire.ParentOrder) {
	one := &c.List[i]
	owed = one.PendingOrders
	one.Started, one.Run, one.Status, one.AsOf, one.PendingOrders = true, run, agent.StatusRunning, at, nil
	return owed
}

// ended takes how a child ended.
func (c *Children) ended(i int, kept *agent.Outcome, at time.Time) {
	one := &c.List[i]
	kept.Session, kept.Run, kept.Agent = one.Session, one.Run, one.Agent
	one.Status, one.Suspension, one.AsOf, one.PendingOrders, one.Outcome = kept.Status, nil, at, nil, kept
}

// reported takes what a child says of itself, and returns whether its status is another.
func (c *Children) reported(i int, r wire.ChildReport, at time.Time) (changed bool) {
	one := &c.List[i]
	changed = one.Status != r.Status
	one.Seq, one.AsOf, one.Suspension, one.Status = r.Seq, at, nil, r.Status
	if r.Suspension != nil {
		note := wire.BoundedSummary(*r.Suspension)
		one.Suspension = &note
	}
	return changed
}

// granted takes that a child gets what it rests for: it goes on, and says so itself later.
func (c *Children) granted(session string) {
	one := &c.List[c.find(session)]
	if one.Suspension != nil && one.Suspension.Kind == agent.SuspensionAwaitingBudget {
		one.Status, one.Suspension = agent.StatusRunning, nil
	}
}

// newExecution takes that a new execution has begun: nobody tells of a child's end but itself.
// One that has told of it stays Ending: what looked for it went with the last execution.
func (c *Children) newExecution(at time.Time) {
	for i := range c.List {
		one := &c.List[i]
		one.Detached, one.Ending = one.notEnded(), one.Ending && one.notEnded()
	}
	c.CheckAt = at.Add(parentCheckFirst)
}

// ending takes that a child has told of its end, and is looked for: soon again, whatever
// that finds.
func (c *Children) ending(i int, at time.Time) {
	c.List[i].Ending, c.CheckAt = true, at.Add(parentCheckFirst)
}

// scheduleCheck sets when to look again, ever more seldom.
func (c *Children) scheduleCheck(began, at time.Time) {
	c.CheckAt = at.Add(min(max(at.Sub(began), parentCheckFirst), lookMost))
}

// startEndWait sets until when an end waits for the children.
func (c *Children) startEndWait(at time.Time) { c.EndWaitUntil = at.Add(endWaitTime) }

// childStarted learns that a child has begun, or why it could not.
func (s *step) childStarted(in ChildStarted) error {
	i := s.Children.find(in.Session)
	if i < 0 || !s.Children.List[i].notEnded() || s.Children.List[i].Started {
		return s.refuse("child %s is not waited for", in.Session)
	}
	c := s.Children.List[i]
	if in.Err != nil {
		s.childGone(i, &agent.Outcome{V: agent.Version, Type: "outcome", Session: c.Session, Agent: c.Agent, Status: agent.StatusFailed, Reason: string(in.Err.Code), Error: in.Err})
		return nil
	}
	owed := s.Children.started(i, in.Run, s.now())
	s.recordChild(agent.EventChildStarted, i, "")
	for _, o := range owed {
		s.orderChild(i, o)
	}
	if c.Call == "" {
		s.backgroundResult(s.Children.List[i])
	}
	return nil
}

// childEnded learns of a child's end from Temporal: by its result, or by a look at it.
func (s *step) childEnded(session string, o *agent.Outcome) error {
	i := s.Children.find(session)
	if i < 0 || !s.Children.List[i].notEnded() {
		return s.refuse("child %s is not waited for", session)
	}
	s.childGone(i, o)
	return nil
}

func (s *step) childGone(i int, o *agent.Outcome) {
	c := s.Children.List[i]
	if k := s.Calls.find(c.StartedBy); k >= 0 && s.Calls.List[k].State == CallAwaitingChildren && (c.Call != "" || !c.Started) {
		s.setResultAs(k, childResult(c.StartedBy, s.Calls.List[k].Tool, o), outcomeSize(o))
	}
	s.closeAccount(c, o)
	s.Children.ended(i, s.keptOutcome(o), s.now())
	s.recordChild(agent.EventChildEnded, i, o.Reason)
	s.answerWaits()
	s.Children.trim() // what was waited for is told
}

// reported takes what a child says of itself.
func (s *step) reported(r wire.ChildReport) error {
	i := s.Children.find(r.Session)
	if r.Run != s.Run {
		return s.refuse("a report of %s is for run %s", r.Session, r.Run)
	}
	if i >= 0 && (r.From == "" || r.From != s.Children.List[i].Run) {
		return s.refuse("a report of %s is from run %s, which is not the one that was started", r.Session, r.From)
	}
	if !r.Status.Known() {
		return s.refuse("a report of %s has a status that is not known", r.Session)
	}
	if r.MetHold != nil && !s.plausibleHold(*r.MetHold) {
		return s.refuse("a report of %s names a hold number that %s has not reached", r.Session, r.MetHold.Session)
	}
	live := i >= 0 && s.Children.List[i].notEnded()
	news := live && s.childBudgetReported(r)
	switch {
	case live && r.MetHold != nil:
		s.answerMetHold(i, *r.MetHold)
		return nil
	case live && r.Status.Ended(): // nothing is told after it
		return s.checkEnded(i)
	case news && !s.Children.List[i].isNews(r.Seq):
		return nil
	case !live || !s.Children.List[i].isNews(r.Seq):
		return s.refuse("child %s is not waited for, or has reported more already", r.Session)
	}
	if s.Children.reported(i, r, s.now()) {
		t := agent.EventChildResumed
		if r.Status == agent.StatusSuspended {
			t = agent.EventChildSuspended
		}
		s.recordChild(t, i, "")
	}
	s.answerWaits()
	s.Children.trim()
	return nil
}

// recordChild records what became of a child, unless the run's end is recorded.
func (s *step) recordChild(t agent.EventType, i int, reason string) {
	if s.decided() {
		return
	}
	c := s.Children.List[i]
	s.resumed.Cause = agent.Initiator(firstOf(string(s.resumed.Cause), string(agent.InitiatorTriggered)))
	s.recordIfBegun(agent.Event{Type: t, Child: &agent.ChildUpdate{Session: c.Session, Run: c.Run, Agent: c.Agent, Call: c.StartedBy, Status: c.Status, Reason: fit(reason, maxName)}})
}
