package client

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/signals"
)

// histories are the executions whose history a client follows. All readers of one
// execution share one long poll.
type histories struct {
	mu       sync.Mutex
	followed map[string]*history // by execution
}

// newsGap is the least time between two notices of workflow tasks, so that a reader
// queries a run at most ten times a second.
const newsGap = 100 * time.Millisecond

// history is the history of one execution, as far as this process knows it.
type history struct {
	all       *histories
	client    *Client
	session   string
	execution string
	stop      context.CancelFunc

	mu        sync.Mutex
	length    int64 // the last event that has arrived
	task      int64 // the last workflow task that was completed
	published int64 // the last change of the search attributes or the memo
	over      bool  // no more comes: the execution is closed, or the poll failed
	followers map[*follower]struct{}
	notified  time.Time   // when followers were last notified
	later     *time.Timer // notifies them again; nil if nothing is pending

	asking chan struct{} // a semaphore: one reader at a time queries the run
	latest openPart
}

// openPart is the run's answer about the open part of its log, shared by all readers.
type openPart struct {
	open   signals.OpenTail
	from   int64 // the query asked for events after this one
	length int64 // the history had at least this many events at that time
}

// follower is one reader of a history. It is notified of events after those that it
// knows.
type follower struct {
	*history
	known int64
	tasks bool // notified of every workflow task, else only of changes that listings show
	// news receives when there is something new. It is closed when nothing more comes.
	news chan struct{}
}

// follow returns a follower of an execution's history. It has to leave at the end. It is
// notified of workflow tasks after info, or only of changes that listings show.
func (c *Client) follow(info *workflowpb.WorkflowExecutionInfo, session string, tasks bool) *follower {
	all, execution := &c.histories, info.GetExecution().GetRunId()
	all.mu.Lock()
	defer all.mu.Unlock()
	h := all.followed[execution]
	if h == nil {
		ctx, stop := context.WithCancel(context.Background())
		h = &history{all: all, client: c, session: session, execution: execution, stop: stop, followers: map[*follower]struct{}{}, asking: make(chan struct{}, 1)}
		if all.followed == nil {
			all.followed = map[string]*history{}
		}
		all.followed[execution] = h
		go h.poll(ctx)
	}
	f := &follower{history: h, known: info.GetHistoryLength(), tasks: tasks, news: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followers[f] = struct{}{}
	f.tell()
	return f
}

// leave removes a follower. The last one stops the poll.
func (f *follower) leave() {
	h := f.history
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.followers, f)
	if len(h.followers) == 0 {
		h.stop()
		h.forget()
	}
}

// grown returns how many events of the history are known.
func (h *history) grown() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.length
}

// forget removes the history, so that the next follower begins a new poll. all.mu and mu
// are held.
func (h *history) forget() {
	if h.all.followed[h.execution] == h {
		delete(h.all.followed, h.execution)
	}
	if h.later != nil {
		h.later.Stop()
	}
}

// poll reads the history as it grows.
func (h *history) poll(ctx context.Context) {
	events := h.client.temporal.GetWorkflowHistory(ctx, h.session, h.execution, true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			break
		}
		h.grew(e.GetEventId(), e.GetEventType())
	}
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	h.over = true
	for f := range h.followers {
		close(f.news)
	}
	h.stop()
}

// grew records one event and notifies followers. Changes that listings show are reported
// at once, workflow tasks at most once every newsGap.
func (h *history) grew(id int64, kind enums.EventType) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.length = id
	switch kind {
	case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
		h.published = id
		h.tellAll(false)
	case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		h.task = id
		if h.later != nil {
			return
		}
		if wait := newsGap - time.Since(h.notified); wait > 0 {
			h.later = time.AfterFunc(wait, h.tellLater)
			return
		}
		h.notified = time.Now()
		h.tellAll(true)
	}
}

func (h *history) tellLater() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.later, h.notified = nil, time.Now()
	h.tellAll(true)
}

func (h *history) tellAll(tasks bool) {
	for f := range h.followers {
		if f.tasks == tasks {
			f.tell()
		}
	}
}

// tell notifies a follower if there is something that it does not know.
func (f *follower) tell() {
	last := f.published
	if f.tasks {
		last = f.task
	}
	if f.over || last <= f.known {
		return
	}
	f.known = last
	select {
	// A full channel already holds a notice, and one is enough.
	case f.news <- struct{}{}:
	default:
	}
}

// tail returns the open part of the run's log after an event. It reuses another reader's
// answer if that is recent enough. ask sends one query.
func (h *history) tail(ctx context.Context, from int64, info *workflowpb.WorkflowExecutionInfo, ask func() (signals.OpenTail, error)) (signals.OpenTail, error) {
	select {
	case h.asking <- struct{}{}:
	case <-ctx.Done():
		return signals.OpenTail{}, ctx.Err()
	}
	defer func() { <-h.asking }()
	if open, ok := h.latest.behind(from, info.GetHistoryLength()); ok {
		return open, nil
	}
	open, err := signals.Settled(ctx, h.client.temporal, h.session, info, ask)
	if err == nil {
		h.latest = openPart{open, from, info.GetHistoryLength()}
	}
	return open, err
}

// behind returns the part of the answer after an event. ok is false if a reader that
// knows length events of the history could learn more by asking.
func (a openPart) behind(from, length int64) (open signals.OpenTail, ok bool) {
	if a.from > from || a.length < length || a.length == 0 {
		return open, false
	}
	open = a.open
	for len(open.Events) > 0 && open.Events[0].Seq <= from {
		open.Events = open.Events[1:]
	}
	return open, len(open.Events) > 0 || !open.More
}
