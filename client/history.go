package client

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/signals"
)

// histories are the histories of executions that somebody follows through one client:
// each by one long poll, however many they are.
type histories struct {
	mu       sync.Mutex
	followed map[string]*history // by execution
}

// newsGap is the least time between two notices of what a run does: a reader asks the
// run at most ten times a second.
const newsGap = 100 * time.Millisecond

// history is one execution's, as far as it is known here.
type history struct {
	all       *histories
	client    *Client
	session   string
	execution string
	stop      context.CancelFunc

	mu        sync.Mutex
	length    int64 // the last event that has come
	task      int64 // the last workflow task that was completed
	published int64 // the last change of what listings show
	over      bool  // no more comes: the execution is closed, or the poll failed
	followers map[*follower]struct{}
	told      time.Time   // when readers were told last
	later     *time.Timer // tells them again; nil if there is nothing to tell

	asking chan struct{} // held by who asks the run
	latest openPart
}

// openPart is what the run said of the open part of its log, for all who want to know.
type openPart struct {
	open   signals.OpenTail
	from   int64 // what was asked for is behind this event
	length int64 // the history had at least so many events
}

// follower hears of one history, of what is behind the events that it knows.
type follower struct {
	*history
	known int64
	tasks bool // it wants to know of every workflow task, not only of what is published
	// news receives when there is something; it is closed when no more comes.
	news chan struct{}
}

// follow follows the history of an execution, until the follower leaves. It tells of
// workflow tasks behind what info has, or only of changes that listings show.
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

// leave ends a follower; the last one ends the poll.
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

// grown is how many events are known.
func (h *history) grown() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.length
}

// forget lets who comes next begin anew.
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

// grew takes one event, and tells whom it concerns: of what is published at once, of
// workflow tasks not more often than every newsGap.
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
		if wait := newsGap - time.Since(h.told); wait > 0 {
			h.later = time.AfterFunc(wait, h.tellLater)
			return
		}
		h.told = time.Now()
		h.tellAll(true)
	}
}

func (h *history) tellLater() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.later, h.told = nil, time.Now()
	h.tellAll(true)
}

func (h *history) tellAll(tasks bool) {
	for f := range h.followers {
		if f.tasks == tasks {
			f.tell()
		}
	}
}

// tell tells a follower of what it does not know, if there is something.
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
	case f.news <- struct{}{}:
	default:
	}
}

// tail asks the run for the open part of its log behind an event, or takes what another
// reader was told, where that is all that this one can know of. ask asks once.
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

// behind is the part of an answer behind an event, if it tells all that who knows so
// much of the history can know.
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
