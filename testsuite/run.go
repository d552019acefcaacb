package testsuite

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Run is a run on a [Stage]. What its methods say is said by update and fails the
// test where it is refused, but for [Run.Refused].
type Run struct {
	Session string
	stage   *Stage
}

// Wait waits until the run rests or ends, and the Person has nothing to say. Where it
// rests, the Outcome's Status is suspended and its Suspension tells why.
func (r *Run) Wait() *agent.Outcome {
	r.stage.t.Helper()
	o, err := r.stage.world.wait(r.stage.t.Context(), r.Session)
	require.NoError(r.stage.t, err)
	return o
}

// Rest waits until the run rests. One that ends fails the test.
func (r *Run) Rest() *agent.Suspension {
	r.stage.t.Helper()
	o := r.Wait()
	require.Equal(r.stage.t, agent.Suspended, o.Status, "session %s was to rest, and has ended: %s", r.Session, ended(o))
	return o.Suspension
}

// End waits until the run ends. One that rests, where nobody but the test would go
// on, fails the test.
func (r *Run) End() *agent.Outcome {
	r.stage.t.Helper()
	o := r.Wait()
	require.NotEqual(r.stage.t, agent.Suspended, o.Status, "session %s was to end, and rests: %s; answer it, let the Person do so, resume it, or FastForward the time", r.Session, text(o.Suspension))
	return o
}

// Completed waits until the run ends, which has to be as completed.
func (r *Run) Completed() *agent.Outcome {
	r.stage.t.Helper()
	o := r.End()
	require.Equal(r.stage.t, agent.Completed, o.Status, ended(o))
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
	r.stage.t.Helper()
	st, err := r.stage.world.status(r.stage.t.Context(), r.Session)
	require.NoError(r.stage.t, err)
	return st
}

// Say says something to the run: any verb.
func (r *Run) Say(c agent.Command) agent.Ack {
	r.stage.t.Helper()
	ack, err := r.stage.world.say(r.stage.t.Context(), r.Session, c)
	require.NoError(r.stage.t, err)
	return ack
}

// Refused says something that has to be refused, and returns the refusal.
func (r *Run) Refused(c agent.Command) *agent.Error {
	r.stage.t.Helper()
	ack, err := r.stage.world.say(r.stage.t.Context(), r.Session, c)
	require.Error(r.stage.t, err, "%s was to be refused, and was %s", c.Verb(), ack.Effect)
	var e *agent.Error
	require.ErrorAs(r.stage.t, err, &e)
	return e
}

// Pause holds the run at its turn's end.
func (r *Run) Pause() agent.Ack { r.stage.t.Helper(); return r.Say(agent.PauseOrder{}) }

// Interrupt holds the run at once.
func (r *Run) Interrupt() agent.Ack { r.stage.t.Helper(); return r.Say(agent.InterruptOrder{}) }

// Resume lifts the run's own hold, and wakes it where it waits for nobody.
func (r *Run) Resume() agent.Ack { r.stage.t.Helper(); return r.Say(agent.ResumeOrder{}) }

// Stop lets the run end with a handoff.
func (r *Run) Stop(reason string) agent.Ack {
	r.stage.t.Helper()
	return r.Say(agent.StopOrder{Reason: reason})
}

// Cancel ends the run at once.
func (r *Run) Cancel() agent.Ack { r.stage.t.Helper(); return r.Say(agent.CancelOrder{}) }

// Send says something to the model, at its next turn.
func (r *Run) Send(text string) agent.Ack {
	r.stage.t.Helper()
	return r.Say(agent.SendOrder{Text: text})
}

// Emit tells the run of an event. The payload is made JSON of; nil is none.
func (r *Run) Emit(topic string, payload any) agent.Ack {
	r.stage.t.Helper()
	o := agent.EmitOrder{Topic: topic}
	if payload != nil {
		raw, err := json.Marshal(payload)
		require.NoError(r.stage.t, err)
		o.Payload = raw
	}
	return r.Say(o)
}

// Answer answers the one request that is open.
func (r *Run) Answer(text string) agent.Ack {
	r.stage.t.Helper()
	return r.Say(agent.AnswerOrder{Request: r.asked().ID, Text: text})
}

// Approve approves the one request that is open.
func (r *Run) Approve() agent.Ack {
	r.stage.t.Helper()
	q := r.asked()
	return r.Say(agent.ApproveOrder{Request: q.ID, Digest: q.Digest})
}

// Reject rejects the one request that is open; the model is told why.
func (r *Run) Reject(reason string) agent.Ack {
	r.stage.t.Helper()
	return r.Say(agent.RejectOrder{Request: r.asked().ID, Reason: reason})
}

// asked is the one request that is open.
func (r *Run) asked() agent.Request {
	r.stage.t.Helper()
	requests := r.Rest().Requests
	require.Len(r.stage.t, requests, 1, "one request of session %s has to be open, so that it is clear which is meant: of several, say which with Run.Say; one of an agent below is answered there, with Stage.Run(%q)", r.Session, r.Session+"/NAME-1")
	return requests[0]
}

// Events are the durable events of the session, of all its runs, as far as they are
// stored: all of them once the run rests or has ended.
func (r *Run) Events() []agent.Event {
	r.stage.t.Helper()
	return r.stage.view(r.Session).Events()
}

// Transcript is what was said in the session and its last run knows, as far as it is
// stored: all of it once the run rests or has ended.
func (r *Run) Transcript() []agent.Message {
	r.stage.t.Helper()
	return r.stage.view(r.Session).Messages()
}
