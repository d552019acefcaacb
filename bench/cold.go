package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"gocloud.dev/blob/s3blob"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/bucket"
	"github.com/fermata-agents/fermata/store/postgres"
	"github.com/fermata-agents/fermata/store/postgres/pgtest"
)

var coldBench = benchmark{
	name: "cold", about: "a process that comes to a long chat: what it reads before the first model request",
	example: "-only folder", reps: 9, run: colds,
}

// Measures of a cold start.
const (
	coldTime  = "cold start"
	coldBytes = "read"
	coldCalls = "calls of the store"
)

// Chats have messages of coldSize bytes, and are compacted after coldEvery messages. So a
// model sees as much of the short chat as of the long one.
const (
	coldSize  = 1 << 10
	coldEvery = 300
)

// perCall is the delay of each request to the bucket's server.
const perCall = 50 * time.Millisecond

// colds measures chats of two lengths beside each other, in each store.
func colds(ctx context.Context, b *bench) error {
	for _, place := range []struct {
		name string
		open func(context.Context) (store.Store, *atomic.Int64, func(), error)
	}{{"folder", coldFolder}, {"PostgreSQL", coldPostgres}, {"bucket, 50 ms a call", coldBucket}} {
		if !b.wants(place.name) {
			continue
		}
		s, delay, shut, err := place.open(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", place.name, err)
		}
		err = b.cold(ctx, place.name, s, delay)
		shut()
		if err != nil {
			return fmt.Errorf("%s: %w", place.name, err)
		}
	}
	return nil
}

// cold compares a long chat with one of a tenth of its length. It compares both with
// reading all of the short one, chunk after chunk.
func (b *bench) cold(ctx context.Context, place string, s store.Store, delay *atomic.Int64) error {
	short := pick(b, 1000, 400)
	m := &metered{Store: s}
	sides := []side{}
	for name, n := range map[string]int{"long": 10 * short, "short": short} {
		if err := chat(ctx, s, name, n); err != nil {
			return err
		}
	}
	// Only now: writing the chats need not be slow.
	delay.Store(int64(perCall))
	for _, name := range []string{"long", "short"} {
		sides = append(sides, side{name, func(ctx context.Context, _ int) (sample, error) {
			return m.measure(func() error { return begin(ctx, m, name) })
		}})
	}
	sides = append(sides, side{"whole", func(ctx context.Context, _ int) (sample, error) {
		return m.measure(func() error { return readAll(ctx, m, "short") })
	}})
	t, err := b.compare(ctx, place, sides...)
	if err != nil {
		return err
	}
	for _, one := range []row{{What: coldTime, Unit: "ms", Target: atMost(1.2)}, {What: coldBytes, Unit: "bytes", Target: atMost(1.2)}, {What: coldCalls}} {
		long, usual := one, one
		long.Cell, long.Ours = fmt.Sprintf("%s, %d messages", place, 10*short), t.of("long", one.What)
		long.Reference, long.Beside = fmt.Sprintf("%d messages", short), t.of("short", one.What)
		usual.Cell, usual.Ours, usual.Target = fmt.Sprintf("%s, %d messages", place, short), t.of("short", one.What), nil
		usual.Reference, usual.Beside = "all, one by one", t.of("whole", one.What)
		b.add(long)
		b.add(usual)
	}
	return nil
}

// chat writes a conversation like a run that is suspended after each answer.
func chat(ctx context.Context, s store.Store, session string, messages int) error {
	l := store.NewLog(s)
	head := store.Head{V: store.HeadVersion, Session: session, Run: session, Status: agent.StatusSuspended, Fence: agent.Fence{Chain: 1}}
	spec := &agent.Spec{Definition: agent.Definition{Name: "chat", Instructions: text(coldSize, 1)}}
	tail := []agent.Event{{Seq: 1, Type: agent.EventRunStarted, Started: &agent.Started{Run: session, Spec: spec}}}
	seq := int64(1)
	add := func(e agent.Event) {
		seq++
		e.Seq, e.Time = seq, time.Unix(seq, 0).UTC()
		tail = append(tail, e)
	}
	for n := 0; n < messages; n += 2 {
		for i, role := range []agent.Role{agent.RoleUser, agent.RoleAssistant} {
			m := agent.TextMessage(role, text(coldSize, n+i))
			add(agent.Event{Type: agent.EventMessage, Turn: n / 2, Message: &m})
		}
		add(agent.Event{Type: agent.EventTurnEnded, Turn: n / 2, Snapshot: &agent.TurnSnapshot{}})
		if n%coldEvery == coldEvery-2 {
			m := agent.TextMessage(agent.RoleUser, text(coldSize, n))
			add(agent.Event{Type: agent.EventCompacted, Compaction: &agent.Compaction{KeepFirst: 1, KeepFrom: seq - 14}, Message: &m})
		}
		var err error
		if head.Digest, err = l.Seal(ctx, head.Digest, session, session, true, tail); err != nil {
			return err
		}
		head.Version, head.Fence.N, head.Seq, tail, head.Recent = head.Version+1, head.Fence.N+1, seq, nil, nil
		if head, err = l.PutHead(ctx, head); err != nil {
			return err
		}
	}
	return nil
}

// begin does what a process without a session in memory does, from the run's start to
// its first model request. It reads and claims the head, and reads what the model sees.
func begin(ctx context.Context, s store.Store, session string) error {
	l := store.NewLog(s)
	h, err := l.Head(ctx, session)
	if err != nil {
		return err
	}
	h.Version, h.Fence = h.Version+1, h.Fence.After(0)
	if h, err = l.SwapHead(ctx, h); err != nil {
		return err
	}
	v, err := l.Known(ctx, h.Digest, nil)
	if err == nil && (len(v.Messages()) == 0 || v.Spec() == nil || v.Seq() != h.Seq) {
		err = fault("session %s is not read whole", session)
	}
	return err
}

// readAll reads a session chunk after chunk.
func readAll(ctx context.Context, s store.Store, session string) error {
	l := store.NewLog(s)
	h, err := l.Head(ctx, session)
	if err != nil {
		return err
	}
	for _, err := range l.Chain(ctx, h.Digest) {
		if err != nil {
			return err
		}
	}
	return nil
}

// metered counts the reads of a store.
type metered struct {
	store.Store
	calls, bytes atomic.Int64
}

func (m *metered) measure(do func() error) (sample, error) {
	m.calls.Store(0)
	m.bytes.Store(0)
	began := time.Now()
	err := do()
	return sample{coldTime: since(began), coldBytes: float64(m.bytes.Load()), coldCalls: float64(m.calls.Load())}, err
}

func (m *metered) got(n int) {
	m.calls.Add(1)
	m.bytes.Add(int64(n))
}

// Chunk implements [store.Store].
func (m *metered) Chunk(ctx context.Context, name string) ([]byte, error) {
	data, err := m.Store.Chunk(ctx, name)
	m.got(len(data))
	return data, err
}

// ChunkStart implements [store.Store].
func (m *metered) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	data, err := m.Store.ChunkStart(ctx, name, most)
	m.got(len(data))
	return data, err
}

// Head implements [store.Store].
func (m *metered) Head(ctx context.Context, session string) (store.Head, error) {
	h, err := m.Store.Head(ctx, session)
	raw, _ := json.Marshal(h) // it was decoded from JSON
	m.got(len(raw))
	return h, err
}

// PutHead implements [store.Store].
func (m *metered) PutHead(ctx context.Context, h store.Head) error {
	m.got(0)
	return m.Store.PutHead(ctx, h)
}

func coldFolder(context.Context) (store.Store, *atomic.Int64, func(), error) {
	dir, err := os.MkdirTemp("", "fermata-bench")
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := store.OpenDir(dir, nil)
	return s, &atomic.Int64{}, func() { _ = os.RemoveAll(dir) }, err
}

func coldPostgres(ctx context.Context) (store.Store, *atomic.Int64, func(), error) {
	db, err := pgtest.Start(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := postgres.Open(ctx, db.URL(), nil)
	if err != nil {
		db.Stop()
		return nil, nil, nil, err
	}
	return s, &atomic.Int64{}, func() {
		s.Close()
		db.Stop()
	}, nil
}

// coldBucket opens a bucket on an S3 server that delays each answer.
func coldBucket(ctx context.Context) (store.Store, *atomic.Int64, func(), error) {
	delay := &atomic.Int64{}
	fake := gofakes3.New(s3mem.New(), gofakes3.WithAutoBucket(true)).Server()
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(delay.Load()))
		fake.ServeHTTP(w, r)
	}))
	client := s3.New(s3.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(at.URL), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("key", strings.Repeat("x", 8), ""),
	})
	b, err := s3blob.OpenBucket(ctx, client, "fermata", nil)
	if err != nil {
		at.Close()
		return nil, nil, nil, err
	}
	s := bucket.New(b, nil)
	return s, delay, func() {
		_ = s.Close() // nothing more is written
		at.Close()
	}, nil
}
