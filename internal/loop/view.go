package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Status returns the run's status on the wire. A run that is ending is still running: an end
// is not reported before it is stored.
func (s *State) Status() agent.Status {
	switch {
	case s.Phase == RunNew:
		return agent.StatusPending
	case s.Phase == RunEnded:
		return s.End.Outcome.Status
	case s.Suspensions.Open == nil || s.outcomeDecided():
		return agent.StatusRunning
	// A suspension is not reported before it is stored either, except under an ancestor's
	// hold alone (see step.stored).
	case s.Suspensions.Open.Published:
		return agent.StatusSuspended
	}
	return agent.StatusSuspending
}

// View returns the answer to the query status.
func (s *State) View(now time.Time) agent.RunStatus {
	v := agent.RunStatus{
		V: agent.Version, Session: s.Session, Run: s.Run, Agent: s.agent(), Status: s.Status(), Since: s.Suspensions.Since, Turn: s.Turn.N, Turns: s.ownTurns(),
		InFlight: s.listInFlight(now), Suspension: s.Suspension(), Children: s.Children.counts(), Queued: len(s.Messages.Pending), Labels: s.Origin.Labels,
		Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tree: s.treeTally(), Limits: s.limitsUsed(now), Granted: wire.BudgetOf(s.netGrant()), Remaining: wire.BudgetOf(s.remainingBudget()), Seq: s.Log.Seq, Refused: s.Verbs.Refused, StoreError: s.Log.SealError,
	}
	v.SuspensionDenied, v.Kept = s.SuspensionHooks.Denied, s.kept()
	if v.Suspension == nil && !s.outcomeDecided() {
		v.Requests = s.wireRequests()
	}
	if p := s.Progress.Last; !p.IsZero() {
		v.Progress = &p
	}
	if d := s.daemon(); d != nil {
		v.QueuedEvents = &agent.Used[int]{Used: len(s.Messages.Emitted), Max: d.Queue}
		v.Event, v.Watch = s.Daemon.Event, d.Watch
	}
	switch {
	case s.Phase == RunEnded:
		v.Reason = s.End.Outcome.Reason
		v.StoreError = s.End.Outcome.Unsaved
	case s.endsCancelled():
		v.Reason = agent.ReasonCancelling
	case s.End.Stopping != nil:
		v.Reason = agent.ReasonStopping
	}
	return v
}

// kept returns what a run at rest keeps until it goes on; nil if that is nothing. Requests and what the
// run waits for are in the suspension, and calls that wait are in flight.
func (s *State) kept() *agent.Kept {
	if !s.Suspensions.atRest() || s.outcomeDecided() {
		return nil
	}
	k := &agent.Kept{}
	for _, p := range s.Messages.Pending {
		k.Messages = append(k.Messages, agent.KeptMessage{By: p.Message.By, Text: agent.Input{Parts: p.Message.Parts}.Task()})
	}
	for _, c := range s.Calls.List {
		if c.State == CallPending && !s.Checks.has(c.ID) {
			k.Calls = append(k.Calls, agent.KeptCall{Call: c.ID, Tool: c.Tool, Step: s.stepPath(c), Decided: c.hasDecision(), Asked: c.wasStarted()})
		}
	}
	if len(k.Messages)+len(k.Calls) == 0 {
		return nil
	}
	return k
}

// listInFlight returns what is in flight: model and tool calls, children, and the store.
func (s *State) listInFlight(now time.Time) []agent.InFlight {
	// Not nil: the wire shows an empty list as [].
	doing := []agent.InFlight{}
	store := agent.InFlight{Kind: agent.InFlightStore, Name: "transcript", Since: s.Suspensions.Since}
	switch {
	case s.Turn.inFlight():
		d := agent.InFlight{Kind: agent.InFlightModel, Name: s.Spec.Model, Since: s.Turn.Asked}
		if s.Turn.Delay != nil && now.Before(s.Turn.Delay.Until) {
			d.Delay = s.Turn.Delay
		}
		doing = append(doing, d)
	case s.Turn.Phase == TurnAdvancing:
		doing = append(doing, agent.InFlight{Kind: agent.InFlightFlow, Name: s.agent(), Since: s.Turn.Asked})
	case s.Phase == RunEnding && s.Children.anyNotEnded(): // it is stored when they have ended
		for _, c := range s.Children.List {
			if c.notEnded() {
				doing = append(doing, agent.InFlight{Kind: agent.InFlightChild, Call: c.StartedBy, Name: c.Agent, Since: s.Suspensions.Since})
			}
		}
	case s.Phase == RunContinuing || s.Phase == RunEnding:
		doing = append(doing, store)
	case s.Suspensions.atRest() && !s.Suspensions.Open.Published && !s.SuspensionHooks.asked():
		doing = append(doing, store)
	}
	if at := s.SuspensionHooks.Current; at != nil {
		doing = append(doing, agent.InFlight{Kind: agent.InFlightTool, Call: at.Call, Name: s.currentHook().ToolName(), Since: at.Since})
	}
	for _, c := range s.Calls.List {
		switch c.State {
		case CallRunning:
			doing = append(doing, agent.InFlight{Kind: agent.InFlightTool, Call: c.ID, Name: c.Tool, Step: s.stepPath(c), Since: c.Since})
		case CallAwaitingChildren:
			doing = append(doing, agent.InFlight{Kind: agent.InFlightChild, Call: c.ID, Name: c.Tool, Step: s.stepPath(c), Since: c.Since})
		case CallAwaitingEvent:
			doing = append(doing, agent.InFlight{Kind: agent.InFlightWait, Call: c.ID, Name: c.Tool, Step: s.stepPath(c), Since: c.Since})
		}
	}
	return doing
}

// maxMemoReason bounds the reason of a suspension in a listing, in bytes of JSON.
const maxMemoReason = 200

// Memo returns what a listing shows of the run.
func (s *State) Memo() agent.Memo {
	m := agent.Memo{
		V: agent.Version, Run: s.Run, Task: s.Origin.Task, Status: s.Status(), Since: s.Suspensions.Since,
		Turn: s.Turn.N, Turns: s.ownTurns(), Cost: s.Budget.Cost, Labels: s.Origin.Labels,
		Tree: s.treeTally(), Granted: wire.BudgetOf(s.netGrant()), Remaining: wire.BudgetOf(s.remainingBudget()),
		Progress: firstCharacters(s.Progress.Last.Line(), 120),
	}
	if s.Spec != nil && s.Parent.Start == nil {
		m.Retention, m.Stateless = s.Spec.Retention, s.Spec.Stateless
	}
	if s.Phase == RunEnded {
		m.Reason, m.Workspace = s.End.Outcome.Reason, workspaceResult(s.End.Outcome)
	}
	if s.Suspensions.Open != nil && !s.outcomeDecided() {
		m.Suspension, m.Reason = s.Suspensions.Open.ID, fit(s.Suspensions.Open.Reason, maxMemoReason)
	}
	if !s.outcomeDecided() {
		for _, r := range s.Requests.Open {
			m.Requests = append(m.Requests, r.memo())
		}
	}
	// Whoever may list runs can read their memos.
	if s.redacted() {
		m.Task, m.Progress = "", ""
		if !s.outcomeDecided() { // an end's reason is a word of the runtime's, or of who ended the run
			m.Reason = ""
		}
		for i, q := range m.Requests {
			m.Requests[i] = redacted(q)
		}
	}
	return m
}

// Suspension returns the open suspension as the wire shows it; nil if none is open.
func (s *State) Suspension() *agent.Suspension {
	w := s.Suspensions.Open
	if w == nil || s.outcomeDecided() {
		return nil
	}
	why := s.reasons()
	v := &agent.Suspension{
		ID: w.ID, Kind: why.kind(), Initiator: w.By, Cause: w.Cause, Reason: w.Reason, Turn: w.Turn, Checkpoint: s.Turn.checkpointID(s.Session), Since: w.At, Holds: s.Holds.List,
		Expires: why.expires(), Owner: why.owner(), ResumeBy: s.resumeBy(), OwnerFailed: w.OwnerFailed,
	}
	if w.AtRest {
		v.Since = s.Suspensions.Since
	}
	if v.Kind == agent.SuspensionInputRequired || s.isFlow() {
		v.Requests = s.wireRequests()
	}
	if v.Kind == agent.SuspensionParked && s.Park != nil {
		conditions := s.Park.Conditions
		v.Conditions = &conditions
	}
	v.Waits = s.stepWaits()
	return v
}

// maxWaitsFor bounds the search attribute FermataWaitsFor, in bytes. One of 2 kB ends the
// workflow.
const maxWaitsFor = 1500

// WaitsFor returns what listings find the run by (docs/wire.md §8). A daemon is found by its
// topics, also while it is not suspended.
func (s *State) WaitsFor() (list []string) {
	size := 0
	add := func(what string) {
		if !slices.Contains(list, what) && size+len(what) <= maxWaitsFor {
			list, size = append(list, what), size+len(what)
		}
	}
	why := s.reasons()
	suspended := s.Suspensions.Open != nil && !s.outcomeDecided()
	if s.isFlow() && !s.outcomeDecided() { // what single steps wait for is to be found whatever else keeps the run
		steps := slices.Concat(s.Requests.reasons(), s.Calls.waitReasons())
		if !suspended {
			why = nil
		}
		why, suspended = append(why, steps...), suspended || len(steps) > 0
	}
	if suspended {
		// First what matters most: what does not fit is left out.
		add(string(why.kind()))
	}
	for _, topic := range s.topics() {
		add(topicValue(topic))
	}
	if s.Log.losesWorkers() && s.Phase != RunEnded {
		add(string(agent.CodeWorkerLost))
	}
	if !suspended {
		return list
	}
	for _, r := range why {
		if r.kind == agent.SuspensionInputRequired { // also of a flow that is kept by something else
			add(string(r.kind))
		}
		for _, what := range r.finds {
			add(what)
		}
	}
	return list
}

// topicValue returns how listings find a topic.
func topicValue(topic string) string {
	if topic == agent.EveryTopic {
		return agent.WaitsForEveryTopic
	}
	return "topic:" + topic
}

// Nodes returns the run and its children, for the query tree. What it says of the children
// is as of their last reports.
func (s *State) Nodes() []agent.Node {
	own := agent.Node{
		Session: s.Session, Run: s.Run, Agent: s.agent(), Status: s.Status(), AsOf: s.Suspensions.Since.UTC().Format(time.RFC3339),
		Used: s.treeTally(), Granted: wire.BudgetOf(s.netGrant()),
	}
	if !s.Status().Ended() {
		own.Remaining = wire.BudgetOf(s.remainingBudget())
	} else {
		own.Workspace = workspaceResult(s.End.Outcome)
	}
	if open := s.Suspension(); open != nil {
		note := wire.Summary(*open, s.redacted())
		own.Suspension = &note
	}
	if !s.redacted() {
		own.Progress = firstCharacters(s.Progress.Last.Line(), 120)
	}
	if b := s.Parent.Start; b != nil {
		own.Parent, own.Depth = b.Parent.Session, b.Depth
	}
	nodes := []agent.Node{own}
	for _, c := range s.Children.List {
		n := agent.Node{
			Session: c.Session, Run: c.Run, Parent: s.Session, Agent: c.Agent, Depth: own.Depth + 1,
			Status: c.Status, Suspension: c.Suspension, AsOf: c.AsOf.UTC().Format(time.RFC3339), Workspace: workspaceResult(c.Outcome),
		}
		if i := s.Ledger.find(c.Session); i >= 0 {
			a := s.Ledger.Accounts[i]
			n.Used, n.Granted, n.Remaining = a.Used, wire.BudgetOf(a.net()), wire.BudgetOf(a.remaining())
		} else if c.Outcome != nil {
			n.Used = c.Outcome.Tree
		}
		nodes = append(nodes, n)
	}
	return nodes
}
