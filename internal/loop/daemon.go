package loop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Daemon is the part that knows whether a run that never completes has messages or events to work
// on. If it has none, it is parked instead of ended ([Park].Idle). Messages and events wait
// in [Messages], and the daemon takes one task at a time from there. Unlike in other parks, no
// event ends the park by itself.
type Daemon struct {
	// HasWork means that a task has started and is not done. The session's next run continues it.
	HasWork bool `json:"has_work,omitempty"`
	// IdleWakes is how often in a row its interval has woken it and the model called no tool.
	IdleWakes int `json:"idle_wakes,omitempty"`
	// Event is the event that has woken the daemon; nil if it works on something else, or on nothing.
	Event *agent.HandledEvent `json:"event,omitempty"`
}

func (d *Daemon) markWork() { d.HasWork = true }

// keepWorkIf clears HasWork unless still is true.
func (d *Daemon) keepWorkIf(still bool) {
	if d.HasWork = d.HasWork && still; !d.HasWork {
		d.Event = nil
	}
}

// handle records which event has woken the daemon.
func (d *Daemon) handle(e agent.EmitCommand) {
	d.Event = &agent.HandledEvent{ID: e.ID, Topic: e.Topic}
}

// setWork sets HasWork, from what the session's previous run has left.
func (d *Daemon) setWork(due bool) { d.HasWork = due }

// acted records that the model called a tool: the interval did not wake the daemon for nothing.
func (d *Daemon) acted() { d.IdleWakes = 0 }

// setIdleWakes sets how often in a row the interval has woken the daemon.
func (d *Daemon) setIdleWakes(ticks int) { d.IdleWakes = ticks }

// watchdogExpired reports whether the daemon's watchdog ends it.
func (d Daemon) watchdogExpired(watchdog int) bool { return watchdog > 0 && d.IdleWakes >= watchdog }

// daemon returns the Spec's settings of a daemon; nil if the run is none.
func (s *State) daemon() *agent.Daemon {
	if s.Spec == nil {
		return nil
	}
	return s.Spec.Daemon
}

// causeIdle is the cause of a daemon's suspensions.
const causeIdle = "idle"

// idling reports whether the run is a daemon that has nothing to deal with.
func (s *State) idling() bool { return s.Park != nil && s.Park.Idle }

// hearsTopic reports whether the run is a daemon that takes events of a topic.
func (s *State) hearsTopic(topic string) bool {
	d := s.daemon()
	return d != nil && (len(d.Topics) == 0 || slices.Contains(d.Topics, topic))
}

// topics returns the topics whose events a daemon takes; nil for another run, and at the end.
func (s *State) topics() []string {
	d := s.daemon()
	switch {
	case d == nil || s.outcomeDecided():
		return nil
	case len(d.Topics) == 0:
		return []string{agent.EveryTopic}
	}
	return d.Topics
}

// endTask ends a task of a daemon. The daemon becomes idle, unless its watchdog ends it.
func (s *step) endTask() {
	d := s.daemon()
	s.Daemon.keepWorkIf(false)
	s.Hooks.startTurn(false) // the task's last turn
	if s.Daemon.watchdogExpired(d.Watchdog) && len(s.Messages.Emitted) == 0 {
		s.end(agent.StatusCompleted, agent.ReasonWatchdog, func(o *agent.Outcome) { o.Text = s.Turn.Text })
		return
	}
	// Not if an event waits: it wakes the daemon at once, before the summary would be made.
	if d.Compact && len(s.Messages.Emitted) == 0 {
		s.Turn.summarizeFirst(agent.CompactedForIdle)
	}
	s.goIdle()
}

// sumsUpWhenIdle reports whether an idle daemon still has to make its summary.
func (s *step) sumsUpWhenIdle() bool {
	return s.ready() && s.idling() && s.Turn.SummaryReason == agent.CompactedForIdle && s.maySuspend()
}

// hasWork reports whether messages, events or changed files wait for an idle daemon. It is not woken while it makes
// its summary.
func (s *step) hasWork() bool {
	return s.Turn.Phase == TurnReady && (s.Phase == RunActive || s.Phase == RunContinuing) &&
		(len(s.Messages.Pending) > 0 || len(s.Messages.Emitted) > 0 || s.changedFiles != "" || s.Park.Met != nil)
}

// wakeIdle gives an idle daemon its next task: all messages, else the first event, else changed files, else its interval.
func (s *step) wakeIdle() {
	why, cause, input, ticks := agent.Resumed{Cause: agent.InitiatorOperator}, "Somebody spoke to you.", "", 0
	switch {
	case len(s.Messages.Pending) > 0:
		s.Messages.steerAll()
		first := s.Messages.Pending[0].Message
		why.By, why.Mode, input = first.By, agent.ResumedMessage, first.Words()
	case len(s.Messages.Emitted) > 0:
		e := s.Messages.takeEvent(0)
		s.steerEvent(e)
		s.Daemon.handle(e)
		why, cause, input = agent.Resumed{Cause: agent.InitiatorTriggered, Event: e.Topic, By: e.By, Mode: agent.ResumedEvent}, fmt.Sprintf("The event %s came.", e.Topic), string(e.Payload)
	case s.changedFiles != "":
		input = s.changedFiles
		s.steerFiles()
		why, cause = agent.Resumed{Cause: agent.InitiatorTriggered, Mode: agent.ResumedFiles}, "Files that you watch have changed."
	default:
		ticks = s.Daemon.IdleWakes + 1 // until the model calls a tool (Daemon.acted)
		s.steerOwn(wakeMessage(fmt.Sprintf("Your interval of %s is over, and nothing else has come. It is %s.", s.daemon().Every, s.now().Format(time.RFC3339))))
		why, cause = agent.Resumed{Cause: agent.InitiatorTimeout}, "Your interval is over."
	}
	if s.resumed.Cause == "" { // the input of this step knows better who woke the daemon
		s.resumed = why
	}
	s.resumed.Mode = cmp.Or(s.resumed.Mode, why.Mode)
	s.resumed.Renewed = true
	s.renewAllLimits()
	s.resumeWith(cause, input)
	s.endPark()
	s.Daemon.setIdleWakes(ticks)
}

// matchQueued meets a new park's condition with the first waiting event that matches. It returns how
// many events it could not compare in this workflow task; all that do not match keep waiting.
func (s *step) matchQueued() (left int) {
	b := s.matchBudget()
	for i, e := range s.Messages.Emitted {
		if s.Park.meets(e, b) {
			s.conditionMet(conditionMetBy(s.Messages.takeEvent(i)))
			return 0
		}
		if b.Exceeded() {
			return len(s.Messages.Emitted) - i
		}
	}
	return 0
}
