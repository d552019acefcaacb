package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Hooks is the part that keeps where a run is in the checks of its hooks (docs/hooks.md). It is zero
// unless the Spec names hooks.
type Hooks struct {
	// Task is the index of the check of the run's task that is made next.
	Task int `json:"task,omitempty"`
	// Calls is set while the turn's calls wait for their checks.
	Calls *HookedCalls `json:"calls,omitempty"`
	// Vetoes counts vetoes of calls in a row. VetoesBy counts them by the check's index, for judges
	// whose skip has attempts.
	Vetoes   int   `json:"vetoes,omitempty"`
	VetoesBy []int `json:"vetoes_by,omitempty"`
	// Done means that a judge of a stalled run has accepted its work: the run completes when the turn's
	// calls have their results.
	Done bool `json:"done,omitempty"`
	// Due means that the last turn waits for its hooks, and Next is the index of the one that is called
	// next.
	Due  bool `json:"due,omitempty"`
	Next int  `json:"next,omitempty"`
	// TextCalls means that the model wrote the turn's calls as text.
	TextCalls bool `json:"text_calls,omitempty"`
	// NextTurn is what a hook says about the next turn.
	NextTurn *agent.NextTurn `json:"next_turn,omitempty"`
	// Note goes to the model behind the results of the turn's calls. NoteBytes is what it counts in the
	// log.
	Note      string `json:"note,omitempty"`
	NoteBytes int    `json:"note_bytes,omitempty"`
}

// HookedCalls are the turn's calls while they wait for their checks.
type HookedCalls struct {
	// Next is the index of the check that is made next.
	Next int `json:"next,omitempty"`
	// Rulings has the number of the rule that decides about each call, as [step.applyRules] returns it.
	Rulings []int `json:"rulings"`
	// Repeats means that each of them repeats a call that was made, in as many replies in a row as
	// repeatWarn or more. Stalled means that one of them comes in the repeatWarn-th reply in a row.
	Repeats bool `json:"repeats,omitempty"`
	Stalled bool `json:"stalled,omitempty"`
	// Judge is the index of the judge of a stalled run that is asked next.
	Judge int `json:"judge,omitempty"`
	// Skip has the bit of each check that a check before it has skipped.
	Skip int `json:"skip,omitempty"`
}

// maxHookNote bounds a message of a hook to the model, in JSON bytes.
const maxHookNote = 16 << 10

func (h Hooks) clone() Hooks {
	h.Calls, h.VetoesBy = copied(h.Calls), slices.Clone(h.VetoesBy)
	return h
}

// size returns how much of the space of what waits the part takes.
func (h Hooks) size() (n int) {
	if h.Calls != nil {
		n = checkFrame + 8*len(h.Calls.Rulings)
	}
	if h.NextTurn != nil {
		n += verbFrame + textsJSONLen(h.NextTurn.Tools) + jsonLen(h.NextTurn.Model)
	}
	if h.Note != "" { // at its longest: the runtime's words in it may change in a later build
		n += maxHookNote
	}
	return n
}

// taskPassed counts an acceptance of the run's task.
func (h *Hooks) taskPassed() { h.Task++ }

// guard lets the turn's calls wait for their checks.
func (h *Hooks) guard(rulings []int, repeats, stalled bool) {
	h.Calls = &HookedCalls{Rulings: rulings, Repeats: repeats, Stalled: stalled}
}

// passed counts a check that has accepted or was skipped, and reports whether it was the last of n. Its
// vetoes in a row are over.
func (h *Hooks) passed(n int) (all bool) {
	if h.Calls.Next < len(h.VetoesBy) {
		h.VetoesBy[h.Calls.Next] = 0
	}
	h.Calls.Next++
	return h.Calls.Next >= n
}

// skipLater skips checks of the round, by their bits.
func (h *Hooks) skipLater(bits int) { h.Calls.Skip |= bits }

// judged counts a judge of a stalled run. done means that the run's work is done.
func (h *Hooks) judged(done bool) {
	h.Calls.Judge++
	h.Done = done
}

// takeDone reports whether a judge has ended a stalled run, and forgets it.
func (h *Hooks) takeDone() (was bool) {
	was, h.Done = h.Done, false
	return was
}

// vetoedBy counts a veto of a judge whose skip has attempts.
func (h *Hooks) vetoedBy(index int) {
	h.VetoesBy = append(h.VetoesBy, make([]int, max(0, index+1-len(h.VetoesBy)))...)
	h.VetoesBy[index]++
}

// release ends the wait of the turn's calls, and returns the numbers of their rules.
func (h *Hooks) release() (rulings []int) {
	if h.Calls != nil {
		rulings, h.Calls = h.Calls.Rulings, nil
	}
	return rulings
}

// vetoed counts a veto of calls, and reports whether it was one too many.
func (h *Hooks) vetoed(most int) (capped bool) {
	h.Vetoes++
	return most > 0 && h.Vetoes >= most
}

func (h *Hooks) resetVetoes() { h.Vetoes = 0 }

// setNote sets the message behind the turn's results; takeNote takes it.
func (h *Hooks) setNote(text string, bytes int) {
	h.Note = fit(text, maxHookNote)
	h.NoteBytes = min(bytes, len(h.Note))
}

func (h *Hooks) takeNote() (text string, bytes int) {
	text, bytes, h.Note, h.NoteBytes = h.Note, h.NoteBytes, "", 0
	return text, bytes
}

// startTurn begins a turn; due says whether hooks look at it when it is over.
func (h *Hooks) startTurn(due bool) { h.Due, h.Next, h.TextCalls = due, 0, false }

// noteTextCalls notes that the model wrote the turn's calls as text.
func (h *Hooks) noteTextCalls() { h.TextCalls = h.Due }

// called counts a hook, and ends the turn's wait after the last of n.
func (h *Hooks) called(n int, next *agent.NextTurn) {
	h.Next++
	if h.Due = h.Next < n; next != nil {
		h.NextTurn = next
	}
}

// turnOver forgets what the next turn would have been: the turn after it begins as usual.
func (h *Hooks) turnOver() { h.NextTurn = nil }

// checksCalls reports whether calls are checked before they are made.
func (s *State) checksCalls(r repeats) bool {
	checks := len(s.Spec.ChecksAt(agent.PointBeforeCalls)) > 0 || r.stalled && len(s.Spec.ChecksAt(agent.PointStalled)) > 0
	return checks && !s.isFlow()
}

// checkOrAsk lets the turn's calls wait for their checks, or asks people about them. Nobody is asked about
// a call that a check vetoes.
func (s *step) checkOrAsk(r wire.Reply, rulings []agent.Rule, numbers []int, seen repeats) {
	if s.checksCalls(seen) && s.Calls.count(CallPending) > 0 {
		s.Hooks.guard(numbers, s.onlyRepeats(), seen.stalled)
		return
	}
	s.openApprovals(r, rulings)
}

// callWaits reports whether a call waits for the checks of the turn's calls.
func (s *State) callWaits(c Call) bool { return s.Hooks.Calls != nil && !s.Checks.has(c.ID) }

// mayCheckCalls reports whether the next check of the turn's calls may be made. Under any hold it is
// not: a check that could not be made holds the run.
func (s *step) mayCheckCalls() bool {
	return s.awaitsCalls() && s.Hooks.Calls != nil && s.Checks.Current == nil && s.End.Stopping == nil && s.End.Grace == nil &&
		!s.Holds.any() && !s.hasReason() && !s.historyForbidsCalls()
}

// checkCalls makes the next check of the turn's calls. If none of these waits any more, none is made.
func (s *step) checkCalls() {
	if s.Calls.count(CallPending) == 0 {
		s.Hooks.release()
		return
	}
	if s.askIfDone() {
		return
	}
	checks, next := s.Spec.ChecksAt(agent.PointBeforeCalls), s.Hooks.Calls.Next
	if next >= len(checks) { // only judges of a stalled run look
		s.releaseCalls()
		return
	}
	k := checks[next]
	if why := s.skipsCalls(k); why != "" {
		s.recordSkipped(agent.PointBeforeCalls, k, why)
		s.passCalls()
		return
	}
	if what := s.lacksForCheck(k); what != "" {
		s.Hooks.release()
		s.skipPending(fmt.Sprintf("%s is used up, and the check %s has to look at the calls first", what, k.Name))
		return
	}
	if k.Kind() == agent.CheckByAgent && len(s.proposedCalls()) > maxChecked {
		s.vetoUnseen(agent.PointBeforeCalls, next, "The calls are too long to be looked at. Ask for fewer at once, or for shorter ones.")
		return
	}
	s.makeCheck(agent.PointBeforeCalls, next)
}

// lacksForCheck returns which limit leaves nothing for a check that calls a model; empty if none does. The
// calls are not made then: the rules about limits come when the turn is over.
func (s *State) lacksForCheck(k agent.Check) string {
	if kind := k.Kind(); kind != agent.CheckByJudge && kind != agent.CheckByAgent {
		return ""
	}
	left := s.budgetView()
	for _, r := range checkLimits {
		if left.remaining(r) <= 0 {
			return "the limit of " + r.String()
		}
	}
	return ""
}

// proposedCalls returns the turn's calls as an agent sees them that checks them.
func (s *State) proposedCalls() string {
	var lines []string
	for _, c := range s.Calls.List {
		if c.State == CallPending && !s.Checks.has(c.ID) {
			tool, _ := s.Spec.Tool(c.Tool)
			lines = append(lines, callName(c)+" "+string(redactedArguments(c.Arguments, tool)))
		}
	}
	return strings.Join(lines, "\n")
}

// takeVerdictOnCalls does what a verdict on the turn's calls asks for.
func (s *step) takeVerdictOnCalls(k agent.Check, at CurrentCheck) {
	switch v := at.Verdict; {
	case s.End.Stopping != nil: // the stop has skipped the calls
		s.Hooks.release()
	case v == nil: // it was cut off, or failed and the run is held: the rules make it again
	case v.Decision == agent.DecisionVeto:
		s.vetoedCalls(k, at)
	default:
		s.Hooks.skipLater(skippedBy(*v, s.Spec.ChecksAt(at.Point)))
		s.passCalls()
	}
}

// passCalls goes on to the next check of the turn's calls, or lets them begin.
func (s *step) passCalls() {
	if s.Hooks.passed(len(s.Spec.ChecksAt(agent.PointBeforeCalls))) {
		s.Hooks.resetVetoes()
		s.releaseCalls()
	}
}

// releaseCalls lets the turn's calls begin, or asks people about them.
func (s *step) releaseCalls() {
	rulings := s.Hooks.release()
	for i, c := range s.Calls.List {
		if c.State == CallPending && i < len(rulings) {
			tool, _ := s.Spec.Tool(c.Tool)
			s.openApproval(i, wire.Reply{}, s.ruleOf(rulings[i], tool))
		}
	}
}

// vetoedCalls does what on_veto says, or ends the run after too many vetoes in a row.
func (s *step) vetoedCalls(k agent.Check, at CurrentCheck) {
	h, v := s.Spec.Hooks.BeforeCalls, *at.Verdict
	s.Turn.vetoRepeat()
	if k.Skip.Attempts > 0 {
		s.Hooks.vetoedBy(at.Index)
	} else if s.Hooks.vetoed(h.Max) {
		s.fail(agent.Errorf(agent.CodeVerifyCapped, "the checks have vetoed the model's calls %d times in a row, as often as hooks.before_calls.max allows; the last one was %s: %s", s.Hooks.Vetoes, k.Name, quote(firstOf(v.Reasoning, v.NextStep, k.FeedbackFallback))))
		return
	}
	text := vetoText(k, v)
	if h.OnVeto == agent.VetoRetain {
		s.Hooks.setNote("The check "+k.Name+" does not agree with your last calls, which were made.\n\n"+text, feedbackSize(k, at))
		s.releaseCalls()
		return
	}
	s.Hooks.release()
	first := slices.IndexFunc(s.Calls.List, func(c Call) bool { return c.State == CallPending })
	for i, c := range s.Calls.List {
		switch {
		case i == first:
			s.setResultSized(i, agent.CallRejected, "Not executed: the check "+k.Name+" has vetoed the calls of this reply.\n\n"+text, feedbackSize(k, at))
		case c.State == CallPending:
			s.setResult(i, agent.CallRejected, "Not executed: the check "+k.Name+" has vetoed the calls of this reply. The first result says why.")
		}
	}
}
