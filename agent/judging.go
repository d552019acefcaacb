package agent

import (
	"fmt"
	"slices"
)

// Skip says when the judge of hooks.before_calls is passed over: then the calls are made without it. The
// zero value never does.
type Skip struct {
	// Stalled skips a call that two replies in a row or more have made just before, if the reply has no
	// other. A call that a check has vetoed does not count. The model reads that it repeats itself.
	Stalled bool `json:"stalled,omitempty"`
	// LastTurns skips the calls of the last turns that the agent's limits of turns allow: a model could not
	// do better after a veto. 1 is the last turn alone. An adaptive limit counts with its max. A limit that
	// a start lowers makes no turn the last.
	LastTurns int `json:"last_turns,omitempty"`
	// Attempts is after how many vetoes of this judge in a row the next calls are made without it. Its
	// vetoes don't count to hooks.before_calls.max then. Zero means that they do.
	Attempts int `json:"attempts,omitempty"`
}

// Cadence says which answers the judge of verify looks at. All that is set has to hold. An answer that
// it does not look at passes it. The zero value means each answer.
type Cadence struct {
	// Every n looks at answers in the turns n, 2n, 3n and so on of the run. Zero means each turn. A
	// daemon's turns count from what woke it.
	Every int `json:"every,omitempty"`
	// AfterTurns looks at answers only after that many turns.
	AfterTurns int `json:"after_turns,omitempty"`
	// MaxInvocations is how many verdicts the judge gives in a run, or in a daemon's task. Zero means
	// any number.
	MaxInvocations int `json:"max_invocations,omitempty"`
	// When says what the judge looks at; empty means always.
	When CadenceWhen `json:"when,omitempty"`
}

// CadenceWhen says when the judge of verify is asked.
type CadenceWhen string

// When it is. The zero value means always.
const (
	CadenceAlways CadenceWhen = "always" // about answers
	// CadenceStalled asks it about no answer, but when the model makes the same call in the third reply
	// in a row, before that is made. If the judge accepts, the run completes. Then each other judge looks
	// at the answer, whatever its Every and AfterTurns say.
	CadenceStalled CadenceWhen = "stalled"
)

// SkipReason is the key that lets a check be skipped.
type SkipReason string

// The reasons.
const (
	SkippedStalled        SkipReason = "stalled"         // [Skip.Stalled]
	SkippedLastTurns      SkipReason = "last_turns"      // [Skip.LastTurns]
	SkippedAttempts       SkipReason = "attempts"        // [Skip.Attempts]
	SkippedEvery          SkipReason = "every"           // [Cadence.Every]
	SkippedAfterTurns     SkipReason = "after_turns"     // [Cadence.AfterTurns]
	SkippedMaxInvocations SkipReason = "max_invocations" // [Cadence.MaxInvocations]
	SkippedWhen           SkipReason = "when"            // [Cadence.When]
	SkippedByCheck        SkipReason = "check"           // [Verdict.Skip]
	SkippedLimit          SkipReason = "limit"           // a limit is used up, and a stalled run is judged by a model
)

// maxJudging bounds the numbers of a cadence and of skip.
const maxJudging = 1000

// checkJudging refuses a skip or a cadence that a check can't have, with [CodeInvalidInput].
func (c Check) checkJudging(p CheckPoint, path string) error {
	fault := func(field, text string) error {
		return Errorf(CodeInvalidInput, "%s%s: %s", path, field, text).WithPath(path + field)
	}
	judge := c.Kind() == CheckByJudge
	switch {
	case c.Skip != (Skip{}) && (p != PointBeforeCalls || !judge):
		return fault(".skip", "only a judge of hooks.before_calls is skipped; a judge of verify has cadence")
	case c.Cadence != (Cadence{}) && (p != PointVerify || !judge):
		return fault(".cadence", "only a judge of verify has a cadence; a judge of hooks.before_calls has skip")
	case !slices.Contains([]CadenceWhen{"", CadenceAlways, CadenceStalled}, c.Cadence.When):
		return fault(".cadence.when", fmt.Sprintf("must be always or stalled, not %q", c.Cadence.When))
	case c.Cadence.When == CadenceStalled && c.Max != 0:
		return fault(".max", "a judge of a stalled run vetoes no answer; leave max out")
	case c.Cadence.When == CadenceStalled && c.OnError == CheckErrorAccept:
		return fault(".on_error", "accept would complete a run that nobody has judged; it is veto or hold")
	}
	if len(c.MaySkip) > 0 && (c.Kind() != CheckByTool || p != PointVerify && p != PointBeforeCalls) {
		return fault(".may_skip", "only a tool of verify or hooks.before_calls may skip checks; a judge has cadence in verify, and skip in hooks.before_calls")
	}
	for _, f := range []struct {
		field string
		n     int
	}{
		{".skip.last_turns", c.Skip.LastTurns}, {".skip.attempts", c.Skip.Attempts},
		{".cadence.every", c.Cadence.Every}, {".cadence.after_turns", c.Cadence.AfterTurns}, {".cadence.max_invocations", c.Cadence.MaxInvocations},
	} {
		if f.n < 0 || f.n > maxJudging {
			return fault(f.field, fmt.Sprintf("must be a number up to %d, or left out, not %d", maxJudging, f.n))
		}
	}
	return nil
}

// checkMaySkip refuses a tool that may skip what is not checked after it, with [CodeInvalidInput].
func (p CheckPoint) checkMaySkip(checks []Check) error {
	for i, c := range checks {
		if len(c.MaySkip) > maxChecks {
			return Errorf(CodeInvalidInput, "%s: may_skip has %d names; at most %d checks are made", p.Path(i), len(c.MaySkip), maxChecks).WithPath(p.Path(i) + ".may_skip")
		}
		for _, name := range c.MaySkip {
			if !slices.ContainsFunc(checks[i+1:], func(o Check) bool { return o.Name == name }) {
				return Errorf(CodeInvalidInput, "%s: may_skip names %q, which is no check after it", p.Path(i), name).WithPath(p.Path(i) + ".may_skip")
			}
		}
	}
	return nil
}

// checkStalledOutput refuses a judge that ends a stalled run which has to have an output.
func (d Definition) checkStalledOutput() error {
	if len(d.Output) > 0 && len(d.ChecksAt(PointStalled)) > 0 {
		return Errorf(CodeInvalidInput, "agent %s: verify: a run that a judge ends because it repeats itself has no output; leave output or cadence.when out", d.Name).WithPath("verify")
	}
	return nil
}
