package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Wait is the open suspension: what is the same for all that the run waits for.
// What that is stands in Holds, Requests and Park.
type Wait struct {
	ID string `json:"id"`
	// Resting tells that nothing is in flight any more, Seq is the event that says
	// so, and Saved tells that it is stored: only then the run is suspended and not
	// about to be.
	Resting bool  `json:"resting,omitempty"`
	Seq     int64 `json:"seq,omitempty"`
	Saved   bool  `json:"saved,omitempty"`
	// Carried tells that this execution began while the run waited.
	Carried bool            `json:"carried,omitempty"`
	By      agent.Initiator `json:"by"`
	Cause   string          `json:"cause,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Turn    int             `json:"turn"`
	At      time.Time       `json:"at"`
}

// wait opens a suspension, unless one is open: there is at most one.
func (s *step) wait(by agent.Initiator, cause, reason string) {
	if s.Wait != nil {
		return
	}
	s.Numbers.Suspension++
	s.Wait = &Wait{ID: agent.SuspensionID(s.Numbers.Suspension), By: by, Cause: cause, Reason: reason, Turn: s.Turn, At: s.At}
}

// waits tells whether something keeps the run from its next call.
func (s *step) waits() bool {
	return s.Stopping == nil && (s.held() || len(s.Requests) > 0 || s.Park != nil || s.childrenRest())
}

// idle tells whether nothing is in flight. What a held run has below it is held too.
func (s *step) idle() bool {
	switch s.Phase {
	case Resting, Carrying:
		return true
	case Working:
		return s.active() == 0 && (s.held() || !s.childrenWork())
	}
	return false
}

// closeWait closes the suspension when nothing keeps the run any more.
func (s *step) closeWait() {
	if s.Wait != nil && !s.over() && !s.waits() {
		s.goneOn()
	}
}

// rest makes a run that waits a suspended one, when nothing is in flight.
func (s *step) rest() {
	switch {
	case s.over():
		return
	case s.Wait == nil && s.Stopping == nil && s.childrenRest():
		s.wait(agent.ByPolicy, "children", "")
	}
	if s.Wait == nil && s.Stopping == nil && s.idling() && s.idle() {
		s.wait(agent.BySelf, causeIdle, "")
	}
	if s.Wait != nil && !s.Wait.Resting && s.idle() {
		s.Wait.Resting, s.Since = true, s.At
		s.record(agent.Event{Type: agent.RunSuspended, Suspension: s.Suspension()})
		s.Wait.Seq = s.Log.Seq
		s.LeaseAt = time.Time{}
	}
	switch w := s.Wait; {
	case w == nil || !w.Resting:
	case !s.saved(): // also where more keeps it now than an ancestor's hold
		w.Saved = false
		s.sealRest(false)
	case !w.Saved || s.changed:
		w.Saved = true
		s.do(Publish{})
		s.report(agent.Suspended)
	}
	s.keepInbox()
}

// saved tells whether the suspension is stored, so that the run may say that it
// is suspended. A run that nothing but an ancestor's hold keeps is stored later,
// see tick: a whole tree would do it at once.
func (s *step) saved() bool {
	return s.heldAboveOnly() || s.Log.Seq-int64(len(s.Log.Tail)) >= s.Wait.Seq
}

// carryAfter is how long a run rests before it goes on in a new execution, on the
// workers of today: a long wait does not pin an old build.
const carryAfter = 10 * time.Minute

// parkedLong tells whether it has rested for that long in this execution.
func (s *step) parkedLong() bool {
	w := s.Wait
	return w != nil && w.Saved && !w.Carried && !s.At.Before(s.Since.Add(carryAfter))
}

// heldAboveOnly tells whether nothing but an ancestor's hold keeps the run.
func (s *step) heldAboveOnly() bool {
	return s.Birth != nil && len(s.Requests) == 0 && s.Park == nil && s.ownHold() == nil && s.held()
}

// goneOn closes the suspension. One that never came to a rest was withdrawn.
func (s *step) goneOn() {
	w := s.Wait
	s.Wait = nil
	if !w.Resting {
		return
	}
	spent := s.At.Sub(s.Since)
	s.Parked += spent
	if !s.Deadline.IsZero() {
		s.Deadline = s.Deadline.Add(spent)
	}
	s.Since = s.At
	r := s.resumed
	r.Suspension = w.ID
	s.record(agent.Event{Type: agent.RunResumed, Resumed: &r})
	s.report(agent.Running)
	s.do(Publish{})
}

// Suspension is the open one as the wire shows it; nil while there is none.
func (s State) Suspension() *agent.Suspension {
	if s.Wait == nil || s.over() {
		return nil
	}
	w := s.Wait
	v := &agent.Suspension{
		ID: w.ID, Kind: agent.Paused, Initiator: w.By, Cause: w.Cause, Reason: w.Reason, Turn: w.Turn, Since: w.At, Held: s.Holds,
	}
	if w.Resting {
		v.Since = s.Since
	}
	switch {
	case len(s.Requests) > 0:
		v.Kind = agent.InputRequired
		for _, r := range s.Requests {
			v.Requests = append(v.Requests, r.Request)
			v.Expires = earlier(v.Expires, r.Deadline)
		}
	case s.Park != nil:
		v.Kind, v.Conditions = agent.WaitingFor, &s.Park.Conditions
		v.Expires = s.Park.next()
	case len(s.Holds) == 0:
		v.Kind = agent.AwaitingChildren
	}
	v.Owner = s.owner()
	return v
}

// maxWaitsFor bounds it, in bytes: a search attribute of 2 kB ends the workflow.
const maxWaitsFor = 1500

// WaitsFor is what listings find a run by (wire §8).
//
// A daemon is found by what it hears whether or not it is suspended.
func (s State) WaitsFor() (list []string) {
	size := 0
	add := func(what string) {
		if !slices.Contains(list, what) && size+len(what) <= maxWaitsFor {
			list, size = append(list, what), size+len(what)
		}
	}
	v := s.Suspension()
	if v != nil {
		add(string(v.Kind))
	}
	for _, topic := range s.topics() {
		add(heardAs(topic))
	}
	if v == nil {
		return list
	}
	for _, r := range v.Requests {
		add(string(r.Type))
		for _, a := range r.Approvers {
			add("approver:" + a)
		}
	}
	if v.Conditions != nil {
		for _, c := range v.Conditions.List() {
			if c.Event != nil {
				add(heardAs(c.Event.Topic))
			} else {
				add("time")
			}
		}
	}
	if v.Kind == agent.AwaitingChildren {
		add("children")
	}
	if len(v.Held) > 0 {
		add("held")
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

// earlier is the earlier of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
