package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Status is the run's status on the wire. A run that is ending still runs: an
// end is not told before it is stored.
func (s *State) Status() agent.Status {
	switch {
	case s.Life == New:
		return agent.Pending
	case s.Life == Ended:
		return s.End.Outcome.Status
	case s.Rest.Wait == nil || s.over():
		return agent.Running
	case s.Rest.Wait.Saved:
		return agent.Suspended
	}
	return agent.Suspending
}

// View is the answer to the query status.
func (s *State) View(now time.Time) agent.RunStatus {
	v := agent.RunStatus{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: s.Status(), Since: s.Rest.Since, Turn: s.Turn.N,
		Doing: s.doing(now), Suspension: s.Suspension(), Children: s.Children.counts(), Queued: len(s.Messages.Pending), Labels: s.Origin.Labels,
		Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Limits: s.usedOfLimits(now), Granted: agent.RoomOf(s.netGrant()), Left: agent.RoomOf(s.room()), Seq: s.Log.Seq, Refused: s.Verbs.Refused, Fault: s.Log.Fault,
	}
	if d := s.daemon(); d != nil {
		v.Events = &agent.Used[int]{Used: len(s.Messages.Events), Max: d.Queue}
	}
	switch {
	case s.Life == Ended:
		v.Reason = s.End.Outcome.Reason
	case s.End.Stopping != nil:
		v.Reason = agent.ReasonStopping
	}
	return v
}

// doing lists what the run is at.
func (s *State) doing(now time.Time) []agent.Doing {
	doing := []agent.Doing{}
	store := agent.Doing{Kind: agent.DoingStore, What: "transcript", Since: s.Rest.Since}
	switch {
	case s.Turn.inFlight():
		d := agent.Doing{Kind: agent.DoingModel, What: s.Spec.Model, Since: s.Turn.Asked}
		if s.Turn.Delay != nil && now.Before(s.Turn.Delay.Until) {
			d.Delay = s.Turn.Delay
		}
		doing = append(doing, d)
	case s.Life == Carrying || s.Life == Ending:
		doing = append(doing, store)
	case s.Rest.resting() && !s.Rest.Wait.Saved:
		doing = append(doing, store)
	}
	for _, c := range s.Calls.List {
		switch c.State {
		case Active:
			doing = append(doing, agent.Doing{Kind: agent.DoingTool, Call: c.ID, What: c.Tool, Since: c.Since})
		case Below:
			doing = append(doing, agent.Doing{Kind: agent.DoingChild, Call: c.ID, What: c.Tool, Since: c.Since})
		}
	}
	return doing
}

// maxMemoReason bounds the reason of a suspension in a listing, in bytes.
const maxMemoReason = 200

// Memo is what a listing shows of the run.
func (s *State) Memo() agent.Memo {
	m := agent.Memo{
		V: agent.Version, Run: s.Run, Task: s.Origin.Task, Status: s.Status(), Since: s.Rest.Since,
		Turn: s.Turn.N, Cost: s.Budget.Cost, Labels: s.Origin.Labels,
		Tree: s.treeTally(), Granted: agent.RoomOf(s.netGrant()), Left: agent.RoomOf(s.room()),
	}
	if s.Life == Ended {
		m.Reason = s.End.Outcome.Reason
	}
	if s.Rest.Wait != nil && !s.over() {
		m.Suspension, m.Reason = s.Rest.Wait.ID, fit(s.Rest.Wait.Reason, maxMemoReason)
		for _, r := range s.Requests.Open {
			m.Requests = append(m.Requests, r.memo())
		}
	}
	if s.redacted() {
		m.Task = ""
		if !s.over() { // an end's reason is a word of the runtime's, or of who ended it
			m.Reason = ""
		}
		for i := range m.Requests {
			m.Requests[i].Text = ""
		}
	}
	return m
}

// Suspension is the open one as the wire shows it; nil while there is none.
func (s *State) Suspension() *agent.Suspension {
	w := s.Rest.Wait
	if w == nil || s.over() {
		return nil
	}
	why := s.reasons()
	v := &agent.Suspension{
		ID: w.ID, Kind: why.kind(), Initiator: w.By, Cause: w.Cause, Reason: w.Reason, Turn: w.Turn, Since: w.At, Held: s.Holds.List,
		Expires: why.expires(), Owner: why.owner(), ResumeBy: s.resumeBy(),
	}
	if w.Resting {
		v.Since = s.Rest.Since
	}
	switch v.Kind {
	case agent.InputRequired:
		for _, o := range s.Requests.Open {
			v.Requests = append(v.Requests, s.shown(o))
		}
	case agent.WaitingFor:
		conditions := s.Park.Conditions
		v.Conditions = &conditions
	}
	return v
}

// maxWaitsFor bounds what listings find a run by, in bytes: a search attribute of 2 kB
// ends the workflow.
const maxWaitsFor = 1500

// WaitsFor is what listings find a run by (wire §8). A daemon is found by what it hears,
// also while it is not suspended.
func (s *State) WaitsFor() (list []string) {
	size := 0
	add := func(what string) {
		if !slices.Contains(list, what) && size+len(what) <= maxWaitsFor {
			list, size = append(list, what), size+len(what)
		}
	}
	why := s.reasons()
	suspended := s.Rest.Wait != nil && !s.over()
	if suspended {
		add(string(why.kind()))
	}
	for _, topic := range s.topics() {
		add(heardAs(topic))
	}
	if s.Log.losesWorkers() && s.Life != Ended {
		add(string(agent.WorkerLost))
	}
	if !suspended {
		return list
	}
	for _, r := range why {
		for _, what := range r.finds {
			add(what)
		}
	}
	return list
}

// heardAs is a topic as listings find it.
func heardAs(topic string) string {
	if topic == agent.EveryTopic {
		return agent.HearsAll
	}
	return "topic:" + topic
}

// Nodes is the run and what it has heard of its sub-agents, for the query tree.
func (s *State) Nodes() []agent.Node {
	own := agent.Node{
		Session: s.Session, Run: s.Run, Agent: s.agent(), Status: s.Status(), Heard: s.Rest.Since.UTC().Format(time.RFC3339),
		Used: s.treeTally(), Granted: agent.RoomOf(s.netGrant()),
	}
	if !s.Status().Ended() {
		own.Left = agent.RoomOf(s.room())
	}
	if open := s.Suspension(); open != nil {
		note := open.Note(s.redacted())
		own.Suspension = &note
	}
	if b := s.Parent.Birth; b != nil {
		own.Parent, own.Depth = b.Parent.Session, b.Depth
	}
	nodes := []agent.Node{own}
	for _, c := range s.Children.List {
		n := agent.Node{
			Session: c.Session, Run: c.Run, Parent: s.Session, Agent: c.Agent, Depth: own.Depth + 1,
			Status: c.Status, Suspension: c.Suspension, Heard: c.Heard.UTC().Format(time.RFC3339),
		}
		if i := s.Ledger.find(c.Session); i >= 0 {
			a := s.Ledger.Accounts[i]
			n.Used, n.Granted, n.Left = a.Spent, agent.RoomOf(a.net()), agent.RoomOf(a.room())
		} else if c.Outcome != nil {
			n.Used = c.Outcome.Tree
		}
		nodes = append(nodes, n)
	}
	return nodes
}
