package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/worker"
)

// pager tells a person which runs have failed.
type pager struct {
	page func(ctx context.Context, text string)
}

// Event may take its time: no run waits for it.
func (p pager) Event(ctx context.Context, e observe.RunEvent) {
	if e.Event.Type == agent.EventRunFailed {
		p.page(ctx, e.Session+" has failed: "+string(e.Event.Outcome.Error.Code))
	}
}

// Gap is about events that the pager was too slow for. The log has them.
func (p pager) Gap(ctx context.Context, g observe.Gap) {
	p.page(ctx, fmt.Sprintf("look at session %s yourself: events %d to %d were lost", g.Session, g.From, g.To))
}

// A worker has observers, and waits before a deploy until they have received everything.
func ExampleWorker_Drain() {
	o := options()
	o.Observers = []observe.Observer{pager{func(_ context.Context, text string) { log.Print(text) }}}
	w, err := worker.New(server, o)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer w.Stop()
	// … later, as the process is to end:
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.Drain(ctx); errors.Is(err, agent.CodeTimeout) {
		log.Print(err) // names the observers that are behind
	}
}

// What the worker calls, for a run that failed and for events that found no room.
func ExampleOptions_observers() {
	p := pager{func(_ context.Context, text string) { fmt.Println(text) }}
	ctx := context.Background()
	p.Event(ctx, observe.RunEvent{Session: "trip-42", Event: agent.Event{
		Seq: 7, Type: agent.EventRunFailed, Outcome: &agent.Outcome{Error: agent.Errorf(agent.CodeLimitTurns, "the run has used its turns")},
	}})
	p.Gap(ctx, observe.Gap{Session: "trip-43", Run: "01a1", From: 12, To: 90, Events: 79})
	// Output:
	// trip-42 has failed: limit_turns
	// look at session trip-43 yourself: events 12 to 90 were lost
}
