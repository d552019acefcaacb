package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A worker that answers ahead of a run's next task may tell what never comes to be:
// a reader is not told of it.
func TestEventsAreNotToldAheadOfTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		th := newTheatre(t)
		th.begins()
		th.record(agent.Event{Type: agent.EventTurnStarted, Turn: 1})
		th.ahead = []agent.Event{{Seq: 3, Time: start, Type: agent.EventTurnEnded, Turn: 1}}
		th.asking = func() { // the next task has come, and went another way
			if th.ahead != nil {
				th.ahead = nil
				th.record(agent.Event{Type: agent.EventModelRetried, Turn: 1})
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan []string)
		go func() {
			lines, _ := th.reads(ctx, &EventsOptions{Follow: true})
			got <- lines
		}()
		pass(2*pollFor + time.Second)
		cancel()
		require.Equal(t, th.wires(0), <-got)
	})
}

// Nor is a transcript, or a fork, made of what never comes to be.
func TestATranscriptIsNotAheadOfTheRun(t *testing.T) {
	th := newTheatre(t)
	th.begins()
	th.says("hello")
	th.ahead = []agent.Event{{Seq: 3, Time: start, Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleUser}}}
	th.asking = func() { // the next task has come, and went another way
		if th.ahead != nil {
			th.ahead = nil
			th.says("go on")
		}
	}
	for _, want := range [][]string{{"hello"}, {"hello", "go on"}} {
		got, err := th.client().Transcript(t.Context(), "a")
		require.NoError(t, err)
		var texts []string
		for _, m := range got {
			texts = append(texts, m.Text())
		}
		require.Equal(t, want, texts)
	}
}

// says records what a person says.
func (th *theatre) says(text string) {
	m := agent.TextMessage(agent.RoleUser, text)
	th.record(agent.Event{Type: agent.EventMessage, Message: &m})
}
