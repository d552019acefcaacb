package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// None is the argument of a query that needs none.
type None struct{}

// The queries of a run. It answers at any time, also after its end (docs/wire.md §5).
var (
	// Status returns the run's status.
	Status = durable.Query[None, agent.RunStatus]{Name: "status"}
	// Suspension returns what a run waits for.
	Suspension = durable.Query[None, SuspensionAnswer]{Name: "suspension"}
	// Tree returns the run and its children, as far as the children have reported.
	Tree = durable.Query[None, TreeAnswer]{Name: "tree"}
	// Transcript returns messages of the log's tail. A query cannot read the store;
	// client.Transcript returns the whole conversation.
	Transcript = durable.Query[Page, TranscriptAnswer]{Name: "transcript"}
	// State returns the machine's state, for support. Only its field v is stable.
	State = durable.Query[None, json.RawMessage]{Name: "state"}
	// Machine is [State] without the log's tail. It is for workers.
	Machine = durable.Query[None, json.RawMessage]{Name: "fermata.state"}
	// Tail returns the log's tail. It is for workers and clients; its name has a dot so
	// that nobody types it.
	Tail = durable.Query[TailArgs, OpenTail]{Name: "fermata.tail"}
	// Held announces a hold to a worker process. It is sent to a workflow of
	// [ProcessType], and to no run. Whoever polls a workflow's task queue answers its
	// queries, and the history gets no trace of them.
	Held = durable.Query[agent.HoldRef, None]{Name: "fermata.held"}
)

// SuspensionAnswer answers [Suspension]. The field is absent if no suspension is open.
type SuspensionAnswer struct {
	V          int               `json:"v"`
	Suspension *agent.Suspension `json:"suspension,omitempty"`
}

// TreeAnswer answers [Tree]. The run itself comes first.
type TreeAnswer struct {
	V     int          `json:"v"`
	AsOf  time.Time    `json:"as_of"`
	Nodes []agent.Node `json:"nodes"`
}

// Page selects a part of a list.
type Page struct {
	From  int `json:"from,omitempty"`  // how many to skip
	Limit int `json:"limit,omitempty"` // zero means 100
}

// TranscriptAnswer has messages of a log's tail.
type TranscriptAnswer struct {
	V int `json:"v"`
	// Head is the digest of the log's last stored chunk; empty if none is stored.
	Head     string          `json:"head,omitempty"`
	Messages []agent.Message `json:"messages"`
	// Total is how many messages the tail has.
	Total int   `json:"total"`
	Seq   int64 `json:"seq"`
}

// TailArgs asks for events after Seq.
type TailArgs struct {
	Seq int64 `json:"seq,omitempty"`
}

// OpenTail is the tail of a log: the events that are not stored under Head yet.
type OpenTail struct {
	Head   string        `json:"head,omitempty"`
	Events []agent.Event `json:"events"`
	// More means that a further query, after the last event, returns more.
	More bool `json:"more,omitempty"`
}

// Limits of one answer.
const (
	defaultPage = 100
	maxPage     = 1000
	// maxAnswer is how many bytes of content an answer has. JSON may write each as six, and a payload
	// has 2 MB.
	maxAnswer = 256 << 10
)

// MessagesOf answers [Transcript] from a log's tail.
func MessagesOf(head string, seq int64, tail []agent.Event, p Page) (TranscriptAnswer, error) {
	if p.From < 0 || p.Limit < 0 || p.Limit > maxPage {
		return TranscriptAnswer{}, agent.Errorf(agent.CodeInvalidInput, "from and limit must be positive, limit at most %d", maxPage).WithPath("limit")
	}
	if p.Limit == 0 {
		p.Limit = defaultPage
	}
	m := TranscriptAnswer{V: agent.Version, Head: head, Messages: []agent.Message{}, Seq: seq}
	size := 0
	for _, e := range tail {
		if e.Message == nil {
			continue
		}
		if m.Total >= p.From && len(m.Messages) < p.Limit && size < maxAnswer {
			m.Messages = append(m.Messages, *e.Message)
			size += e.Size()
		}
		m.Total++
	}
	return m, nil
}

// ReadTail queries a run for its whole tail. An empty run is the session's current one.
func ReadTail(ctx context.Context, c client.Client, session, run string) (OpenTail, error) {
	var all OpenTail
	for after := int64(0); ; {
		open, err := Tail.Ask(ctx, c, session, run, TailArgs{Seq: after})
		if err != nil {
			return all, fmt.Errorf("asking session %s for its open transcript: %w", session, err)
		}
		if after > 0 && open.Head != all.Head {
			all, after = OpenTail{}, 0 // it was stored between two queries: start again
			continue
		}
		all.Head, all.Events = open.Head, append(all.Events, open.Events...)
		if !open.More {
			return all, nil
		}
		after = all.Events[len(all.Events)-1].Seq
	}
}

// TailOf answers [Tail] from a log's tail.
func TailOf(head string, tail []agent.Event, a TailArgs) OpenTail {
	o := OpenTail{Head: head, Events: []agent.Event{}}
	size := 0
	for _, e := range tail {
		if e.Seq <= a.Seq {
			continue
		}
		// At least one event, however large, or the reader would ask for it for ever.
		if size += e.Size(); size > maxAnswer && len(o.Events) > 0 {
			o.More = true
			break
		}
		o.Events = append(o.Events, e)
	}
	return o
}
