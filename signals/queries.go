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

// None is the argument of a question that needs none.
type None struct{}

// What may be asked of a run, at any time and also after its end (docs/wire.md §5).
var (
	// Status asks where a run stands.
	Status = durable.Query[None, agent.RunStatus]{Name: "status"}
	// Suspension asks what a run waits for.
	Suspension = durable.Query[None, SuspensionAnswer]{Name: "suspension"}
	// Tree asks for the run and those right below it, as it has heard of them.
	Tree = durable.Query[None, TreeAnswer]{Name: "tree"}
	// Transcript asks for messages of the log's open part. A query can't read the
	// store: the whole conversation is client.Transcript's to put together.
	Transcript = durable.Query[Page, TranscriptAnswer]{Name: "transcript"}
	// State shows the machine's state, for support. There is no promise of its
	// shape but v.
	State = durable.Query[None, json.RawMessage]{Name: "state"}
	// Machine is [State] without the log's open part, for workers of ours.
	Machine = durable.Query[None, json.RawMessage]{Name: "fermata.state"}
	// Tail asks for the open part of the log. It is for workers and clients of
	// ours; its name has a dot so that nobody types it.
	Tail = durable.Query[TailArgs, OpenTail]{Name: "fermata.tail"}
	// Held tells a worker process of a hold. It is asked of the workflow [ProcessType], and of
	// no run: a question to a workflow is answered by whoever polls its task queue, and
	// leaves no trace in its history.
	Held = durable.Query[agent.HoldRef, None]{Name: "fermata.held"}
)

// SuspensionAnswer answers [Suspension]; the field is absent where none is open.
type SuspensionAnswer struct {
	V          int               `json:"v"`
	Suspension *agent.Suspension `json:"suspension,omitempty"`
}

// TreeAnswer answers [Tree]: the run itself comes first.
type TreeAnswer struct {
	V     int          `json:"v"`
	AsOf  time.Time    `json:"as_of"`
	Nodes []agent.Node `json:"nodes"`
}

// Page asks for a part of a list.
type Page struct {
	From  int `json:"from,omitempty"`  // how many to pass over
	Limit int `json:"limit,omitempty"` // zero means 100
}

// TranscriptAnswer are the messages of a log's open part.
type TranscriptAnswer struct {
	V int `json:"v"`
	// Head names the last sealed chunk of the log; empty if none is sealed.
	Head     string          `json:"head,omitempty"`
	Messages []agent.Message `json:"messages"`
	// Total is how many messages the open part has.
	Total int   `json:"total"`
	Seq   int64 `json:"seq"`
}

// TailArgs asks for what came after an event.
type TailArgs struct {
	Seq int64 `json:"seq,omitempty"`
}

// OpenTail is the open part of a log: what is not sealed under Head yet.
type OpenTail struct {
	Head   string        `json:"head,omitempty"`
	Events []agent.Event `json:"events"`
	// More means that a further question, after the last event, brings more.
	More bool `json:"more,omitempty"`
}

// Bounds of one answer.
const (
	defaultPage = 100
	maxPage     = 1000
	// maxAnswer is well under the 2 MB that a payload may have.
	maxAnswer = 1 << 20
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

// ReadTail asks a run for the whole open part of its log; an empty run is the
// session's current one.
func ReadTail(ctx context.Context, c client.Client, session, run string) (OpenTail, error) {
	var all OpenTail
	for after := int64(0); ; {
		open, err := Tail.Ask(ctx, c, session, run, TailArgs{Seq: after})
		if err != nil {
			return all, fmt.Errorf("asking session %s for its open transcript: %w", session, err)
		}
		if after > 0 && open.Head != all.Head {
			all, after = OpenTail{}, 0 // it was sealed between two questions: begin anew
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
		if size += e.Size(); size > maxAnswer && len(o.Events) > 0 {
			o.More = true
			break
		}
		o.Events = append(o.Events, e)
	}
	return o
}
