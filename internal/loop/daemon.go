package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// A daemon that has dealt with what it was told is parked in the place of an end,
// which no event ends by itself: whatever comes stands in Letters and Events, and
// it is from there that the next thing is taken, one at a time.

// daemon is how the run idles; nil where it ends.
func (s State) daemon() *agent.Daemon {
	if s.Spec == nil {
		return nil
	}
	return s.Spec.Daemon
}

// causeIdle is the cause of a daemon's suspensions.
const causeIdle = "idle"

// idling tells whether the run has nothing to deal with.
func (s State) idling() bool { return s.Park != nil && s.Park.Idle }

// hears tells whether events of a topic are for this run.
func (s State) hears(topic string) bool {
	d := s.daemon()
	return d != nil && (len(d.Topics) == 0 || slices.Contains(d.Topics, topic))
}

// topics are those that a daemon hears.
func (s State) topics() []string {
	d := s.daemon()
	switch {
	case d == nil || s.over():
		return nil
	case len(d.Topics) == 0:
		return []string{agent.EveryTopic}
	}
	return d.Topics
}

// Remembered are the messages that the session's head knows by their ids. Those of
// a daemon are many, and are written where the next run looks for them.
func (s State) Remembered(final bool) []agent.Post {
	if n := len(s.Posts) - maxPosts; n > 0 && !final {
		return s.Posts[n:]
	}
	return s.Posts
}

// Inbox is what the session's next run takes over, if this one ends as it stands and
// says no more: an event that has met a daemon's park is told by the end.
func (s State) Inbox() agent.Inbox {
	in := agent.Inbox{Cut: s.Due, Events: s.Events}
	if p := s.Park; p != nil && p.Met != nil && p.Met.Topic != "" && s.daemon() != nil {
		in.Events = slices.Concat([]agent.EmitOrder{p.Met.order()}, s.Events)
	}
	return in
}

// inherit takes over what the session's runs before this one have left.
func (s *step) inherit(in agent.Inbox) { s.Due, s.Events = in.Cut, in.Events }

// maxEventBytes bounds the events that wait, as they are written: they go along into
// a new execution and into the session's head.
const maxEventBytes = 512 << 10

// queue takes an event, which has turns of its own.
func (s *step) queue(o agent.EmitOrder, id string) error {
	e := agent.EmitOrder{Order: agent.Order{ID: id, By: o.By}, Topic: o.Topic, Payload: o.Payload}
	size := writtenEvent(e)
	for _, waiting := range s.Events {
		size += writtenEvent(waiting)
	}
	switch most := s.daemon().Queue; {
	case s.Stopping != nil:
		err := s.refuseAs(agent.Stale, "", "the run is being stopped; emit it again, with the same id, when the session's next run has begun")
		err.Retryable = true // it is for the session, which hears it: only not now
		return err
	case len(s.Events) >= most || size > maxEventBytes:
		return s.refuseAs(agent.QueueFull, "", "%d events wait already (daemon.queue allows %d, and %d bytes); emit it again, with the same id, when fewer do", len(s.Events), most, maxEventBytes)
	}
	s.Events, s.Log.Behind = append(s.Events, e), true
	s.post(id)
	return nil
}

// writtenEvent is the length of an event in JSON, where five characters of a payload
// are written as six. (To write all that wait for each that comes would take long.)
func writtenEvent(o agent.EmitOrder) int {
	const frame = len(`,"payload":,`)
	n := frame + len(o.Payload)
	for _, c := range string(o.Payload) {
		switch c {
		case '<', '>', '&':
			n += 5
		case '\u2028', '\u2029':
			n += 3
		}
	}
	o.Payload = nil
	return n + written(o)
}

// eventMessage is an event as the model is told of it.
func eventMessage(o agent.EmitOrder) agent.Message {
	payload := o.Payload
	if len(payload) == 0 {
		payload = []byte("null")
	}
	m := agent.TextMessage(agent.RoleUser, fmt.Sprintf("Event %s: %s", o.Topic, payload))
	m.ID, m.By, m.Note = o.ID, o.By, agent.NoteEvent
	return m
}

// dealt is a daemon's end of a task: it idles, unless its watchdog ends it.
func (s *step) dealt() {
	d := s.daemon()
	s.Phase, s.Due = Resting, false
	if d.Watchdog > 0 && s.Ticks >= d.Watchdog && len(s.Events) == 0 {
		s.end(agent.Completed, agent.ReasonWatchdog, func(o *agent.Outcome) { o.Text = s.Text })
		return
	}
	if d.Compact && len(s.Events) == 0 {
		s.Fresh = agent.CompactedForIdle
	}
	s.idleOn()
}

// idleOn parks the run until something comes; rouse looks whether it has already.
func (s *step) idleOn() {
	var c agent.Conditions
	if every := s.daemon().Every; every > 0 {
		c.Any = append(c.Any, agent.Condition{At: s.now().Add(time.Duration(every))})
	}
	for _, topic := range s.topics() {
		c.Any = append(c.Any, agent.Condition{Event: &agent.EventCondition{Topic: topic}})
	}
	s.Park, s.changed = &Park{Conditions: c, Idle: true}, true
	if w := s.Wait; w != nil { // it is held: that stands in Held
		w.By, w.Cause, w.Reason = agent.BySelf, causeIdle, ""
	}
}

// tidiesUp tells whether an idle daemon has yet to sum up what was said.
func (s *step) tidiesUp() bool {
	return s.Phase == Resting && s.idling() && s.Fresh == agent.CompactedForIdle && s.Wait == nil && s.Stopping == nil
}

// rouse takes the next thing to deal with: what was said before what has happened,
// and the interval last.
func (s *step) rouse() {
	if s.Phase != Resting && s.Phase != Carrying {
		return // it sums up
	}
	why, cause, ticks := agent.Resumed{Cause: agent.ByOperator}, "Somebody spoke to you.", 0
	switch {
	case len(s.Letters) > 0:
		s.Letters = slices.Clone(s.Letters)
		for i := range s.Letters {
			s.Letters[i].Mode = agent.SendSteer // the run was done: none waits any more
		}
		why.By = s.Letters[0].Message.By
	case len(s.Events) > 0:
		e := s.takeEvent(0)
		s.steer(eventMessage(e))
		why, cause = agent.Resumed{Cause: agent.ByTriggered, Event: e.Topic, By: e.By}, fmt.Sprintf("The event %s came.", e.Topic)
	case s.Park.Met != nil:
		ticks = s.Ticks + 1
		s.steer(wakeMessage(fmt.Sprintf("Your interval of %s is over, and nothing else has come. It is %s.", s.daemon().Every, s.now().Format(time.RFC3339))))
		why, cause = agent.Resumed{Cause: agent.ByTimeout}, "Your interval is over."
	default:
		return
	}
	if s.resumed.Cause == "" {
		s.resumed = why
	}
	s.afresh()
	s.goOnWith(cause, "")
	s.Park, s.Ticks = nil, ticks
}

// meet ends the park that has just begun with an event that has come already; zero
// is none.
func (s *step) meet(waiting int) {
	if waiting > 0 && waiting <= len(s.Events) {
		s.met(metBy(s.takeEvent(waiting - 1)))
	}
}

// takeEvent takes an event out of those that wait.
func (s *step) takeEvent(i int) agent.EmitOrder {
	e := s.Events[i]
	s.Events = slices.Concat(s.Events[:i], s.Events[i+1:]) // nil where none is left
	return e
}

// steer says something at the next turn.
func (s *step) steer(m agent.Message) {
	s.Letters = append(s.Letters, Letter{Message: m, Mode: agent.SendSteer})
}

func wakeMessage(text string) agent.Message {
	m := agent.TextMessage(agent.RoleUser, text)
	m.Note = agent.NoteWake
	return m
}

// afresh renews what holds for each wake: the limits, and what counts towards an
// end by the model's own fault.
func (s *step) afresh() {
	s.Base = agent.Limits{Turns: s.Turn, Tokens: s.Usage.Total(), CostUSD: s.Cost}
	s.Nudged, s.Repaired, s.Retried, s.Repeat = 0, 0, 0, Repeat{}
	if s.Limits.WallClock > 0 {
		s.restart()
	}
}
