package loop

import (
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// This file passes over checks of calls, and lets a judge end a run that repeats itself.

// repeats says whether a reply makes the same call again.
type repeats struct {
	// tool is the one that was called as often in a row as a run may; empty for none.
	tool string
	// stalled means that a call comes in the repeatWarn-th reply in a row.
	stalled bool
}

// note notes that a reply's i-th call repeats as a count says. Equal calls of one reply do not stall a run:
// the model would choose in its first turn when a judge is asked.
func (r *repeats) note(i int, tool string, row Repeat, times int) {
	r.stalled = r.stalled || i == 0 && row.Replies == repeatWarn
	if times >= repeatLimit {
		r.tool = tool
	}
}

// onlyRepeats reports whether each call that waits repeats one that the run has made in the replies just
// before: with this reply, repeatWarn in a row or more. A check has let each of these pass.
func (s *State) onlyRepeats() bool {
	r, calls := s.Turn.Repeat, s.Calls.List
	others := calls[:len(calls)-r.repeated(len(calls))]
	return r.Made >= repeatWarn-1 && !slices.ContainsFunc(others, func(c Call) bool { return c.State == CallPending })
}

// skipsCalls says why the next check of the turn's calls is passed over; empty if it is not.
func (s *State) skipsCalls(k agent.Check) agent.SkipReason {
	at := s.Hooks.Calls
	switch {
	case at.Skip&(1<<at.Next) != 0:
		return agent.SkippedByCheck
	case k.Skip.Stalled && at.Repeats:
		return agent.SkippedStalled
	case k.Skip.Attempts > 0 && at.Next < len(s.Hooks.VetoesBy) && s.Hooks.VetoesBy[at.Next] >= k.Skip.Attempts:
		return agent.SkippedAttempts
	case k.Skip.LastTurns > 0 && s.turnsLeft() < int64(k.Skip.LastTurns):
		return agent.SkippedLastTurns
	}
	return ""
}

// turnsLeft returns how many turns the agent's own limits allow after this one. A start may lower a limit,
// but whoever starts a run makes no turn the last one: then nothing would be judged. A parent may grant more
// than it has, and sub-agents may give back what they have, so neither makes a turn the last.
func (s *State) turnsLeft() int64 {
	left, own := int64(unlimited), s.Budget
	own.setLimits(s.Spec.Limits)
	if may := own.allowance()[wire.ResourceTurns]; may != wire.Unlimited {
		left = may - s.budgetView().used(wire.ResourceTurns)
	}
	if most := own.Limits.OwnTurns; most > 0 {
		left = min(left, int64(most-s.ownTurns()+own.OwnTurnsAtRenewal))
	}
	return left
}

// maySkip returns which checks a verdict skips, of those that its check may skip.
func maySkip(k agent.Check, v *agent.Verdict) (names []string) {
	for _, name := range k.MaySkip {
		if v.Decision == agent.DecisionAccept && slices.Contains(v.Skip, name) {
			names = append(names, name)
		}
	}
	return names
}

// skippedBy returns the bits of the checks that a verdict skips.
func skippedBy(v agent.Verdict, checks []agent.Check) (bits int) {
	for i, k := range checks {
		if slices.Contains(v.Skip, k.Name) {
			bits |= 1 << i
		}
	}
	return bits
}

// recordSkipped records that a check is not made.
func (s *step) recordSkipped(p agent.CheckPoint, k agent.Check, why agent.SkipReason) {
	id := checkID(s.Turn.N, s.Checks.next())
	s.record(agent.Event{Type: agent.EventCheckDone, Check: &agent.CheckUpdate{Name: k.Name, Point: p, Kind: k.Kind(), Call: id, Tool: k.ToolName(), Skipped: true, Reason: why}})
}

// askIfDone asks the next judge of a stalled run whether its work is done, before the call is made again.
// It reports false if no judge is left to ask.
func (s *step) askIfDone() bool {
	judges, next := s.Spec.ChecksAt(agent.PointStalled), s.Hooks.Calls.Judge
	if !s.Hooks.Calls.Stalled || next >= len(judges) {
		return false
	}
	k := judges[next]
	why := s.skipsAnswer(agent.PointStalled, k)
	if why == "" && s.lacksForCheck(k) != "" {
		why = agent.SkippedLimit // the calls are made, and the limit ends the run after the turn
	}
	if why != "" {
		s.recordSkipped(agent.PointStalled, k, why)
		s.Hooks.judged(false)
		return true
	}
	s.makeCheck(agent.PointStalled, next)
	return true
}

// takeVerdictOnStall ends a stalled run whose work a judge accepts: its calls are not made. After a veto
// the next judge is asked, or the calls are made.
func (s *step) takeVerdictOnStall(k agent.Check, at CurrentCheck) {
	switch v := at.Verdict; {
	case s.End.Stopping != nil: // the stop has skipped the calls
		s.Hooks.release()
	case v == nil: // it was cut off, or failed and the run is held: the rules ask again
	default:
		done := v.Decision == agent.DecisionAccept
		s.Checks.judged()
		s.countAsked(k)
		s.Hooks.judged(done)
		if done {
			s.Hooks.release()
			s.skipPending(fmt.Sprintf("the check %s has found that the work is done", k.Name))
		}
	}
}
