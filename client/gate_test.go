package client

import (
	"cmp"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

func said(turn int, role agent.Role) agent.Event {
	m := agent.TextMessage(role, "…")
	return agent.Event{Type: agent.EventMessage, Turn: turn, Message: &m}
}

func noted(kind agent.EventType, turn int, call string) agent.Event {
	e := agent.Event{Type: kind, Turn: turn}
	if call != "" {
		e.Call = &agent.CallUpdate{Call: call}
	}
	return e
}

// piece is a live event of run r, which text tells apart.
func piece(kind agent.EventType, turn int, text string) live.Event {
	l := live.Event{Type: kind, Run: "r", Turn: turn, Data: live.Data{Text: text}}
	if kind == agent.EventCallProgress {
		l.Data.Call = fmt.Sprintf("t%d.1", turn)
	}
	return l
}

// first is a piece with which a reply begins. at is one of turn 1 that begins elsewhere.
func first(turn int, text string) live.Event {
	l := piece(agent.EventDeltaText, turn, text)
	l.Data.At = 1
	return l
}

func at(where int, text string) live.Event {
	l := first(1, text)
	l.Data.At = where
	return l
}

// Each piece is told in its place, or not at all. Text that is void is called so first, also if the
// worker's reset was lost (HX-41).
func TestPiecesComeInTheirPlace(t *testing.T) {
	text := func(turn int, s string) live.Event { return piece(agent.EventDeltaText, turn, s) }
	other := text(1, "other run")
	other.Run = "s"
	for name, c := range map[string]struct {
		story []any // events and pieces, as they come in
		want  string
	}{
		"in order":                 {[]any{noted(agent.EventTurnStarted, 1, ""), text(1, "a"), text(1, "b"), said(1, agent.RoleAssistant)}, "turn.started a b message"},
		"before their turn":        {[]any{text(1, "a"), text(1, "b"), noted(agent.EventTurnStarted, 1, ""), said(1, agent.RoleAssistant)}, "turn.started a b message"},
		"after their message":      {[]any{noted(agent.EventTurnStarted, 1, ""), said(1, agent.RoleAssistant), text(1, "a")}, "turn.started message"},
		"of a turn that is over":   {[]any{noted(agent.EventTurnStarted, 2, ""), text(1, "a"), text(2, "b")}, "turn.started b"},
		"beside what a user says":  {[]any{noted(agent.EventTurnStarted, 1, ""), said(1, agent.RoleUser), text(1, "a")}, "turn.started message a"},
		"of the model asked again": {[]any{noted(agent.EventTurnStarted, 1, ""), text(1, "a"), said(1, agent.RoleAssistant), noted(agent.EventModelRetried, 1, ""), text(1, "b")}, "turn.started a message model.retried b"},
		"void and lost":            {[]any{noted(agent.EventTurnStarted, 1, ""), text(1, "a"), piece(agent.EventDeltaReset, 1, "void"), piece(agent.EventDeltaDropped, 1, "lost"), text(1, "b")}, "turn.started a void lost b"},
		"progress": {[]any{noted(agent.EventTurnStarted, 1, ""), piece(agent.EventCallProgress, 1, "early"), said(1, agent.RoleAssistant), noted(agent.EventCallStarted, 1, "t1.1"), piece(agent.EventCallProgress, 1, "now"),
			noted(agent.EventCallDone, 1, "t1.1"), piece(agent.EventCallProgress, 1, "late")}, "turn.started message call.started early now call.done"},
		"begun again, the reset was lost":       {[]any{noted(agent.EventTurnStarted, 1, ""), first(1, "a"), text(1, "b"), first(1, "c"), text(1, "d"), first(1, "e")}, "turn.started a b delta.reset c d delta.reset e"},
		"begun again, with a reset":             {[]any{noted(agent.EventTurnStarted, 1, ""), first(1, "a"), piece(agent.EventDeltaReset, 1, "void"), first(1, "b")}, "turn.started a void b"},
		"begun again, joined late":              {[]any{noted(agent.EventTurnStarted, 1, ""), text(1, "b"), piece(agent.EventDeltaDropped, 1, "lost"), first(1, "c")}, "turn.started b lost delta.reset c"},
		"begun again, the first piece was lost": {[]any{noted(agent.EventTurnStarted, 1, ""), first(1, "abc"), at(4, "d"), at(3, "e"), at(4, "f"), at(9, "g")}, "turn.started abc d delta.reset e f g"},
		"begun again behind the log":            {[]any{noted(agent.EventTurnStarted, 1, ""), first(1, "a"), noted(agent.EventModelRetried, 1, ""), first(1, "b")}, "turn.started a model.retried delta.reset b"},
		"after thinking":                        {[]any{noted(agent.EventTurnStarted, 1, ""), piece(agent.EventDeltaThinking, 1, "hm"), first(1, "a")}, "turn.started hm a"},
		"of the next reply": {[]any{noted(agent.EventTurnStarted, 1, ""), first(1, "a"), said(1, agent.RoleAssistant), noted(agent.EventModelRetried, 1, ""), first(1, "b"), noted(agent.EventTurnStarted, 2, ""), first(2, "c")},
			"turn.started a message model.retried b turn.started c"},
		"of another run":      {[]any{noted(agent.EventTurnStarted, 1, ""), other, text(1, "a")}, "turn.started a"},
		"in the middle of it": {[]any{noted(agent.EventTurnEnded, 3, ""), text(3, "a"), text(4, "b"), noted(agent.EventTurnStarted, 4, "")}, "turn.ended a turn.started b"},
	} {
		t.Run(name, func(t *testing.T) {
			var g liveOrder
			got := ""
			for _, what := range c.story {
				switch what := what.(type) {
				case agent.Event:
					got += " " + string(what.Type)
					g.seen(what, "r")
				case live.Event:
					g.add(what)
				}
				for _, l := range g.due() {
					got += " " + cmp.Or(l.Data.Text, string(l.Type))
				}
			}
			require.Equal(t, " "+c.want, got)
		})
	}
}

// What waits for its place is bounded: a reader of an old session has much to read first.
func TestEarlyPiecesAreBounded(t *testing.T) {
	var g liveOrder
	for i := range maxEarly + 10 {
		g.add(piece(agent.EventDeltaText, 1, fmt.Sprint(i)))
	}
	g.seen(noted(agent.EventTurnStarted, 1, ""), "r")
	due := g.due()
	require.Len(t, due, maxEarly)
	require.Equal(t, "10", due[0].Data.Text)
}

// A reader hears pieces while it waits for the log, and a reset before pieces that begin again (HX-41).
func TestEventsWithPieces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		th := newTheatre(t)
		th.begins()
		th.record(agent.Event{Type: agent.EventTurnStarted, Turn: 1})
		hub := live.NewHub()
		told := make(chan string, 100)
		go func() {
			defer close(told)
			for e, err := range New(th, &Options{Store: th.store, Live: hub}).Events(t.Context(), "a", &EventsOptions{Follow: true, UntilEnd: true, Live: true}) {
				if err != nil {
					t.Error(err)
				}
				told <- e.Cursor() + string(e.Type)
			}
		}()
		synctest.Wait()
		require.Len(t, told, 2)
		for range 2 { // two attempts, and the reset between them is lost
			hub.Publish(live.Event{V: 1, Type: agent.EventDeltaText, Session: "a", Run: "run-1", Turn: 1, Data: live.Data{Text: "Hel", At: 1}})
		}
		synctest.Wait() // no time goes by
		require.Len(t, told, 5)
		th.now(th.ends)
		var all []string
		for what := range told {
			all = append(all, what)
		}
		require.Equal(t, []string{"1run.started", "2turn.started", "delta.text", "delta.reset", "delta.text", "3run.completed"}, all)
	})
}
