package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

// writing is a theatre whose model writes an output, and a reader of it.
type writing struct {
	*theatre
	hub *live.Hub
	at  int // where the next piece begins

	mu   sync.Mutex
	got  []string // the values as JSON; "void" for one that is taken back
	last Partial[report]
	err  error
}

type report struct {
	Title string    `json:"title"`
	When  time.Time `json:"when"`
	Lines []string  `json:"lines"`
}

const reportSchema = `{"type":"object","properties":{"title":{"type":"string"},"when":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}},"required":["title","lines"],"additionalProperties":false}`

func newWriting(t *testing.T) *writing {
	w := &writing{theatre: newTheatre(t), hub: live.NewHub()}
	w.begins()
	w.all[len(w.all)-1].Started.Spec.Output = json.RawMessage(reportSchema)
	return w
}

// reads begins to read the run's output.
func (w *writing) reads(ctx context.Context) {
	run := &Run{client: New(w.theatre, &Options{Store: w.theatre.store, Live: w.hub}), Session: "a", ID: w.run()}
	go func() {
		for p, err := range Partials[report](ctx, run) {
			w.mu.Lock()
			switch w.last, w.err = p, err; {
			case err == nil && p.JSON == nil:
				w.got = append(w.got, "void")
			case err == nil:
				w.got = append(w.got, string(p.JSON))
			}
			w.mu.Unlock()
		}
	}()
	synctest.Wait()
}

// turn begins a turn.
func (w *writing) turn(n int) {
	w.now(func() { w.record(agent.Event{Type: agent.EventTurnStarted, Turn: n}) })
	w.at = 1
	pass(2 * pollBlind)
}

func (w *writing) emit(e live.Event) {
	e.Session, e.Run = "a", w.run()
	w.hub.Publish(e)
	synctest.Wait()
}

// writes sends the next piece of a turn's reply.
func (w *writing) writes(turn int, text string) {
	w.emit(live.Event{Type: agent.EventDeltaText, Turn: turn, Data: live.Data{Text: text, At: w.at}})
	w.at += len(text)
}

// loses drops a piece on its way.
func (w *writing) loses(text string) { w.at += len(text) }

// replies ends a turn with a whole reply.
func (w *writing) replies(turn int, m agent.Message) {
	w.now(func() {
		w.record(agent.Event{Type: agent.EventMessage, Turn: turn, Message: &m})
		w.record(agent.Event{Type: agent.EventTurnEnded, Turn: turn, Snapshot: &agent.TurnSnapshot{}})
	})
	pass(2 * pollBlind)
}

// completes ends the run, and Temporal forgets it.
func (w *writing) completes(output string) {
	w.now(func() {
		w.record(agent.Event{Type: agent.EventRunCompleted, Outcome: &agent.Outcome{Type: "outcome", Run: w.run(), Status: agent.StatusCompleted, Output: json.RawMessage(output)}})
		w.seals(0)
		w.head.Status, w.head.Version = agent.StatusCompleted, w.head.Version+1
		w.put()
		w.info = nil
	})
	pass(2 * pollMost)
}

// sees checks the values since the last call.
func (w *writing) sees(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.NoError(t, w.err)
	require.Equal(t, want, w.got)
	w.got = nil
}

func answered(text string) agent.Message { return agent.TextMessage(agent.RoleAssistant, text) }

func TestPartials(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWriting(t)
		w.reads(t.Context())
		w.turn(1)
		w.emit(live.Event{Type: agent.EventDeltaThinking, Turn: 1, Data: live.Data{Text: "Let me see"}})
		w.writes(1, `{"tit`)
		w.writes(1, `le":"To`)
		w.writes(1, `night","li`)
		w.sees(t, `{}`, `{"title":"To"}`, `{"title":"Tonight"}`)
		require.Equal(t, report{Title: "Tonight"}, w.last.Value)
		// The type takes only a whole time: what is complete comes.
		w.writes(1, `nes":["a"],"when":"2026-1`)
		w.writes(1, `1-26T00:00:00Z"`)
		w.sees(t, `{"title":"Tonight","lines":["a"]}`, `{"title":"Tonight","lines":["a"],"when":"2026-11-26T00:00:00Z"}`)
		whole := `{"title":"Tonight","lines":["a"],"when":"2026-11-26T00:00:00Z"}`
		w.writes(1, `}`)
		w.replies(1, answered(whole))
		w.sees(t)
		require.Nil(t, w.last.Outcome)
		w.completes(whole)
		w.sees(t, whole)
		require.Equal(t, agent.StatusCompleted, w.last.Outcome.Status)
		require.Equal(t, []string{"a"}, w.last.Value.Lines)
	})
}

// Whatever makes the model answer again takes back what was shown.
func TestPartialsBeginAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWriting(t)
		w.reads(t.Context())
		w.turn(1)
		w.writes(1, `{"title":"A`)
		w.emit(live.Event{Type: agent.EventDeltaReset, Turn: 1}) // another attempt, or another model
		w.at = 1
		w.writes(1, `{"title":"B`)
		w.sees(t, `{"title":"A"}`, "void", `{"title":"B"}`)
		w.at = 1 // the call was made again by another activity
		w.writes(1, `{"lines":["C`)
		w.sees(t, "void", `{"lines":["C"]}`)
		m := answered(`{"lines":["C`)
		m.Partial = true // a hold cut it off
		w.replies(1, m)
		w.sees(t, "void")
		w.turn(2)
		w.writes(2, `Let me look: {"title":"D"}`) // no output
		w.replies(2, agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartText, Text: "Let me look"}, {Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "t2.1"}}}})
		w.sees(t)
		for _, m := range []agent.Message{
			{Role: agent.RoleAssistant, Partial: true, Parts: []agent.Part{{Type: agent.PartText, Text: `{"title":"D"}`}}},
			{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartText, Text: `{"title":"D"}`}, {Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "t2.1"}}}},
		} {
			w.turn(2)
			w.writes(2, `{"title":"D"}`)
			w.replies(2, m) // JSON, but no answer
			w.sees(t, `{"title":"D"}`, "void")
		}
		w.turn(3)
		w.writes(3, `{"title":"E",`)
		w.writes(3, `"other":1}`) // the model has to repair it
		w.replies(3, answered(`{"title":"E","other":1}`))
		w.sees(t, `{"title":"E"}`, "void")
		w.turn(4)
		w.writes(4, "```json\n{\"title\":\"F\",\"lines\":[]}\n```")
		w.sees(t, `{"title":"F","lines":[]}`)
		w.now(func() { w.record(agent.Event{Type: agent.EventTurnEnded, Turn: 4}) }) // the reply was cut off at its limit
		pass(2 * pollBlind)
		w.sees(t, "void")
		w.completes(`{"title":"G","lines":[]}`)
		w.sees(t, `{"title":"G","lines":[]}`)
	})
}

// A piece that was lost ends the pieces of this reply; its message has all of it.
func TestPartialsWithLostPieces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWriting(t)
		w.turn(1)
		w.writes(1, `{"title":"A","lines":[`)
		w.reads(t.Context())
		pass(2 * pollBlind)
		w.writes(1, `"{\"title\"`) // the reader came too late for the beginning
		w.at = 0
		w.writes(1, `{"title":"x"}`) // a worker of an older build says no place
		w.sees(t)
		whole := `{"title":"A","lines":["{\"title\"","b"]}`
		w.replies(1, answered(whole))
		w.sees(t, whole)
		w.turn(2)
		w.writes(2, `{"title":"A`)
		w.loses(`nd`)
		w.writes(2, `y","lines":["a"]}`)
		w.sees(t, "void", `{"title":"A"}`)
		w.replies(2, answered(`{"title":"Andy","lines":["a"]}`))
		w.sees(t, `{"title":"Andy","lines":["a"]}`)
	})
}

// A reader of a run in a long session reads only what the run knows of it, for the output's
// schema.
func TestPartialsOfALongSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWriting(t)
		w.all[0].Started.Spec.Output = nil
		for n := range 30 {
			m := answered(strings.Repeat("x", 500_000))
			w.record(agent.Event{Type: agent.EventMessage, Turn: n + 1, Message: &m})
			w.seals(0)
		}
		w.ends()
		w.begins()
		w.all[len(w.all)-1].Started.Spec.Output, w.all[len(w.all)-1].Started.Carry = json.RawMessage(reportSchema), agent.CarryReset
		w.seals(0)
		read := w.theatre.store.read.Load()
		w.reads(t.Context())
		w.turn(1)
		w.writes(1, `{`)
		w.writes(1, `"title":4`)
		w.at = 1
		w.writes(1, `{"title":"A`)
		w.sees(t, `{}`, "void", `{"title":"A"}`)
		require.LessOrEqual(t, w.theatre.store.read.Load()-read, int64(5), "chunks of many")
	})
}

// Values cost what the output is long, however many pieces it has.
func TestPartialsAreFewerThanPieces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWriting(t)
		w.reads(t.Context())
		w.turn(1)
		w.writes(1, `{"title":"`)
		for range 10_000 {
			w.writes(1, strings.Repeat("x", 10))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		bytes := 0
		for _, v := range w.got {
			bytes += len(v)
		}
		require.Greater(t, len(w.got), 300)
		require.Less(t, bytes, 120*100_000)
		require.Greater(t, len(w.got[len(w.got)-1]), 98_000, "the last is not far behind")
	})
}

func TestPartialsThatCantBeHad(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWriting(t)
		for i, o := range []*Options{{Live: w.hub}, {Store: w.theatre.store}} {
			n := 0
			for _, err := range Partials[report](t.Context(), &Run{client: New(w.theatre, o), Session: "a", ID: w.run()}) {
				require.ErrorIs(t, err, agent.CodeNotSetUp, fmt.Sprint(i))
				n++
			}
			require.Equal(t, 1, n)
		}
		// One that has enough is left alone, and one that waits can be cancelled.
		ctx, cancel := context.WithCancel(t.Context())
		w.reads(ctx)
		cancel()
		pass(time.Second)
		require.ErrorIs(t, w.err, context.Canceled)
		run := &Run{client: New(w.theatre, &Options{Store: w.theatre.store, Live: w.hub}), Session: "a", ID: w.run()}
		w.turn(1)
		go func() {
			for range Partials[report](t.Context(), run) {
				break
			}
		}()
		pass(2 * pollBlind)
		w.writes(1, `{"title":"A`)
		// A failed run has its outcome beside the error.
		w.err = nil
		w.reads(t.Context())
		w.now(func() {
			w.record(agent.Event{Type: agent.EventRunFailed, Outcome: &agent.Outcome{Type: "outcome", Run: w.run(), Status: agent.StatusFailed, Error: &agent.Error{Code: agent.CodeBadOutput}}})
			w.seals(0)
			w.head.Status, w.info = agent.StatusFailed, nil
			w.head.Version++
			w.put()
		})
		pass(2 * pollMost)
		require.ErrorIs(t, w.err, agent.CodeBadOutput)
		require.Equal(t, agent.StatusFailed, w.last.Outcome.Status)
	})
}
