package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func open1(t *testing.T) *Dir {
	t.Helper()
	d, err := OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	return d
}

// events makes a tail of messages numbered from one number on.
func events(from int64, texts ...string) []agent.Event {
	var out []agent.Event
	for i, text := range texts {
		m := agent.TextMessage(agent.RoleUser, text)
		out = append(out, agent.Event{Seq: from + int64(i), Type: agent.EventMessage, Time: time.Unix(0, 0).UTC(), Message: &m})
	}
	return out
}

func texts(v *View) (out []string) {
	for _, m := range v.Messages() {
		out = append(out, m.Text())
	}
	return out
}

func TestAChainIsReadWhole(t *testing.T) {
	ctx, d := context.Background(), open1(t)
	l := NewLog(d)
	first, err := l.Seal(ctx, "", "s", "r", false, events(1, "a", "b"))
	require.NoError(t, err)
	second, err := l.Seal(ctx, first, "s", "r", false, events(3, "c"))
	require.NoError(t, err)
	again, err := l.Seal(ctx, first, "s", "r", false, events(3, "c"))
	require.NoError(t, err)
	require.Equal(t, second, again, "the same events after the same chunk have the same digest")

	for _, l := range []*Log{l, NewLog(d)} { // warm and cold
		v, err := l.View(ctx, second)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, texts(v))
		v, err = l.View(ctx, first)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, texts(v), "an older head is still an older head")
	}
}

// reads counts what is read of a store.
type reads struct {
	*Dir
	n int
}

func (r *reads) Chunk(ctx context.Context, digest string) ([]byte, error) {
	r.n++
	return r.Dir.Chunk(ctx, digest)
}

// Whoever reads a log that grows reads each chunk once, and none that grew here.
func TestALogThatIsReadGrowsInMemory(t *testing.T) {
	ctx, s := t.Context(), &reads{Dir: open1(t)}
	l := NewLog(s)
	first, err := l.Seal(ctx, "", "s", "r", false, events(1, "a"))
	require.NoError(t, err)
	_, err = l.Known(ctx, first, nil)
	require.NoError(t, err)
	require.Equal(t, 1, s.n)
	second, err := l.Seal(ctx, first, "s", "r", false, events(2, "b"))
	require.NoError(t, err)
	v, err := l.Known(ctx, second, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, texts(v))
	require.Equal(t, 1, s.n)
	cold, err := NewLog(s).View(ctx, second)
	require.NoError(t, err)
	require.Equal(t, cold.Events(), v.Events(), "what grew is what is read")
}

func TestAViewGoesOnIntoTheOpenTail(t *testing.T) {
	ctx, d := context.Background(), open1(t)
	l := NewLog(d)
	head, err := l.Seal(ctx, "", "s", "r", false, events(1, "a", "b", "c"))
	require.NoError(t, err)
	v, err := l.View(ctx, head)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d"}, texts(v.With(events(3, "c", "d", "e"), 4)), "a tail may overlap, and reach further")
	require.Equal(t, []string{"a", "b"}, texts(v.With(nil, 2)), "a view may be younger than what is asked for")
	require.Equal(t, []string{"a", "b", "c"}, texts(v), "a view is never changed")
}

// A log that can not be read whole is told to be missing or damaged (HL-43).
func TestWhatIsMissingOrDamagedIsNeverASilentlyShorterLog(t *testing.T) {
	ctx, d := context.Background(), open1(t)
	first, err := NewLog(d).Seal(ctx, "", "s", "r", false, events(1, "a"))
	require.NoError(t, err)
	second, err := NewLog(d).Seal(ctx, first, "s", "r", false, events(2, "b"))
	require.NoError(t, err)

	whole, err := os.ReadFile(d.chunk(first))
	require.NoError(t, err)
	for name, damage := range map[string][]byte{
		"a flipped bit":     append(append([]byte{}, whole[:len(whole)-1]...), whole[len(whole)-1]^1),
		"a short file":      whole[:len(whole)/2],
		"an empty file":     {},
		"another's content": mustRead(t, d.chunk(second)),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(d.chunk(first), damage, 0o600))
			_, err := NewLog(d).View(ctx, second)
			require.ErrorIs(t, err, agent.CodeChunkDamaged)
			require.Contains(t, err.Error(), first)
		})
	}
	require.NoError(t, os.Remove(d.chunk(first)))
	_, err = NewLog(d).View(ctx, second)
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	require.Contains(t, err.Error(), first)
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// Of many writers of one head one wins (OA-90).
func TestOfManyWritersOfAHeadOneWins(t *testing.T) {
	ctx, d := context.Background(), open1(t)
	_, err := d.Head(ctx, "s")
	require.ErrorIs(t, err, agent.CodeNotFound)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			err := d.PutHead(ctx, Head{V: 1, Version: 1, Session: "s", Run: fmt.Sprint(i)})
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, agent.CodeStale) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load())
	h, err := d.Head(ctx, "s")
	require.NoError(t, err)
	h.Version++
	require.NoError(t, d.PutHead(ctx, h))
}

func TestSessionsOfAnyNameHaveHeadsOfTheirOwn(t *testing.T) {
	ctx, d := context.Background(), open1(t)
	for _, s := range []string{"a", "A", "a/b-1", "..", "con", "x:y", strings.Repeat("a", 255)} {
		require.NoError(t, d.PutHead(ctx, Head{V: 1, Version: 1, Session: s}))
		h, err := d.Head(ctx, s)
		require.NoError(t, err)
		require.Equal(t, s, h.Session)
	}
	outside, err := filepath.Glob(filepath.Join(d.Root(), "..", "*.json"))
	require.NoError(t, err)
	require.Empty(t, outside)
}

func TestARunThatBeganAnewKnowsNothingOfBefore(t *testing.T) {
	e := events(1, "old")
	e = append(e, agent.Event{Seq: 2, Type: agent.EventRunStarted, Started: &agent.Started{Carry: agent.CarryReset, Spec: &agent.Spec{}}})
	v := (&View{}).With(append(e, events(3, "new")...), 3)
	require.Equal(t, []string{"new"}, texts(v))
}
