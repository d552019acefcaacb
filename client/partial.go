package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/partial"
	"github.com/fermata-agents/fermata/live"
)

// Partial is the output of a run so far.
type Partial[T any] struct {
	// Value is the output. What has not come yet is zero.
	Value T
	// JSON is the same as JSON. It is nil if there is none any more: the model answers again,
	// because its call was repeated or its answer did not fit.
	JSON json.RawMessage
	// Outcome is set at the end: it says how the run has ended, and Value is its output.
	Outcome *agent.Outcome
}

// Partials yields the output of a run while the model writes it, for an agent with an output
// schema. Each value replaces the one before. It fits the schema so far: the types are right,
// strings may be cut, and what is not complete otherwise is left out. A string with a format,
// a pattern or an enum comes when it is complete. What needs the whole value, such as required
// properties, is checked at the end. A value that T does not take yet is left out.
//
// The last one has the Outcome and the output that the worker has checked. Its error is that
// of [agent.Outcome.Decode]. Other errors are those of [Client.Events] with Live.
//
// Values come from live events, so a reader may miss some: one that begins in the middle of a
// reply may get only the complete value, as does one that has lost a piece. For long outputs,
// a value comes when the text has grown by one percent. The arguments of the tool finish do
// not come in pieces.
func Partials[T any](ctx context.Context, run *Run) iter.Seq2[Partial[T], error] {
	return func(yield func(Partial[T], error) bool) {
		o := &outputReader{run: run}
		o.show = func(raw json.RawMessage) bool {
			p := Partial[T]{JSON: raw}
			if raw != nil && json.Unmarshal(raw, &p.Value) != nil {
				return false
			}
			o.over = !yield(p, nil)
			return true
		}
		err := o.read(ctx)
		if o.over {
			return
		}
		var p Partial[T]
		if err == nil {
			p.Outcome, err = run.Result(ctx)
		}
		if err == nil {
			p.JSON, err = p.Outcome.Output, p.Outcome.Decode(&p.Value)
		}
		yield(p, err)
	}
}

// outputReader makes the values of a run's output from its events.
type outputReader struct {
	run    *Run
	schema *partial.Schema // nil if no output comes in pieces
	parser *partial.Parser // of the reply that comes
	next   int             // where its next piece begins; zero if one was missed
	size   int             // how much of it was shown
	shown  json.RawMessage // the last value
	whole  bool            // that is a complete answer
	over   bool            // the caller has enough
	// show yields a value; nil means that there is none any more. It returns false if the
	// caller's type does not take it.
	show func(json.RawMessage) bool
}

// read reads until the run's end. It begins at the log's present end. Of what is stored it
// reads what the model knows, and not the whole log of a long session.
func (o *outputReader) read(ctx context.Context) error {
	log := o.run.client.log
	if log == nil {
		return agent.Errorf(agent.CodeNotSetUp, "reading the output of a run: %w", ErrNoStore)
	}
	head, err := log.Head(ctx, o.run.Session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return fmt.Errorf("reading the output of session %s: %w", o.run.Session, err)
	}
	// Otherwise the run has stored nothing yet, and its start is among the events to come.
	if head.Run == o.run.ID {
		view, err := log.Known(ctx, head.Digest, nil)
		if err != nil {
			return fmt.Errorf("reading the output of session %s: %w", o.run.Session, err)
		}
		o.start(view.Spec())
	}
	var failed error
	r := &reader{client: o.run.client, session: o.run.Session, only: o.run.ID, after: head.Seq, follow: true, patient: true}
	r.yield = func(e Event, err error) bool {
		if failed = err; err == nil && e.Run == o.run.ID {
			o.event(e)
		}
		return !o.over
	}
	r.tell(r.readLive(ctx))
	return failed
}

// start takes the schema of the output.
func (o *outputReader) start(spec *agent.Spec) {
	if o.schema = nil; spec != nil && len(spec.Output) > 0 && spec.Completion != agent.CompletionTool {
		o.schema = partial.NewSchema(spec.Output)
	}
}

func (o *outputReader) event(e Event) {
	switch {
	case e.Started != nil:
		o.start(e.Started.Spec)
	case o.schema == nil:
	case e.Live != nil:
		o.piece(e.Live)
	case e.Message != nil && e.Message.Role == agent.RoleAssistant:
		o.message(e.Message)
	case e.Type == agent.EventTurnEnded && !o.whole:
		o.drop() // the reply was cut off or held
	}
}

// piece takes a piece of the reply, if it continues what came before. Which one begins the
// reply says only its place: another model or another attempt may write it, or a late reader
// get its middle first.
func (o *outputReader) piece(l *live.Event) {
	switch {
	case l.Type == agent.EventDeltaReset:
		o.drop()
		return
	case l.Type != agent.EventDeltaText:
		return
	case l.Data.At == 1:
		o.drop()
		o.parser, o.next = partial.NewParser(o.schema), 1
	}
	if l.Data.At == 0 || l.Data.At != o.next || o.over {
		return
	}
	o.next += len(l.Data.Text)
	o.parser.Write(l.Data.Text)
	// Each value costs as much as the output is long: one for each piece would be quadratic.
	if n := o.parser.Size(); o.parser.Fits() && n > o.size+o.size/100 {
		o.size = n
		_ = o.shows(o.parser.Value(false)) || o.shows(o.parser.Value(true))
	}
}

// message takes the whole reply. It may be no answer.
func (o *outputReader) message(m *agent.Message) {
	p := partial.NewParser(o.schema)
	p.Write(m.Text())
	o.next = 0
	if o.whole = !m.Partial && len(m.ToolCalls()) == 0 && p.End(); !o.whole {
		o.drop()
		return
	}
	o.shows(p.Value(false))
}

// shows yields a value, if it differs from the last one.
func (o *outputReader) shows(raw json.RawMessage) bool {
	if raw == nil || bytes.Equal(raw, o.shown) {
		return raw != nil
	}
	if !o.show(raw) {
		return false
	}
	o.shown = raw
	return true
}

// drop forgets the reply, and takes its value back.
func (o *outputReader) drop() {
	o.next, o.size, o.whole = 0, 0, false
	if o.shown != nil && !o.over {
		o.shown = nil
		o.show(nil)
	}
}
