package testsuite

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Run is a run on a [Env]. What its methods say is said by update and fails the
// test where it is refused, except for [Run.CommandRefused].
type Run struct {
	Session string
	env     *Env
}

// Wait waits until the run rests or ends, and the Person has nothing to say. Where it
// rests, the Outcome's Status is suspended and its Suspension tells why.
func (r *Run) Wait() *agent.Outcome {
	r.env.t.Helper()
	o, err := r.env.backend.wait(r.env.t.Context(), r.Session)
	require.NoError(r.env.t, err)
	return o
}

// Suspended waits until the run rests. One that ends fails the test.
func (r *Run) Suspended() *agent.Suspension {
	r.env.t.Helper()
	o := r.Wait()
	require.Equal(r.env.t, agent.StatusSuspended, o.Status, "session %s was to rest, and has ended: %s", r.Session, ended(o))
	return o.Suspension
}

// Ended waits until the run ends. One that rests, where nobody but the test would go
// on, fails the test.
func (r *Run) Ended() *agent.Outcome {
	r.env.t.Helper()
	o := r.Wait()
	require.NotEqual(r.env.t, agent.StatusSuspended, o.Status, "session %s was to end, and rests: %s; answer it, let the Person do so, resume it, or FastForward the time", r.Session, text(o.Suspension))
	return o
}

// Completed waits until the run ends, which has to be as completed.
func (r *Run) Completed() *agent.Outcome {
	r.env.t.Helper()
	o := r.Ended()
	require.Equal(r.env.t, agent.StatusCompleted, o.Status, ended(o))
	return o
}

// ended says how a run ended.
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

// Status is where the run stands now.
func (r *Run) Status() agent.RunStatus {
	r.env.t.Helper()
	st, err := r.env.backend.status(r.env.t.Context(), r.Session)
	require.NoError(r.env.t, err)
	return st
}

// Command says something to the run: any verb.
func (r *Run) Command(c agent.Command) agent.Ack {
	r.env.t.Helper()
	ack, err := r.env.backend.say(r.env.t.Context(), r.Session, c)
	require.NoError(r.env.t, err)
	return ack
}

// CommandRefused says something that has to be refused, and returns the refusal.
func (r *Run) CommandRefused(c agent.Command) *agent.Error {
	r.env.t.Helper()
	ack, err := r.env.backend.say(r.env.t.Context(), r.Session, c)
	require.Error(r.env.t, err, "%s was to be refused, and was %s", c.Verb(), ack.Effect)
	var e *agent.Error
	require.ErrorAs(r.env.t, err, &e)
	return e
}

// Pause holds the run at its turn's end.
func (r *Run) Pause() agent.Ack { r.env.t.Helper(); return r.Command(agent.PauseCommand{}) }

// Interrupt holds the run at once.
func (r *Run) Interrupt() agent.Ack { r.env.t.Helper(); return r.Command(agent.InterruptCommand{}) }

// Resume removes the run's own hold, and wakes it where it waits for nobody.
func (r *Run) Resume() agent.Ack { r.env.t.Helper(); return r.Command(agent.ResumeCommand{}) }

// Stop lets the run end with a handoff.
func (r *Run) Stop(reason string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.StopCommand{Reason: reason})
}

// Cancel ends the run at once.
func (r *Run) Cancel() agent.Ack { r.env.t.Helper(); return r.Command(agent.CancelCommand{}) }

// Send says something to the model, at its next turn.
func (r *Run) Send(text string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.SendCommand{Text: text})
}

// Emit tells the run of an event. The payload is made JSON of; nil is none.
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

// Answer answers the one request that is open.
func (r *Run) Answer(text string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.AnswerCommand{Request: r.asked().ID, Text: text})
}

// Approve approves the one request that is open.
func (r *Run) Approve() agent.Ack {
	r.env.t.Helper()
	q := r.asked()
	return r.Command(agent.ApproveCommand{Request: q.ID, Digest: q.Digest})
}

// Reject rejects the one request that is open; the model is told why.
func (r *Run) Reject(reason string) agent.Ack {
	r.env.t.Helper()
	return r.Command(agent.RejectCommand{Request: r.asked().ID, Reason: reason})
}

// asked is the one request that is open.
func (r *Run) asked() agent.Request {
	r.env.t.Helper()
	requests := r.Suspended().Requests
	require.Len(r.env.t, requests, 1, "one request of session %s has to be open, so that it is clear which is meant: of several, say which with Run.Command; one of an agent below is answered there, with Env.Run(%q)", r.Session, r.Session+"/NAME-1")
	return requests[0]
}

// Events are the durable events of the session, of all its runs, as far as they are
// stored: all of them once the run rests or has ended.
func (r *Run) Events() []agent.Event {
	r.env.t.Helper()
	return r.env.view(r.Session).Events()
}

// Transcript is what was said in the session and its last run knows, as far as it is
// stored: all of it once the run rests or has ended.
func (r *Run) Transcript() []agent.Message {
	r.env.t.Helper()
	return r.env.view(r.Session).Messages()
}
