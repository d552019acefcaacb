package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
)

// story makes a log of any shape: runs that begin, say something, set the state, end
// turns, are suspended, compacted, reset and forked.
func story(t *rapid.T) []agent.Event {
	var events []agent.Event
	add := func(e agent.Event) {
		e.Seq = int64(len(events)) + 1
		events = append(events, e)
	}
	run := 0
	start := func(carry agent.Carry) {
		run++
		add(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: fmt.Sprint("r", run), Carry: carry, Spec: &agent.Spec{Definition: agent.Definition{Name: "a", StateVersion: run}}}})
	}
	start("")
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 12).Draw(t, "step") {
		case 0:
			start("")
		case 1:
			if rapid.IntRange(0, 3).Draw(t, "resets") == 0 {
				start(agent.CarryReset)
			}
		case 2:
			at := rapid.Int64Range(1, int64(len(events))).Draw(t, "at")
			start("")
			add(agent.Event{Type: agent.EventForked, Forked: &agent.Forked{Checkpoint: agent.CheckpointID("s", at), DropArtifacts: rapid.IntRange(0, 2).Draw(t, "drops") == 0}})
		case 3:
			entries := known(events)
			c := agent.Compaction{KeepFirst: rapid.IntRange(0, min(3, len(entries))).Draw(t, "first")}
			if n := len(entries); n > c.KeepFirst && rapid.Bool().Draw(t, "keeps") {
				c.KeepFrom = entries[rapid.IntRange(c.KeepFirst, n-1).Draw(t, "from")].Seq
			}
			m := agent.TextMessage(agent.RoleUser, fmt.Sprint("summary ", len(events)))
			add(agent.Event{Type: agent.EventCompacted, Compaction: &c, Message: &m})
		case 4:
			add(agent.Event{Type: agent.EventTurnEnded, Snapshot: &agent.TurnSnapshot{StateChanges: map[string]json.RawMessage{fmt.Sprint("k", len(events)%5): json.RawMessage(fmt.Sprint(len(events)))}}})
		case 5:
			add(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &agent.ToolsChange{Source: fmt.Sprint("s", len(events)%2), Tools: []agent.ToolSpec{{Name: fmt.Sprintf("s%d__t%d", len(events)%2, len(events))}}}})
		case 6, 7:
			f := agent.File{Session: "s", Digest: digestOf([]byte(fmt.Sprint(len(events)))), Size: 1, MediaType: "text/plain", Name: fmt.Sprint("a", rapid.IntRange(0, 2).Draw(t, "name"))}
			add(agent.Event{Type: agent.EventArtifactSaved, Artifact: &agent.Artifact{File: f, Version: len(events) + 1}})
		case 8:
			add(agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: fmt.Sprint("s-", len(events))}})
		default:
			m := agent.TextMessage(agent.RoleUser, fmt.Sprint("m", len(events)))
			add(agent.Event{Type: agent.EventMessage, Message: &m})
		}
	}
	return events
}

// ram is a store whose chunks are in memory.
type ram struct {
	*Dir
	chunks map[string][]byte
}

func (r *ram) PutChunk(_ context.Context, name string, data []byte) error {
	r.chunks[name] = data
	return nil
}

func (r *ram) Chunk(_ context.Context, name string) ([]byte, error) { return r.chunks[name], nil }

func (r *ram) ChunkStart(_ context.Context, name string, _ int) ([]byte, error) {
	return r.chunks[name], nil
}

// What is read of a log, however it was cut into chunks and merged, shows what all of it
// shows: with what is in memory and without.
func TestWhatIsKnownIsWhatTheWholeLogShows(t *testing.T) {
	d := &ram{Dir: open1(t), chunks: map[string][]byte{}}
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		ctx, session := context.Background(), fmt.Sprint("s", n)
		warm, events, prev := NewLog(d), story(t), ""
		for from := 0; from < len(events); {
			to := min(len(events), from+rapid.IntRange(1, 4).Draw(t, "chunk"))
			l := warm
			if rapid.IntRange(0, 4).Draw(t, "cold") == 0 {
				l = NewLog(d)
			}
			var err error
			prev, err = l.Seal(ctx, prev, session, "r", rapid.Bool().Draw(t, "works"), events[from:to])
			require.NoError(t, err)
			if from = to; rapid.IntRange(0, 3).Draw(t, "reads") != 0 {
				continue
			}
			upTo := to + rapid.IntRange(0, min(3, len(events)-to)).Draw(t, "tail")
			tail, want := events[to:upTo], &View{events: events[:upTo]}
			for _, l := range []*Log{warm, NewLog(d)} {
				v, err := l.Known(ctx, prev, tail)
				require.NoError(t, err)
				v = v.With(tail, int64(upTo))
				require.Equal(t, want.Messages(), v.Messages())
				require.Equal(t, want.State(), v.State())
				require.Equal(t, want.Artifacts(), v.Artifacts())
				require.Equal(t, want.Spec(), v.Spec())
				require.Equal(t, want.Seq(), v.Seq())
				require.Equal(t, want.Suspended(), v.Suspended())
			}
			whole, err := NewLog(d).View(ctx, prev)
			require.NoError(t, err)
			require.Equal(t, events[:to], whole.Events())
		}
	})
}

// long writes a session of many small chunks that is compacted now and then, and
// returns its last one.
func long(t *testing.T, s Store, session string, turns, every int) string {
	t.Helper()
	l, prev := NewLog(s), ""
	text := strings.Repeat("lorem ipsum ", 100)
	first := []agent.Event{{Seq: 1, Type: agent.EventRunStarted, Started: &agent.Started{Run: "r", Spec: &agent.Spec{Definition: agent.Definition{Name: "a"}}}}}
	for turn := range turns {
		seq := int64(2*turn + 2)
		tail := append(first, events(seq, fmt.Sprint(turn, text), fmt.Sprint(turn, text))...)
		if first = nil; every > 0 && turn%every == every-1 {
			tail[len(tail)-1].Type, tail[len(tail)-1].Compaction = agent.EventCompacted, &agent.Compaction{KeepFirst: 1, KeepFrom: seq - 10}
		}
		var err error
		prev, err = l.Seal(t.Context(), prev, session, "r", true, tail)
		require.NoError(t, err)
	}
	return prev
}

// A worker that comes to a long chat reads what its model is shown, and that in few
// chunks: ten times as many messages are no more.
func TestAColdReadIsBoundedByWhatIsKnown(t *testing.T) {
	reads := map[int]int64{}
	for _, turns := range []int{200, 2000} {
		c := &counted{Dir: open1(t)}
		last := long(t, c, "s", turns, 50)
		c.chunks.Store(0)
		c.starts.Store(0)
		v, err := NewLog(c).Known(t.Context(), last, nil)
		require.NoError(t, err)
		require.EqualValues(t, 2*turns+1, v.Seq())
		reads[turns] = c.chunks.Load() + c.starts.Load()
		all := 0
		for _, err := range NewLog(c).Chain(t.Context(), last) {
			require.NoError(t, err)
			all++
		}
		require.Less(t, all, turns/4, "small chunks are merged")
		require.NoError(t, NewLog(c).forEach(t, last))
	}
	require.LessOrEqual(t, reads[2000], reads[200]+2, "chunks that were read")
}

// forEach checks that the chunks of a chain hold all events, once and in order.
func (l *Log) forEach(t *testing.T, last string) error {
	chunks, err := l.Since(t.Context(), last, 0)
	seq := int64(0)
	for _, c := range chunks {
		for _, e := range c.Events {
			require.Equal(t, seq+1, e.Seq)
			seq = e.Seq
		}
	}
	return err
}

// slow is a store that answers when it may, and says how many wait at once.
type slow struct {
	*Dir
	mu      sync.Mutex
	waits   int
	most    int
	proceed chan struct{}
	fails   int // after so many reads
}

func (s *slow) Chunk(ctx context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	s.waits++
	s.most = max(s.most, s.waits)
	if s.fails--; s.fails == 0 {
		s.mu.Unlock()
		return nil, agent.Errorf(agent.CodeStoreUnavailable, "cut off")
	}
	s.mu.Unlock()
	select {
	case <-s.proceed:
	case <-ctx.Done():
		return nil, agent.Errorf(agent.CodeStoreUnavailable, "reading: %w", ctx.Err())
	}
	s.mu.Lock()
	s.waits--
	s.mu.Unlock()
	return s.Dir.Chunk(ctx, name)
}

// Chunks are read at once, at most so many; and what was read before an error need not
// be read again, whether all of the log is read or what its last run knows.
func TestReadsAreParallelAndGoOn(t *testing.T) {
	for name, read := range map[string]func(*Log, string) error{
		"all":           func(l *Log, last string) error { _, err := l.View(t.Context(), last); return err },
		"what is known": func(l *Log, last string) error { _, err := l.Known(t.Context(), last, nil); return err },
	} {
		t.Run(name, func(t *testing.T) { readsGoOn(t, read) })
	}
}

func readsGoOn(t *testing.T, read func(l *Log, last string) error) {
	d, last := open1(t), ""
	for i := range int64(2 * wave) { // too large to be merged
		tail := events(i+1, strings.Repeat("x", mergeMost))
		if i == 1 { // the rest is known
			tail[0].Type, tail[0].Compaction = agent.EventCompacted, &agent.Compaction{}
		}
		var err error
		last, err = NewLog(d).Seal(t.Context(), last, "s", "r", false, tail)
		require.NoError(t, err)
	}
	all := 0
	for _, err := range NewLog(d).Chain(t.Context(), last) {
		require.NoError(t, err)
		all++
	}
	require.Greater(t, all, wave)
	s := &slow{Dir: d, proceed: make(chan struct{}), fails: all - 2}
	l := NewLog(s)
	done := make(chan error, 1)
	go func() { done <- read(l, last) }()
	var failed error
	for failed == nil {
		select {
		case s.proceed <- struct{}{}:
		case failed = <-done:
		case <-time.After(time.Minute):
			t.Fatal("nothing is read")
		}
	}
	require.ErrorIs(t, failed, agent.CodeStoreUnavailable)
	s.mu.Lock()
	require.Greater(t, s.most, 4)
	require.LessOrEqual(t, s.most, wave)
	s.waits = 0
	s.mu.Unlock()
	close(s.proceed)
	before := -s.fails
	require.NoError(t, read(l, last))
	require.LessOrEqual(t, -s.fails-before, wave, "what was read before is read again")
}

// Chunks that were merged away and collected are found again in what they were merged
// into: an execution that was reset goes on from where it was.
func TestAnExecutionThatWasResetFindsItsLog(t *testing.T) {
	ctx, d := t.Context(), open1(t)
	l := NewLog(d)
	var before string
	texts := []string{}
	for i := range 3 * mergeMany {
		text := fmt.Sprint(i)
		if name := say(t, d, "s", text); i == 4 {
			before = name
		}
		texts = append(texts, text)
	}
	h, err := l.Head(ctx, "s")
	require.NoError(t, err)
	require.Less(t, len(h.Recent), mergeMany+3)
	require.True(t, has(t, d, before), "what a fork or a reader knows stays for a while")
	age(t, d)
	_, err = l.Collect(ctx, time.Minute, false)
	require.NoError(t, err)
	require.False(t, has(t, d, before))

	_, err = l.Known(ctx, before, nil)
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	v, err := l.Instead(ctx, "s", 5, err)
	require.NoError(t, err)
	require.Equal(t, texts[:5], slices.Collect(textsOf(v)))
	after, err := l.Seal(ctx, before, "s", "r", false, events(6, "another way"))
	require.NoError(t, err)
	v, err = NewLog(d).View(ctx, after)
	require.NoError(t, err)
	require.Equal(t, append(texts[:5:5], "another way"), slices.Collect(textsOf(v)))
	require.Equal(t, texts, said(t, d, "s"))
}

func textsOf(v *View) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, text := range texts(v) {
			if !yield(text) {
				return
			}
		}
	}
}

// A compaction behind a suspension copies nothing of what people were asked in it.
func TestABaseHasNoRequests(t *testing.T) {
	m := agent.TextMessage(agent.RoleUser, "go")
	whole := []agent.Event{
		{Seq: 1, Type: agent.EventRunStarted, Started: &agent.Started{Run: "r", Spec: &agent.Spec{}}},
		{Seq: 2, Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1", Requests: []agent.Request{{ID: "q-1", Text: strings.Repeat("long ", 1000)}}}},
		{Seq: 3, Type: agent.EventCompacted, Compaction: &agent.Compaction{}, Message: &m},
	}
	k, base := condense(whole)
	require.NotNil(t, k)
	raw, err := json.Marshal(base)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "long")
	require.EqualValues(t, 2, (&View{events: base}).Suspended())
}
