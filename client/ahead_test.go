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
		th.record(agent.Event{Type: agent.TurnStarted, Turn: 1})
		th.ahead = []agent.Event{{Seq: 3, Time: start, Type: agent.TurnEnded, Turn: 1}}
		th.asking = func() { // the next task has come, and went another way
			if th.ahead != nil {
				th.ahead = nil
				th.record(agent.Event{Type: agent.ModelRetried, Turn: 1})
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
