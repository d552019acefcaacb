package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Parent is the part of a run below another: what the parent said of it at its birth, and
// when it looks whether the parent still lives. It is zero for a root.
type Parent struct {
	// Start is what the parent said of this run; nil for a root.
	Start *wire.ChildStart `json:"start,omitempty"`
	// ForbiddenTools are tools that the run may not use though its agent has them, and Inherited
	// the rules that hold for its sub-agents too.
	ForbiddenTools []string     `json:"forbidden_tools,omitempty"`
	InheritedRules []agent.Rule `json:"inherited_rules,omitempty"`
	// LastReport is what the parent was told last of the run's suspension; nil if it knows the run
	// as one that goes on.
	LastReport *LastReport `json:"last_report,omitempty"`
	// CheckAt is when a run that rests looks for its parent again; Leasing means that it
	// is looking.
	CheckAt  time.Time `json:"check_at,omitzero"`
	Checking bool      `json:"checking,omitempty"`
}

// LastReport is what of a suspension is worth another report if it changes.
type LastReport struct {
	Suspension string               `json:"suspension"`
	Kind       agent.SuspensionKind `json:"kind"`
	Owner      agent.Owner          `json:"owner"`
	Open       int                  `json:"open,omitempty"` // requests
}

// reasonParent is why a run is cancelled whose parent has ended.
const reasonParent = "parent_ended"

// The look at the parent of a run that rests is repeated ever more seldom: what rests
// costs nothing, and looks before it does anything else. So is the look after children
// that may have gone without a word, for which this run may be waiting.
const (
	parentCheckFirst = time.Minute
	parentCheckMax   = 24 * time.Hour
	lookMost         = time.Hour
)

func (p *Parent) start(b *wire.ChildStart) { p.Start = b }

// setBounds remembers which tools are beyond the run, and which rules its sub-agents inherit.
func (p *Parent) setBounds(beyond []string, rules []agent.Rule) {
	p.ForbiddenTools, p.InheritedRules = beyond, rules
}

// is reports whether a run is the parent.
func (p Parent) is(run string) bool { return p.Start != nil && p.Start.Parent.Run == run }

// depth is how many runs stand above this one.
func (p Parent) depth() int {
	if p.Start == nil {
		return 0
	}
	return p.Start.Depth
}

// isNews reports whether the parent is to be told of a suspension. Each report is whole, so
// the last one that arrives is enough, and the parent wakes for each: of answers it hears
// when half of what it knows to be open has been decided.
func (p Parent) isNews(n agent.SuspensionSummary) bool {
	t := p.LastReport
	return t == nil || t.Suspension != n.ID || t.Kind != n.Kind || t.Owner != n.Owner || n.Open > t.Open || n.Open < t.Open && n.Open <= t.Open/2
}

// reported remembers what the parent is told of a suspension, and goesOn that it is told of
// its end.
func (p *Parent) reported(n agent.SuspensionSummary) {
	p.LastReport = &LastReport{Suspension: n.ID, Kind: n.Kind, Owner: n.Owner, Open: n.Open}
}
func (p *Parent) reportedResumed() { p.LastReport = nil }

// scheduleCheck lets a run that begins to rest look soon.
func (p *Parent) scheduleCheck() { p.CheckAt = time.Time{} }

func (p *Parent) startCheck() { p.Checking = true }

// parentAlive takes that the parent lives, and sets when to look again.
func (p *Parent) parentAlive(since, at time.Time) {
	p.Checking = false
	p.CheckAt = at.Add(min(max(at.Sub(since), parentCheckFirst), parentCheckMax))
}

// dropCheck ends a look whose answer does not come along into a new execution.
func (p *Parent) dropCheck() { p.Checking = false }

// startedByParent takes what the parent says of this run.
func (s *step) startedByParent(b *wire.ChildStart) {
	if b == nil {
		return
	}
	s.Parent.start(b)
	s.learnHoldsAbove(b.KnownHolds)
	if s.holdsValid(b.Holds) {
		s.Holds.startUnder(strongest(b.Holds))
	}
	s.Ledger.start(b.Grant)
}

// boundSpec makes a Spec one that its ancestors allow: their rules hold here too, and tools
// that they may not use are known by name and refused.
func (s *step) boundSpec(spec agent.Spec) agent.Spec {
	ceilings := s.Parent.ceilings(spec)
	if b := s.Parent.Start; b != nil {
		spec.Rules = mergeRules(b.Rules, spec.Rules)
		if len(b.Output) > 0 {
			spec.Output = b.Output
		}
	}
	var kept []agent.ToolSpec
	var beyond []string
	for _, t := range spec.Toolset {
		if within(ceilings, t.Name) {
			kept = append(kept, t)
			continue
		}
		beyond = append(beyond, t.Name)
	}
	spec.Toolset = kept
	spec.ClientTools = slices.DeleteFunc(slices.Clone(spec.ClientTools), func(t agent.ToolSpec) bool {
		if !within(ceilings, t.Name) {
			beyond = append(beyond, t.Name)
			return true
		}
		return false
	})
	var rules []agent.Rule
	if len(spec.Agents) > 0 {
		rules = spec.Rules
	}
	s.Parent.setBounds(beyond, rules)
	return spec
}

// mergeRules are the rules of a run with those above it: of equal ones, the ancestors' count. The
// ancestors' end with one for all else, if the run's own do: that one is about what none of
// the run's own matches.
func mergeRules(above, own []agent.Rule) []agent.Rule {
	otherwise := func(rules []agent.Rule) bool { return len(rules) > 0 && rules[len(rules)-1].Otherwise }
	if len(above) > 0 && otherwise(own) && !otherwise(above) {
		above = append(slices.Clip(above), agent.Rule{Do: agent.RulingAllow, Otherwise: true})
	}
	return slices.Concat(above, own)
}

// ceilings are the ceilings of a run with a Spec: its own, and those of the runs above.
func (p Parent) ceilings(spec agent.Spec) [][]string {
	if p.Start == nil {
		return [][]string{spec.Ceiling}
	}
	return append([][]string{spec.Ceiling}, p.Start.Ceilings...)
}

func within(ceilings [][]string, name string) bool {
	for _, c := range ceilings {
		if len(c) > 0 && !glob.MatchesAny(c, name) {
			return false
		}
	}
	return true
}

// reportSuspensionToParent tells the parent on what this run rests, if that is news there. That it rests
// for an inherited hold alone is none.
func (s *step) reportSuspensionToParent() {
	if s.Parent.Start == nil || s.onlyHeldByAncestor() && s.Parent.LastReport == nil {
		return
	}
	note := wire.Summary(*s.Suspension(), s.redacted())
	if !s.Parent.isNews(note) {
		return
	}
	s.Parent.reported(note)
	r := s.ownReport(agent.StatusSuspended)
	r.Suspension = &note
	s.reportToParent(r)
}

// reportResumedToParent tells a parent that knows this run as suspended that it goes on.
func (s *step) reportResumedToParent() {
	if s.Parent.LastReport != nil {
		s.Parent.reportedResumed()
		s.reportToParent(s.ownReport(agent.StatusRunning))
	}
}

// ownReport is a report of this run, numbered by its log.
func (s *step) ownReport(status agent.Status) wire.ChildReport {
	return wire.ChildReport{Run: s.Parent.Start.Parent.Run, Session: s.Session, From: s.Run, Seq: s.Log.Seq, Status: status, Budget: s.budgetReport()}
}

func (s *step) reportToParent(r wire.ChildReport) {
	s.do(ReportToParent{Session: s.Parent.Start.Parent.Session, Report: r})
}

// reportEndToParent tells a parent that does not wait for the result that the run has ended.
func (s *step) reportEndToParent() {
	if b := s.Parent.Start; b == nil || !b.Background {
		return
	}
	r := s.ownReport(s.End.Outcome.Status)
	r.Seq++ // a report of this event was one of a rest, or of work
	s.reportToParent(r)
}

// parentCheckDue is when a run that rests looks whether its parent still lives.
func (s *step) parentCheckDue() time.Time {
	p := s.Parent
	if p.Start == nil || p.Checking || !s.Suspensions.atRest() && !s.onlyAwaitsChildren() {
		return time.Time{}
	}
	if p.CheckAt.IsZero() {
		return s.Suspensions.Since.Add(parentCheckFirst)
	}
	return p.CheckAt
}

// onlyAwaitsChildren reports whether the turn waits for sub-agents alone: no step of this run looks
// for its parent then.
func (s *step) onlyAwaitsChildren() bool {
	return s.awaitsCalls() && s.Calls.runningCount() == 0 && s.Calls.count(CallAwaitingChildren) > 0
}

// checkParent looks whether the parent still lives, stores what a run that rests for its hold has
// not stored, and asks about a hold that a step met and that nobody told of.
func (s *step) checkParent() {
	if s.Log.hasUnsealed() && s.maySeal() {
		s.seal(false)
	}
	s.Parent.startCheck()
	s.do(CheckParent{Parent: s.Parent.Start.Parent})
	if s.Ledger.FromParent != nil { // also for those below: what was asked may be lost
		s.Ledger.askAgain()
	}
	if early := s.Holds.Unconfirmed; early != nil {
		s.reportToParent(s.metReport(*early))
	}
}

// parentChecked takes what the look found.
func (s *step) parentChecked(in ParentChecked) error {
	if s.decided() {
		return s.refuse("the run is ending")
	}
	s.Parent.parentAlive(s.Suspensions.Since, s.At)
	if in.Gone {
		return s.cancelled(reasonParent)
	}
	return nil
}
