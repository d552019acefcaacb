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

// requestGap is the least time between two listings of the requests of a tree.
const requestGap = time.Second

// Requests yields the open requests of a session's last run and of all runs below it, each
// once and whole, as they come. It ends with the run, or with the context. A request that
// is answered before it is read is left out, and one that nobody answers stays open: the
// next caller gets it again. A request of a run without a worker comes when a worker does.
//
// Several callers get the same requests; the first answer counts. The listing that tells
// of them may be some seconds behind. Errors are [agent.CodeNotFound] if nobody knows the
// session, and those of reaching the server.
func (c *Client) Requests(ctx context.Context, session string) iter.Seq2[agent.Request, error] {
	return func(yield func(agent.Request, error) bool) {
		r := &requestReader{client: c, session: session, known: map[requestKey]bool{}, yield: yield}
		if err := r.read(ctx); err != nil && !r.over {
			yield(agent.Request{}, fmt.Errorf("reading the requests of session %s: %w", session, err))
		}
	}
}

// requestKey names a request among those of a tree.
type requestKey struct{ session, run, id string }

// requestReader reads the requests of one tree. One goroutine uses it.
type requestReader struct {
	client  *Client
	session string
	known   map[requestKey]bool // what the caller has
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

// list yields what a listing has that the caller has not.
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
			continue // the next look asks again
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
