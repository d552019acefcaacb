package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
)

// hostile is a stage of a server with its defaults.
func hostile(t *testing.T) *stage {
	t.Helper()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	return s
}

// ends waits for a run's end and checks that nothing is told twice or is missing.
func (s *stage) ends(t *testing.T, run *client.Run, want agent.Status) (*agent.Outcome, map[agent.EventType]int) {
	t.Helper()
	out := s.rest(t, run)
	require.Equal(t, want, out.Status, "%s: %+v", run.Session, out.Error)
	_, count := s.intact(t, run.Session)
	require.Equal(t, count[agent.EventCallRequested], count[agent.EventCallDone]+count[agent.EventCallUnknown], "every call has a result")
	return out, count
}

// stops checks that a run answers and takes a stop, and returns how it ended.
func (s *stage) stops(t *testing.T, run *client.Run) (*agent.Outcome, map[agent.EventType]int) {
	t.Helper()
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.False(t, st.Status.Ended(), st.Status)
	require.Equal(t, agent.EffectAccepted, s.say(t, run, agent.StopCommand{Reason: "enough"}).Effect)
	return s.ends(t, run, agent.StatusStopped)
}

// busy is a model that works on, call after call, until it is asked to sum up. Each
// answer waits for a beat.
func busy(beat <-chan struct{}) modelFunc {
	return func(ctx context.Context, req *model.Request) *model.Reply {
		select {
		case <-beat:
		case <-ctx.Done():
			return nil
		}
		if len(req.Tools) == 0 {
			return saysText("that was all")
		}
		return asksFor(model.CallPart("", "note", fmt.Sprintf(`{"text":"%d"}`, len(req.Messages))))
	}
}

// beating is a beat that does not wait.
func beating() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

var noting = agent.Definition{Name: "tester", Tools: []string{"note"}, Limits: agent.Limits{Turns: 100_000}}

// flood says to a run what speaker and number ask for, by a signal of the raw client:
// of five that every speaker says a run can take one.
func (s *stage) flood(ctx context.Context, session string, speaker, n int) error {
	id := fmt.Sprintf("%d-%d", speaker, n)
	name, said := "send", any(map[string]any{"id": id, "text": id})
	switch n % 5 {
	case 1:
		name, said = "emit", map[string]any{"topic": "nobody.waits", "payload": map[string]any{"n": n}}
	case 2:
		name, said = "interupt", map[string]any{"reason": "a slip"}
	case 3:
		said = map[string]any{"id": id, strings.Repeat("txt", 100): "a field that nobody knows"}
	case 4:
		said = "no object"
	}
	return s.temporal.SignalWorkflow(ctx, session, "", name, said)
}

// speak lets speakers say something at once, each one thing after the other.
func speak(t *testing.T, speakers, from, to int, say func(ctx context.Context, speaker, n int) error) {
	t.Helper()
	var all sync.WaitGroup
	for speaker := range speakers {
		all.Go(func() {
			for n := from; n < to; n++ {
				if err := say(t.Context(), speaker, n); err != nil {
					t.Errorf("speaker %d, %d: %v", speaker, n, err)
					return
				}
			}
		})
	}
	all.Wait()
	require.False(t, t.Failed())
}

// inTurn counts the messages of speakers in a transcript, each of which is there once
// and behind those that its speaker has said before.
func (s *stage) inTurn(t *testing.T, session string) (said int) {
	t.Helper()
	messages, err := s.Transcript(t.Context(), session)
	require.NoError(t, err)
	last := map[int]int{}
	for _, m := range messages {
		var speaker, n int
		if _, err := fmt.Sscanf(m.Text(), "%d-%d", &speaker, &n); m.Role != agent.RoleUser || err != nil {
			continue
		}
		require.Greater(t, n+1, last[speaker], "speaker %d", speaker)
		last[speaker] = n + 1
		said++
	}
	return said
}

// As many signals as the server takes for one execution, to a run in the middle of a
// turn, most of them while no worker is there: the next worker takes them all in one
// task. Each is said once or refused and told; what comes behind them has a code; the
// run answers, and when its turn is over it goes on in a new execution and is spoken to again.
//
// It has the server to itself: beside others, a signal is waited for longer than it may take.
func TestHostileSignals(t *testing.T) {
	testenv.Long(t)
	const speakers, each, seen, sides = 8, 1250, 50, 100
	s, notes, beat := hostile(t), &tally{calls: map[string]int{}}, make(chan struct{})
	w := s.staff(t, busy(beat), []tool.Tool{notes.tool("note")}, noting)
	run := s.begin(t, "go", nil)
	require.Eventually(t, func() bool { // what comes before the first turn is in its request
		st, err := run.Status(t.Context())
		return err == nil && st.Turn == 1
	}, patience, 20*time.Millisecond)
	flood := func(ctx context.Context, speaker, n int) error { return s.flood(ctx, run.Session, speaker, n) }
	speak(t, speakers, 0, seen, flood)
	w.Stop()
	speak(t, speakers, seen, each, flood)
	require.ErrorIs(t, signals.Signal(t.Context(), s.temporal, run.Session, agent.SendCommand{Text: "one more"}), agent.CodeQueueFull)

	told := make(chan []error)
	go func() {
		_, lost := s.race(t, sides, func(ctx context.Context, _ int) error {
			_, err := signals.Update(ctx, s.temporal, run.Session, agent.SendCommand{Text: "and more"})
			return err
		})
		told <- lost
	}()
	s.staff(t, busy(beat), []tool.Tool{notes.tool("note")}, noting)
	lost := <-told
	require.Len(t, lost, sides)
	for _, err := range lost {
		require.ErrorIs(t, err, agent.CodeTooLarge)
	}
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusRunning, st.Status)
	require.Len(t, st.Refused, 8)
	s.sound(t, run)
	first := s.current(t, run.Session)
	close(beat)
	require.Eventually(t, func() bool { return s.current(t, run.Session) != first }, patience, 20*time.Millisecond)
	require.NoError(t, s.flood(t.Context(), run.Session, speakers, 0))
	_, count := s.stops(t, run)
	require.Equal(t, 100+1, s.inTurn(t, run.Session))
	require.Equal(t, speakers*each-100, count[agent.EventVerbRefused])
	notes.once(t, notes.made())
}

// Signals to a run that works, many times what makes its history long: it goes on in
// further executions in time.
func TestHostileSignalsAtWork(t *testing.T) {
	t.Parallel()
	const speakers, each = 8, 75
	s, notes := early(t, 200), &tally{calls: map[string]int{}}
	s.staff(t, busy(beating()), []tool.Tool{notes.tool("note")}, noting)
	run := s.begin(t, "go", nil)
	speak(t, speakers, 0, each, func(ctx context.Context, speaker, n int) error { return s.flood(ctx, run.Session, speaker, n) })
	_, count := s.stops(t, run)
	require.Equal(t, speakers*each, s.inTurn(t, run.Session)+count[agent.EventVerbRefused], "each is said, or refused and told")
	require.GreaterOrEqual(t, count[agent.EventVerbRefused], speakers*each*4/5)
	notes.once(t, notes.made())
	require.Greater(t, len(s.executions(t, run)), 1)
}

// ask lets some ask how a run stands, again and again, until the test wants to know
// how many answers came. It works on all the time.
func (s *stage) ask(t *testing.T, run *client.Run, some int) (answers func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var n atomic.Int64
	for range some {
		all.Go(func() {
			for {
				st, err := run.Status(ctx)
				switch {
				case ctx.Err() != nil:
					return
				case errors.Is(err, agent.CodeTimeout): // the machine is busy
				case err != nil || st.Status != agent.StatusRunning:
					t.Errorf("the run answers: %v, %v", st, err)
					return
				default:
					n.Add(1)
				}
			}
		})
	}
	stop := func() int64 {
		cancel()
		all.Wait()
		return n.Load()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// 1,000 sends at once from 50 sides, half by update, half by signal: each is taken
// once or refused with a code, while others ask how the run stands. What a busy server does
// not answer in time is said again, with the same id; then a refusal may be there twice.
func TestHostileSends(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const speakers, each = 50, 20
	s, notes, beat := hostile(t), &tally{calls: map[string]int{}}, make(chan struct{}, 1)
	s.staff(t, busy(beat), []tool.Tool{notes.tool("note")}, noting)
	run := s.begin(t, "go", nil)
	var mu sync.Mutex
	taken, refused := map[string]bool{}, map[agent.Code]int{}
	var sent, repeated atomic.Int64
	answers := s.ask(t, run, 4)
	speak(t, speakers, 0, each, func(ctx context.Context, speaker, n int) error {
		id := fmt.Sprintf("%d-%d", speaker, n)
		order := agent.SendCommand{CommandHeader: agent.CommandHeader{ID: id}, Text: id}
		if sent.Add(1)%50 == 0 { // the run gets on a little
			select {
			case beat <- struct{}{}:
			default:
			}
		}
		say := func() error {
			if speaker%2 == 1 {
				return signals.Signal(ctx, s.temporal, run.Session, order)
			}
			_, err := signals.Update(ctx, s.temporal, run.Session, order)
			return err
		}
		err := say()
		for ; errors.Is(err, agent.CodeTimeout) && ctx.Err() == nil; err = say() {
			repeated.Add(1)
		}
		if speaker%2 == 1 {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if taken[id] = err == nil; err != nil {
			refused[agent.CodeOf(err)]++
		}
		return nil
	})
	require.Positive(t, answers())
	for code := range refused {
		require.Contains(t, []agent.Code{agent.CodeTooLarge, agent.CodeQueueFull}, code)
	}
	close(beat)
	_, count := s.stops(t, run)
	signalled := s.inTurn(t, run.Session) - s.took(t, run.Session, taken)
	require.GreaterOrEqual(t, signalled+count[agent.EventVerbRefused], speakers/2*each)
	require.LessOrEqual(t, signalled+count[agent.EventVerbRefused], speakers/2*each+int(repeated.Load()))
	notes.once(t, notes.made())
}

// took checks that of messages those are in a transcript that were taken, and no
// others, and counts them.
func (s *stage) took(t *testing.T, session string, taken map[string]bool) (n int) {
	t.Helper()
	messages, err := s.Transcript(t.Context(), session)
	require.NoError(t, err)
	there := map[string]bool{}
	for _, m := range messages {
		there[m.ID] = true
	}
	for id, ok := range taken {
		require.Equal(t, ok, there[id], "%s was taken: %v", id, ok)
		if ok {
			n++
		}
	}
	return n
}
