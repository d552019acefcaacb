package client

import (
	"cmp"
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// Daemon is a session in which a daemon works, over all its runs ([agent.Definition.Daemon]). Its
// methods reach the session's last run, whichever that is. It is safe for concurrent use.
type Daemon struct {
	client *Client
	// Session is the daemon's session.
	Session string
	agent   string // empty means the agent of the session's last run
}

// StartDaemon starts a daemon's run, as [Client.Start] does. Without a text the daemon becomes idle,
// or works on events that wait from an earlier run. Errors are those of [Client.Start]: if the session
// has a live run, use [Client.Daemon].
func (c *Client) StartDaemon(ctx context.Context, name, text string, o *StartOptions) (*Daemon, error) {
	run, err := c.Start(ctx, name, text, o)
	if err != nil {
		return nil, err
	}
	return &Daemon{client: c, Session: run.Session, agent: name}, nil
}

// Daemon returns the daemon of a session. It asks nobody whether there is one: the methods do.
func (c *Client) Daemon(session string) *Daemon { return &Daemon{client: c, Session: session} }

// TriggerOptions are optional; nil means all defaults.
type TriggerOptions struct {
	// ID identifies the event: triggered again with the same id, it counts once. A session
	// remembers the last 1,000 ids. Empty means a new id.
	ID string
	// By says who triggers. It is logged, and not authenticated.
	By string
	// Token proves who triggers. A policy that binds the verb emit needs it.
	Token string
}

// Trigger gives the daemon an event, which gets turns of its own. Events wait in the order in which they
// were accepted, and outlive a stop. The payload is any value that encodes to JSON; nil means none.
//
// Errors are those of [Client.Emit] with a session: [agent.CodeQueueFull] if as many events wait as may
// ([agent.Daemon.Queue]), [agent.CodeClosed] if the daemon has ended, and [agent.CodeStale] if it is
// being stopped or does not take the topic. A refused event had no effect: trigger it again with the
// same id.
func (d *Daemon) Trigger(ctx context.Context, topic string, payload any, o *TriggerOptions) error {
	o = cmp.Or(o, &TriggerOptions{})
	_, err := d.client.Emit(ctx, topic, payload, &EmitOptions{Session: d.Session, ID: o.ID, By: o.By, Token: o.Token})
	return err
}

// DaemonSnapshot says where a daemon stands.
type DaemonSnapshot struct {
	// Run is the session's last run, and Status its status. An idle daemon is suspended.
	Run    string       `json:"run"`
	Status agent.Status `json:"status"`
	// PendingEvents counts the events that wait, without the one that the daemon works on. Those
	// that wait when a run ends wait for the next run.
	PendingEvents int `json:"pending_event_count"`
	// QueueCapacity is how many events may wait; zero while a run begins.
	QueueCapacity int `json:"event_queue_capacity"`
	// Event is the event that the daemon works on; nil if it works on none.
	Event *agent.HandledEvent `json:"event,omitempty"`
	// Suspension says what the daemon waits for: if it is idle, its conditions are the topics and the
	// times that wake it. It is nil while the daemon works, and after its end.
	Suspension *agent.Suspension `json:"suspension,omitempty"`
}

// Snapshot asks the session's last run where it stands, also if it has ended. Errors are those of
// [Client.Get] and [Run.Status].
func (d *Daemon) Snapshot(ctx context.Context) (DaemonSnapshot, error) {
	run, err := d.client.Get(ctx, d.Session)
	if err != nil {
		return DaemonSnapshot{}, err
	}
	st, err := run.Status(ctx)
	if err != nil {
		return DaemonSnapshot{}, err
	}
	s := DaemonSnapshot{Run: st.Run, Status: st.Status, Event: st.Event, Suspension: st.Suspension}
	if q := st.QueuedEvents; q != nil {
		s.PendingEvents, s.QueueCapacity = q.Used, q.Max
	}
	return s, nil
}

// Stop ends the daemon's run with a handoff, and waits for its end. What waits then, and the event that
// was cut short, are for the next run ([Daemon.Resume]). If no run is live, Stop returns the outcome of
// the last one. Errors are those of [Run.Stop] and [Run.Result].
func (d *Daemon) Stop(ctx context.Context, reason string, o *StopOptions) (*agent.Outcome, error) {
	run, err := d.client.Get(ctx, d.Session)
	if err != nil {
		return nil, err
	}
	if _, err := run.Stop(ctx, reason, o); err != nil && !errors.Is(err, agent.CodeClosed) {
		return nil, err
	}
	return run.Result(ctx)
}

// DaemonResumeOptions are optional; nil means all defaults.
type DaemonResumeOptions struct {
	// By says who resumes. It is logged, and not authenticated.
	By string
	// Token proves who resumes a held daemon, if a policy binds the verb resume.
	Token string
}

// Resume lets the daemon continue, and returns its live run. If the last run has ended, or is being
// stopped, Resume waits for its end and starts the next one with the same agent, which takes over all
// events that wait. It removes the hold of a daemon that is held. A daemon that works or is idle stays
// as it is. Errors are those of [Client.Get], [Run.Status], [Run.Resume], [Run.Result] and
// [Client.Start].
func (d *Daemon) Resume(ctx context.Context, o *DaemonResumeOptions) (*Run, error) {
	o = cmp.Or(o, &DaemonResumeOptions{})
	run, err := d.client.Get(ctx, d.Session)
	if err != nil {
		return nil, err
	}
	switch live, err := d.unhold(ctx, run, o); {
	case err != nil:
		return nil, err
	case live:
		return run, nil
	}
	name := d.agent
	if name == "" {
		if name, err = d.client.lastAgent(ctx, d.Session); err != nil {
			return nil, err
		}
	}
	next, err := d.client.start(ctx, d.Session, agent.Start{V: agent.Version, Agent: name, By: o.By, Carry: agent.CarryInherit}, nil)
	if errors.Is(err, agent.CodeBusy) { // another caller was quicker
		return d.client.Get(ctx, d.Session)
	}
	return next, err
}

// ending reports whether a stop or a cancel is ending the run.
func ending(s agent.RunStatus) bool {
	return s.Reason == agent.ReasonStopping || s.Reason == agent.ReasonCancelling
}

// unhold removes a live run's hold, and reports whether the run goes on. Otherwise the run has ended.
func (d *Daemon) unhold(ctx context.Context, run *Run, o *DaemonResumeOptions) (live bool, err error) {
	info, err := run.execution(ctx)
	if errors.Is(err, agent.CodeNotFound) && d.client.log != nil {
		return false, nil // Temporal has forgotten it, and the store has not
	}
	if err != nil || durable.Closed(info) {
		return false, err
	}
	st, err := run.Status(ctx)
	if err != nil {
		return false, err
	}
	if !ending(st) {
		if st.Suspension == nil || len(st.Suspension.Holds) == 0 {
			return true, nil
		}
		_, err = run.Resume(ctx, &ResumeOptions{By: o.By, Token: o.Token})
		if errors.Is(err, agent.CodeStale) { // it is being stopped or cancelled, or another resume is asked about
			if again, failed := run.Status(ctx); failed == nil && !ending(again) {
				return false, err
			}
		} else if !errors.Is(err, agent.CodeClosed) {
			return err == nil, err
		}
	}
	_, err = run.Result(ctx)
	return false, err
}
