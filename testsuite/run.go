package testsuite

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Run is a run in an [Env]. Its methods send updates. A refusal fails the test, except in
// [Run.CommandRefused].
type Run struct {
	Session string
	env     *Env
}

// Wait waits until the run is suspended or has ended and the Person has no answer. If it
// is suspended, the Outcome's Status is suspended, and its Suspension says why.
func (r *Run) Wait() *agent.Outcome {
	r.env.t.Helper()
	o, err := r.env.backend.wait(r.env.t.Context(), r.Session)
	require.NoError(r.env.t, err)
	return o
}

// Suspended waits until the run is suspended. If it ends, the test fails.
func (r *Run) Suspended() *agent.Suspension {
	r.env.t.Helper()
	o := r.Wait()
	require.Equal(r.env.t, agent.StatusSuspended, o.Status, "session %s should be suspended, but it has ended: %s", r.Session, ended(o))
	return o.Suspension
}

// Ended waits until the run ends. If it is suspended and only the test could resume it,
// the test fails.
func (r *Run) Ended() *agent.Outcome {
	r.env.t.Helper()
	o := r.Wait()
	require.NotEqual(r.env.t, agent.StatusSuspended, o.Status, "session %s should end, but it is suspended: %s; answer it, let the Person do so, resume it, or FastForward the time", r.Session, text(o.Suspension))
	return o
}

// Completed waits until the run ends, and fails the test if it did not complete.
func (r *Run) Completed() *agent.Outcome {
	r.env.t.Helper()
	o := r.Ended()
	require.Equal(r.env.t, agent.StatusCompleted, o.Status, ended(o))
	return o
}

// ended describes how a run ended.
func ended(o *agent.Outcome) string {
	s := string(o.Status) + " (" + o.Reason + ") " + o.Text
	if o.Error != nil {
		s += o.Error.Error()
	}
	return s
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Status returns the run's present status.
func (r *Run) Status() agent.RunStatus {
	r.env.t.Helper()
	st, err := r.env.backend.status(r.env.t.Context(), r.Session)
	require.NoError(r.env.t, err)
	return st
}

// Command sends any verb to the run.
func (r *Run) Command(c agent.Command) agent.Ack {
	r.env.t.Helper()
	ack, err := r.env.backend.send(r.env.t.Context(), r.Session, c)
	require.NoError(r.env.t, err)
	return ack
}

// CommandRefused sends a verb that has to be refused, and returns the refusal.
func (r *Run) CommandRefused(c agent.Command) *agent.Error {
	r.env.t.Helper()
	ack, err := r.env.backend.send(r.env.t.Context(), r.Session, c)
	require.Error(r.env.t, err, "%s should be refused, but it was %s", c.Verb(), ack.Effect)
	var e *agent.Error
	require.ErrorAs(r.env.t, err, &e)
	return e
}

// Pause holds the run at the end of its turn.
func (r *Run) Pause() agent.Ack { r.env.t.Helper(); return r.Command(agent.PauseCommand{}) }

// Interrupt holds the run at once.
func (r *Run) Interrupt() agent.Ack { r.env.t.Helper(); return r.Command(agent.InterruptCommand{}) }

// Resume removes the run's own hold, or wakes a parked run.
func (r *Run) Resume() agent.Ack { r.env.t.Helper(); return r.Command(agent.ResumeCommand{}) }

// Stop ends the run with a handoff.
func (r *Run) Stop(reason string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.StopCommand{Reason: reason})
}

// Cancel ends the run without a handoff. Calls in flight have 5 s to return; a second Cancel ends
// that.
func (r *Run) Cancel() agent.Ack { r.env.t.Helper(); return r.Command(agent.CancelCommand{}) }

// Send sends a message to the model, for its next turn.
func (r *Run) Send(text string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.SendCommand{Text: text})
}

// Emit delivers an event to the run. The payload is encoded as JSON; nil means none.
func (r *Run) Emit(topic string, payload any) agent.Ack {
	r.env.t.Helper()
	o := agent.EmitCommand{Topic: topic}
	if payload != nil {
		raw, err := json.Marshal(payload)
		require.NoError(r.env.t, err)
		o.Payload = raw
	}
	return r.Command(o)
}

// Answer answers the only open request.
func (r *Run) Answer(text string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.AnswerCommand{Request: r.asked().ID, Text: text})
}

// Approve approves the only open request.
func (r *Run) Approve() agent.Ack {
	r.env.t.Helper()
	q := r.asked()
	// With the digest: a run refuses an approval of other arguments.
	return r.Command(agent.ApproveCommand{Request: q.ID, Digest: q.Digest})
}

// Reject rejects the only open request. The model gets the reason.
func (r *Run) Reject(reason string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.RejectCommand{Request: r.asked().ID, Reason: reason})
}

// asked returns the only open request.
func (r *Run) asked() agent.Request {
	r.env.t.Helper()
	requests := r.Suspended().Requests
	require.Len(r.env.t, requests, 1, "session %s must have exactly one open request: if it has several, name one with Run.Command; answer a sub-agent's request with Env.Run(%q)", r.Session, r.Session+"/NAME-1")
	return requests[0]
}

// Events returns the recorded events of the session, of all its runs, as far as they are
// stored: all of them once the run is suspended or has ended.
func (r *Run) Events() []agent.Event {
	r.env.t.Helper()
	return r.env.view(r.Session).Events()
}

// Transcript returns the messages that the session's last run knows, as far as they are
// stored: all of them once the run is suspended or has ended.
func (r *Run) Transcript() []agent.Message {
	r.env.t.Helper()
	return r.env.view(r.Session).Messages()
}
