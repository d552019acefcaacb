package connect

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/store"
)

// WithLog calls do with a client that reads a session's log: from the store and the
// running run, or from the store alone if no server runs. It then says so.
func (c *Connector) WithLog(ctx context.Context, session string, do func(*fermata.Client) error) error {
	return c.withLog(ctx, session, false, do)
}

// ReadLog is [Connector.WithLog] for a command that shows what there is. If no worker answers for
// what a run has not stored yet, it shows what the store has, and says so; of a session of which no
// worker has begun anything, [agent.CodeNoWorker]. do may be called twice, and prints nothing before it
// has read everything.
func (c *Connector) ReadLog(ctx context.Context, session string, do func(*fermata.Client) error) error {
	return c.withLog(ctx, session, true, do)
}

func (c *Connector) withLog(ctx context.Context, session string, shows bool, do func(*fermata.Client) error) error {
	s, err := c.Look(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		return c.withoutServer(ctx, session, do)
	}
	// A live run has events that the store does not have yet.
	defer s.Close()
	runs, err := c.Client(ctx, s)
	if err != nil {
		return err
	}
	transcripts, err := c.OpenStore(ctx)
	if err != nil {
		return err
	}
	var open *openRun
	if shows {
		open = s.openRun(ctx, session, transcripts)
	}
	// Asked first: a query would wait for a worker until its time is over.
	unanswered := open != nil && s.unpolled(ctx, open.queue)
	if unanswered && open.head == nil {
		return agent.Errorf(agent.CodeNoWorker, "the store has nothing of session %s, and no worker polls its task queue %s: start one with %s", session, open.queue, c.CommandLine("worker --agents FILE"))
	}
	if !unanswered {
		err = do(runs)
		unanswered = open != nil && open.head != nil && ctx.Err() == nil && (errors.Is(err, agent.CodeNoWorker) || errors.Is(err, agent.CodeTimeout))
	}
	if unanswered {
		c.noteStoreOnly("no worker answers at the task queue "+open.queue, *open.head)
		return do(fermata.New(nil, &fermata.Options{Store: transcripts}))
	}
	return c.WithQueueHint(ctx, s, session, err)
}

// withoutServer calls do with a client of the store alone.
func (c *Connector) withoutServer(ctx context.Context, session string, do func(*fermata.Client) error) error {
	transcripts, err := c.OpenStore(ctx)
	if err != nil {
		return err
	}
	head, err := transcripts.Head(ctx, session)
	if errors.Is(err, agent.CodeNotFound) {
		// Without a server, the session may exist there: show both reasons.
		_, none := c.Find(ctx)
		return errors.Join(none, err)
	}
	if err != nil {
		return err
	}
	c.noteStoreOnly("no Temporal server runs", head)
	return do(fermata.New(nil, &fermata.Options{Store: transcripts}))
}

// openRun is a run that may have more than the store has of it.
type openRun struct {
	queue string
	head  *store.Head // nil if the store has nothing of the session
}

// openRun returns the session's last run; nil if the store has all of it, or is not the store of that
// run's task queue, or the run ended before it began. What is not known in a moment is nil too.
func (s *Server) openRun(ctx context.Context, session string, transcripts store.Store) *openRun {
	d, err := s.DescribeWorkflowExecution(ctx, session, "")
	if err != nil {
		return nil
	}
	info := d.GetWorkflowExecutionInfo()
	open := &openRun{queue: info.GetTaskQueue()}
	switch head, err := store.NewLog(transcripts).Head(ctx, session); {
	case errors.Is(err, agent.CodeNotFound) && !durable.Closed(info):
	case err != nil || durable.Closed(info) && head.Status.Ended() && head.Run == info.GetFirstRunId():
		return nil
	default:
		open.head = &head
	}
	if err := s.checkStore(ctx, open.queue, transcripts); err != nil && !errors.Is(err, agent.CodeNotFound) {
		return nil
	}
	return open
}

// unpolled reports whether no worker polls a task queue.
func (s *Server) unpolled(ctx context.Context, queue string) bool {
	names, err := s.pollers(ctx, queue)
	return err == nil && len(names) == 0
}

// noteStoreOnly says what only the store can know of a session, and why nobody else is asked.
func (c *Connector) noteStoreOnly(why string, head store.Head) {
	when := head.Updated.Local().Format(time.DateTime)
	if head.Status.Ended() {
		c.Notify("%s: this is what the store has, up to the run that was %s at %s", why, head.Status, when)
	} else {
		c.Notify("%s: this is what the store had at %s of a run that has not ended", why, when)
	}
}
