package loop

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// story is a run to its end: what it wrote down, what was said, and how it ended.
type story struct {
	events   []agent.Event
	messages []agent.Message
	outcome  *agent.Outcome
}

// tell plays a run to its end and says something before a step; a negative step
// never comes.
func tell(t *testing.T, prompt bool, at int, say func(*world)) (s story, steps int) {
	t.Helper()
	return tellOf(t, newWorld(t, prompt), at, say)
}

func tellOf(t *testing.T, w *world, at int, say func(*world)) (s story, steps int) {
	t.Helper()
	for ; w.state.Phase != RunEnded; steps++ {
		require.Less(t, steps, 200, "the run does not end")
		for _, do := range []func(){func() {
			if steps == at {
				say(w)
			}
		}, w.next} {
			before := w.state
			if do(); before.Phase != RunEnded {
				s.events = append(s.events, newEvents(before, w.state)...)
			}
			if w.state.Phase == RunEnded {
				break
			}
		}
	}
	for _, e := range s.events {
		if e.Message != nil {
			s.messages = append(s.messages, *e.Message)
		}
	}
	s.outcome = w.state.End.Outcome
	return s, steps
}

// types are the types of a story's events, except for those of holds and rests.
func (s story) types() (out []agent.EventType) {
	aside := []agent.EventType{agent.EventHoldAdded, agent.EventHoldRemoved, agent.EventRunSuspended, agent.EventRunResumed}
	for _, e := range s.events {
		if !slices.Contains(aside, e.Type) {
			out = append(out, e.Type)
		}
	}
	return out
}

func (s story) count(types ...agent.EventType) (n int) {
	for _, e := range s.events {
		if slices.Contains(types, e.Type) {
			n++
		}
	}
	return n
}

var ends = []agent.EventType{agent.EventRunCompleted, agent.EventRunFailed, agent.EventRunCancelled, agent.EventRunStopped}

// A run that is paused and resumed, at whatever step, says and does what it would
// have done else: the same conversation, of which what stood before the rest is
// the beginning, the same kinds of events and the same end (OA-70, PA-08, PA-29).
// Every turn that starts ends once, and every stretch of the run ends once: suspended, or
// at the run's one end (OA-25). Only the event of a suspension has a suspension (OA-27).
func TestAPauseAtAnyStepChangesNothing(t *testing.T) {
	plain, steps := tell(t, true, -1, nil)
	require.Equal(t, agent.StatusCompleted, plain.outcome.Status)
	require.Equal(t, 2, plain.count(agent.EventRequestOpened), "it asks for an approval and a question")
	laid := 0
	for at := range steps {
		known := 0
		held, _ := tell(t, true, at, func(w *world) {
			if w.state.Phase == RunOpening || w.state.outcomeDecided() {
				return
			}
			known = int(w.state.Log.Seq)
			require.NoError(t, w.step(CommandReceived{Command: agent.PauseCommand{}}))
		})
		require.Equal(t, plain.types(), held.types(), "paused at %d", at)
		require.Equal(t, plain.messages, held.messages, "paused at %d", at)
		require.Equal(t, plain.events[:known], held.events[:known], "what was written down stays")
		require.Equal(t, held.count(agent.EventTurnStarted), held.count(agent.EventTurnEnded))
		require.Equal(t, 1, held.count(ends...))
		require.False(t, stretches(t, held.events), "it ends by itself")
		for _, e := range held.events {
			require.Equal(t, e.Type == agent.EventRunSuspended, e.Suspension != nil, e.Type)
		}
		was, is := *plain.outcome, *held.outcome
		was.Seq, is.Seq, was.Checkpoint, is.Checkpoint = 0, 0, "", ""
		require.Equal(t, was, is)
		laid += held.count(agent.EventHoldAdded)
	}
	require.Greater(t, laid, steps/2, "it was held at most of them")
}

// stretches requires that a run's start and each resume is followed by one suspension or one end,
// before the next resume. A run that is ended while it is suspended has its end after the last
// stretch. It reports whether that is so.
func stretches(t *testing.T, events []agent.Event) (endedAtRest bool) {
	t.Helper()
	open := false
	for i, e := range events {
		end := slices.Contains(ends, e.Type)
		switch {
		case e.Type == agent.EventRunStarted || e.Type == agent.EventRunResumed:
			require.False(t, open, "%s within a stretch", e.Type)
			open = true
		case e.Type == agent.EventRunSuspended || end && open:
			require.True(t, open, "%s outside of a stretch", e.Type)
			open = false
		case end:
			require.Len(t, events, i+1, "%s outside of a stretch", e.Type)
			endedAtRest = true
		}
	}
	require.False(t, open, "the last stretch has no end")
	return endedAtRest
}

// A pause at any step of a run whose answer is checked changes nothing either: each check is made
// once, and each veto is told once.
func TestAPauseDuringChecksChangesNothing(t *testing.T) {
	plain, steps := tellOf(t, newWorldWith(t, true, true), -1, nil)
	require.Equal(t, agent.StatusCompleted, plain.outcome.Status)
	require.Equal(t, 3, plain.count(agent.EventCheckDone))
	for at := range steps {
		held, _ := tellOf(t, newWorldWith(t, true, true), at, func(w *world) {
			if w.state.Phase == RunOpening || w.state.outcomeDecided() {
				return
			}
			require.NoError(t, w.step(CommandReceived{Command: agent.PauseCommand{}}))
		})
		require.Equal(t, plain.types(), held.types(), "paused at %d", at)
		require.Equal(t, plain.messages, held.messages, "paused at %d", at)
		require.Equal(t, plain.outcome.Verify, held.outcome.Verify)
	}
}

// A cancel ends a run at every step, also while it asks, waits or is about to
// (PA-37, PA-40); whatever is said after it changes nothing (PA-36), and nothing
// can be resumed (PA-35, PA-95). The stretch that is cancelled has this one end, and one that was
// suspended before gets no second one (OA-25).
func TestACancelAtAnyStepEndsTheRun(t *testing.T) {
	_, steps := tell(t, true, -1, nil)
	atRest, atWork, graces := 0, 0, 0
	for _, twice := range []bool{true, false} {
		for at := range 2 * steps {
			said := false
			s, _ := tell(t, at%2 == 0, at/2, func(w *world) {
				if w.state.Phase == RunOpening || w.state.outcomeDecided() {
					return
				}
				said = true
				flying := w.state.Turn.inFlight() || w.state.Calls.runningCount() > 0
				require.NoError(t, w.step(CommandReceived{Command: agent.CancelCommand{Reason: "enough"}}))
				if w.state.Phase == RunEnded {
					return
				}
				require.Equal(t, []any{flying, agent.StatusRunning, agent.ReasonCancelling}, []any{w.state.cancelling(), w.state.Status(), w.state.View(w.now).Reason})
				refusals := []agent.Code{agent.CodeClosed}
				if flying {
					refusals, graces = []agent.Code{agent.CodeStale, agent.CodeNotFound}, graces+1
				}
				for _, late := range []agent.Command{agent.ResumeCommand{}, agent.ApproveCommand{Request: "q-1"}, agent.AnswerCommand{Request: "q-2", Text: "Rome"}} {
					require.Contains(t, refusals, agent.CodeOf(w.step(CommandReceived{Command: late})))
				}
				if twice {
					require.NoError(t, w.step(CommandReceived{Command: agent.CancelCommand{Reason: "again"}}))
					require.True(t, w.state.outcomeDecided())
				}
			})
			if !said {
				continue
			}
			require.Equal(t, s.outcome.Tree.Usage, s.outcome.Usage, "what came of the call that was dropped counts in both")
			require.Equal(t, agent.StatusCancelled, s.outcome.Status, "cancelled at %d", at)
			require.Equal(t, "enough", s.outcome.Reason)
			require.Equal(t, 1, s.count(ends...))
			require.Equal(t, agent.EventRunCancelled, s.events[len(s.events)-1].Type, "nothing comes after it")
			if stretches(t, s.events) {
				atRest++
			} else {
				atWork++
			}
		}
	}
	require.Positive(t, atRest, "it was cancelled while suspended")
	require.Positive(t, atWork, "it was cancelled while it worked")
	require.Positive(t, graces, "it was cancelled with something in flight")
}

// At every step, paused or not, the status says whether a resume would be taken, and with
// which code it would be refused (HX-12, HX-29).
func TestTheStatusSaysWhetherAResumeIsTaken(t *testing.T) {
	_, steps := tell(t, true, -1, nil)
	seen := map[agent.Code]int{}
	look := func(w *world) {
		_, _, err := Step(w.state, Moment{At: w.now, Revision: Revision}, CommandReceived{Command: agent.ResumeCommand{}})
		why := w.state.View(w.now).Resumable(w.now)
		if w.state.outcomeDecided() && w.state.Phase != RunEnded { // it still runs, and ends
			require.ErrorIs(t, err, agent.CodeClosed)
			require.ErrorIs(t, why, agent.CodeNotSuspended)
			return
		}
		require.Equal(t, agent.CodeOf(err), agent.CodeOf(why), "%v, but the status says %v", err, why)
		seen[agent.CodeOf(err)]++
	}
	for _, paused := range []bool{false, true} {
		for at := range steps {
			tell(t, true, at, func(w *world) {
				if look(w); paused && w.state.Phase != RunOpening && !w.state.outcomeDecided() {
					require.NoError(t, w.step(CommandReceived{Command: agent.PauseCommand{}}))
					look(w)
				}
			})
		}
	}
	for _, code := range []agent.Code{"", agent.CodeNotSuspended, agent.CodeNeedsAnswer} {
		require.Positive(t, seen[code], "%q", code)
	}
}
