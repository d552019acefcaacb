package live

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func text(session, s string) Event {
	return Event{V: 1, Type: agent.EventDeltaText, Session: session, Run: "01a1", Turn: 1, Data: Data{Text: s}}
}

func subscribe(t *testing.T, from Source, session string) *Subscription {
	t.Helper()
	s, err := from.Subscribe(t.Context(), session)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestASubscriptionHearsItsSessionInOrder(t *testing.T) {
	h := NewHub()
	h.Publish(text("a", "too early"))
	a, again, b := subscribe(t, h, "a"), subscribe(t, h, "a"), subscribe(t, h, "b")
	h.Publish(text("a", "1"))
	h.Publish(text("b", "2"))
	h.Publish(text("a", "3"))
	for _, s := range []*Subscription{a, again} {
		<-s.Ready()
		require.Equal(t, []Event{text("a", "1"), text("a", "3")}, s.Take())
		require.Empty(t, s.Take())
	}
	require.Equal(t, []Event{text("b", "2")}, b.Take())
	a.Close()
	a.Close()
	h.Publish(text("a", "4"))
	require.Empty(t, a.Take())
	require.Equal(t, []Event{text("a", "4")}, again.Take())
}

// A reader that does not read holds nobody up and costs a bounded part of memory
// (OA-110).
func TestASlowReaderIsToldWhatItLost(t *testing.T) {
	h := NewHub()
	s := subscribe(t, h, "a")
	for i := range maxEvents + 500 {
		h.Publish(text("a", strconv.Itoa(i)))
	}
	got := s.Take()
	require.Len(t, got, 1+maxEvents)
	require.Equal(t, Event{V: 1, Type: agent.EventDeltaDropped, Session: "a", Run: "01a1", Turn: 1, Data: Data{Dropped: 500}}, got[0])
	require.Equal(t, "500", got[1].Data.Text)

	for range 5 {
		h.Publish(text("a", strings.Repeat("x", maxBytes/2)))
	}
	got = s.Take()
	require.Equal(t, 3, got[0].Data.Dropped, "long ones are fewer")
	require.Len(t, got, 1+2)

	again := subscribe(t, h, "a") // as one hub behind another is told
	for range maxEvents {
		again.Put(got[0])
	}
	again.Put(text("a", "1"))
	require.Equal(t, 3, again.Take()[0].Data.Dropped)
}

func TestALiveEventIsAWireEvent(t *testing.T) {
	e := text("a", "Hello")
	e.Time = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	var w agent.WireEvent
	require.NoError(t, json.Unmarshal(raw, &w))
	again, err := json.Marshal(w)
	require.NoError(t, err)
	require.Equal(t, string(raw), string(again))
	require.Empty(t, w.Cursor)
}

// Thousands of sessions, readers that come and go, and writers that do not wait.
func TestAHubForThousands(t *testing.T) {
	h := NewHub()
	var all sync.WaitGroup
	for i := range 2000 {
		session := fmt.Sprintf("s-%d", i)
		s := subscribe(t, h, session)
		all.Go(func() {
			for range 20 {
				h.Publish(text(session, "x"))
			}
		})
		all.Go(func() {
			for n := 0; n < 20; {
				<-s.Ready()
				n += len(s.Take())
			}
			s.Close()
		})
	}
	all.Wait()
	h.mu.RLock()
	defer h.mu.RUnlock()
	require.Empty(t, h.subs, "nothing is kept of readers that have left")
}
