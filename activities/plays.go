package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/store"
)

// Plays are the functions of flows in progress in this process. A lost one is run again on the
// run's log. It is safe for concurrent use.
type Plays struct {
	mu    sync.Mutex
	plays *simplelru.LRU[string, *kept]
	// hung are the functions that hang. Nothing can end their goroutines, so no other is started
	// that would hang at the same place.
	hung  map[flowOfSession]*hung
	hangs int // how many hang
	// asked are the keys of plays that an asking uses; each channel is closed when it is over.
	asked map[string]chan struct{}
}

// kept is a play, with how far in the log it has come.
type kept struct {
	*play.Play
	journal play.Journal
	upTo    LogPosition
	hung    *hung // nil if it does not hang
}

type flowOfSession struct{ session, name string }

// hung is what is known of a play that hangs.
type hung struct {
	back <-chan struct{} // closed when it does not hang any more
	// place is where it hangs: the digest of the first results.
	results int
	place   [sha256.Size]byte

	mu     sync.Mutex
	waited time.Duration // the longest time that somebody has waited for it in vain
	err    error         // what they got
}

// inVain returns the error of a wait that was as long; nil if there was none, or if the function
// does not hang any more.
func (h *hung) inVain(within time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.back:
		return nil
	default:
	}
	if within > h.waited {
		return nil
	}
	return h.err
}

// waitedFor remembers a wait in vain; err is nil if the wait was for another play's function.
func (h *hung) waitedFor(within time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waited = max(h.waited, within); err != nil {
		h.err = err
	}
}

// maxPlays is how many plays a process keeps. Each has the goroutines and variables of a flow.
const maxPlays = 1024

// NewPlays returns no plays; one serves a whole process.
func NewPlays() *Plays {
	lru, _ := simplelru.NewLRU[string, *kept](maxPlays, nil)
	return &Plays{plays: lru, hung: map[flowOfSession]*hung{}, asked: map[string]chan struct{}{}}
}

// Drop forgets the plays of an execution.
func (p *Plays) Drop(execution string) {
	for _, key := range []string{execution, doKey(execution)} {
		if k := p.take(key); k != nil {
			k.Close()
		}
	}
}

// doKey is the key of the play that runs the code of an execution's steps.
func doKey(execution string) string { return execution + "/do" }

// take removes a play and returns it, so that nobody else uses it; nil if there is none.
func (p *Plays) take(key string) *kept {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.plays.Peek(key)
	if !ok {
		return nil
	}
	p.plays.Remove(key)
	return k
}

// ask waits until no other asking uses a play. One whose time is over still brings its function
// back, and without the wait the next would start another. Call over at the end.
func (p *Plays) ask(ctx context.Context, key string) (over func(), err error) {
	for {
		p.mu.Lock()
		other, busy := p.asked[key]
		if !busy {
			mine := make(chan struct{})
			p.asked[key] = mine
			p.mu.Unlock()
			return func() { p.askedOver(key, mine) }, nil
		}
		p.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, &agent.Error{Code: agent.CodeTimeout, Message: "the flow's function was not waited for: another asking uses it", Retryable: true}
		}
	}
}

func (p *Plays) askedOver(key string, mine chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, key)
	close(mine)
}

// put keeps a play for the next time, in place of the one that is kept so far.
func (p *Plays) put(key string, k *kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.plays.Peek(key); ok {
		old.Close()
	} else if p.plays.Len() == maxPlays {
		if _, oldest, ok := p.plays.RemoveOldest(); ok {
			oldest.Close()
		}
	}
	p.plays.Add(key, k)
}

// hungBefore returns the function of a session that hangs, if a play would hang at the same place:
// it has the same input, and comes to have the same results. Nil if there is none.
func (p *Plays) hungBefore(in playing, k *kept) *hung {
	p.mu.Lock()
	h := p.hung[in.flow]
	p.mu.Unlock()
	if h == nil || k.Play != nil && k.Delivered() >= h.results { // it has gone on from there
		return nil
	}
	var j play.Journal
	j.Read(store.KnownEvents(in.log.Events()))
	if len(j.Results) < h.results || place(j.Input, j.Results[:h.results]) != h.place {
		return nil
	}
	return h
}

// keepHung remembers a function that hangs, until it does not hang any more.
func (p *Plays) keepHung(in playing, k *kept) *hung {
	var j play.Journal
	j.Read(store.KnownEvents(in.log.Events()))
	h := &hung{back: k.Hangs(), results: k.Delivered(), err: play.ErrHangs}
	h.place = place(j.Input, j.Results[:h.results])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung[in.flow] = h
	p.hangs++
	go func() {
		<-h.back
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.hangs--; p.hung[in.flow] == h {
			delete(p.hung, in.flow)
		}
	}()
	return h
}

// hangCount returns how many functions hang.
func (p *Plays) hangCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hangs
}

// place returns a digest of what a function has got. Times are not in it: a function that hangs for
// what they are is rare, and another run has others.
func place(input []byte, results []play.Result) (sum [sha256.Size]byte) {
	type result struct {
		Path, Text string
		Status     agent.CallStatus
		Said       []string
	}
	all := make([]result, len(results))
	for i, r := range results {
		all[i] = result{Path: r.Path, Text: r.Text, Status: r.Status}
		for _, m := range r.Said {
			all[i].Said = append(all[i].Said, m.Text())
		}
	}
	raw, err := json.Marshal(struct {
		Input   []byte
		Results []result
	}{input, all})
	if err != nil { // it has texts alone
		panic(err)
	}
	return sha256.Sum256(raw)
}

// playing says which function is played, and on what.
type playing struct {
	flow     flowOfSession
	function play.Function
	key      string // under which the play is kept
	log      *store.View
	within   time.Duration // how long the function may take
}

// playUpTo returns a run's play as it is after all results in the log: a kept one that has come
// less far, or a new one. The error is [agent.CodeStuck] if the function hangs, and retryable if
// the context ends before that is known.
func (d *Activities) playUpTo(ctx context.Context, in playing) (*kept, error) {
	k := d.Plays.take(in.key)
	if k != nil && hasEvent(in.log, k.upTo) {
		k.journal.Read(eventsAfter(in.log, k.upTo.Seq))
	} else {
		if k != nil { // it is ahead of the log: a workflow task was refused, or the workflow was reset
			k.Close()
		}
		k = &kept{}
		k.journal.Read(store.KnownEvents(in.log.Events()))
	}
	k.upTo = lastEvent(in.log)
	if err := d.awaitHung(ctx, in, k); err != nil {
		if k.Play != nil {
			d.Plays.put(in.key, k)
		}
		return nil, d.cannotPlay(ctx, in, err)
	}
	if k.Play == nil {
		k.Play = play.Start(in.function, k.journal.Input, k.journal.Began).WithFiles(k.journal.Files)
	}
	if err := k.Run(ctx, in.within, k.journal.Take()); err != nil {
		if k.hung == nil {
			k.hung = d.Plays.keepHung(in, k)
		}
		if ctx.Err() == nil {
			k.hung.waitedFor(in.within, err)
		}
		d.Plays.put(in.key, k) // a slow function goes on, and the next asking waits for it
		return nil, d.cannotPlay(ctx, in, err)
	}
	k.hung = nil
	return k, nil
}

// awaitHung waits for a function that hangs where this play would hang too. If somebody has
// waited as long in vain, it does not wait.
func (d *Activities) awaitHung(ctx context.Context, in playing, k *kept) error {
	h := cmp.Or(k.hung, d.Plays.hungBefore(in, k))
	if h == nil {
		return nil
	}
	if err := h.inVain(in.within); err != nil || h == k.hung { // its own is waited for as it runs
		return err
	}
	select {
	case <-h.back:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(in.within):
		h.waitedFor(in.within, nil)
	}
	return h.inVain(in.within)
}

// cannotPlay returns the error of a play that could not be brought up to the log's end.
func (d *Activities) cannotPlay(ctx context.Context, in playing, err error) error {
	if ctx.Err() != nil && !errors.Is(err, play.ErrHangs) {
		return &agent.Error{Code: agent.CodeTimeout, Message: "the flow's function was not waited for: " + err.Error(), Retryable: true}
	}
	d.Logger.ErrorContext(ctx, "flow does not return", "session", in.flow.session, "flow", in.flow.name, "hung", d.Plays.hangCount(), "error", err.Error())
	if errors.Is(err, play.ErrHangs) {
		return &agent.Error{Code: agent.CodeStuck, Message: err.Error()}
	}
	return err
}

// lastEvent returns the position of a log's last event. A position that the workflow says has no
// time if the event is sealed.
func lastEvent(log *store.View) (at LogPosition) {
	if events := log.Events(); len(events) > 0 {
		at.Seq, at.Time = events[len(events)-1].Seq, events[len(events)-1].Time
	}
	return at
}

// hasEvent reports whether a log has the event at a position.
func hasEvent(log *store.View, at LogPosition) bool {
	last := lastEvent(log.UpTo(at.Seq))
	return last.Seq == at.Seq && last.Time.Equal(at.Time)
}

func eventsAfter(log *store.View, seq int64) []agent.Event {
	all := log.Events()
	i, _ := slices.BinarySearchFunc(all, seq+1, func(e agent.Event, n int64) int { return cmp.Compare(e.Seq, n) })
	return all[i:]
}
