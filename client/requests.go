package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// requestGap is the least time between two listings of a tree's requests.
const requestGap = time.Second

// Requests yields the open requests of a session's last run and of all runs below it, as
// they come. It yields each once, with its arguments. It ends with the run or with the
// context. A request that is answered before it is read is left out. One that nobody
// answers stays open, and the next caller gets it again. If a run has no worker, its
// requests come when it has one.
//
// Several callers get the same requests, and the first answer counts. The listing behind
// it may be some seconds late. Errors are [agent.CodeNotFound] if nobody knows the
// session, and those of reaching the server.
func (c *Client) Requests(ctx context.Context, session string) iter.Seq2[agent.Request, error] {
	return func(yield func(agent.Request, error) bool) {
		r := &requestReader{client: c, session: session, known: map[requestKey]bool{}, yield: yield}
		if err := r.read(ctx); err != nil && !r.over {
			yield(agent.Request{}, fmt.Errorf("reading the requests of session %s: %w", session, err))
		}
	}
}

// requestKey identifies a request in a tree.
type requestKey struct{ session, run, id string }

// requestReader reads the requests of one tree. One goroutine uses it.
type requestReader struct {
	client  *Client
	session string
	known   map[requestKey]bool // requests that the caller has
	yield   func(agent.Request, error) bool
	over    bool // the caller has enough
}

func (r *requestReader) read(ctx context.Context) error {
	run, err := r.client.Get(ctx, r.session)
	if err != nil {
		return err
	}
	w := &watch{looks: newPollTimer(), most: pollBlind}
	defer w.looks.stop()
	defer w.end()
	for {
		info, err := run.execution(ctx)
		if err != nil {
			return err
		}
		if err := r.list(ctx); err != nil || r.over || durable.Closed(info) {
			return err
		}
		// A busy run publishes often, and listings must not follow every change.
		gap := time.NewTimer(requestGap)
		w.read = info
		w.begin(r.client, r.session)
		select {
		case <-ctx.Done():
		case _, more := <-w.news:
			w.heard(more)
		case <-w.looks.due():
			w.looked()
		}
		select {
		case <-ctx.Done():
			gap.Stop()
			return durable.FromRPC(ctx.Err())
		case <-gap.C:
		}
	}
}

// list yields requests that the caller does not have yet.
func (r *requestReader) list(ctx context.Context) error {
	for item, err := range r.client.Inbox(ctx, &InboxOptions{Session: r.session}) {
		key := requestKey{item.Session, item.Run, item.ID}
		switch {
		case err != nil:
			return err
		case item.Type == RequestWorkerLost || r.known[key]:
			continue
		}
		q, err := r.client.Request(ctx, item.Session, item.ID)
		switch {
		case errors.Is(err, agent.CodeNotFound) || err == nil && q.Run != item.Run:
			continue // the listing is behind
		case ctx.Err() == nil && (errors.Is(err, agent.CodeNoWorker) || errors.Is(err, agent.CodeTimeout)):
			continue // the next listing tries again
		case err != nil:
			return err
		}
		r.known[key] = true
		if r.over = !r.yield(q, nil); r.over {
			return nil
		}
	}
	return nil
}
