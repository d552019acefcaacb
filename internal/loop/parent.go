package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Parent is the part that keeps what the parent started this run with, and when to check
// whether the parent still lives. It is zero for a root.
type Parent struct {
	// Start is what the parent started this run with; nil for a root.
	Start *wire.ChildStart `json:"start,omitempty"`
	// ForbiddenTools are tools that the agent has and this run may not use. InheritedRules
	// are the rules that hold for its sub-agents too.
	ForbiddenTools []string     `json:"forbidden_tools,omitempty"`
	InheritedRules []agent.Rule `json:"inherited_rules,omitempty"`
	// LastReport is the last suspension that was reported to the parent; nil if the parent
	// knows the run as running.
	LastReport *LastReport `json:"last_report,omitempty"`
	// CheckAt is when a suspended run next checks its parent; if it is zero, a minute after
	// the suspension. Checking means that a check is in flight.
	CheckAt  time.Time `json:"check_at,omitzero"`
	Checking bool      `json:"checking,omitempty"`
	// ReportEnd means that the parent has asked for a report of this run's end.
	ReportEnd bool `json:"report_end,omitempty"`
}

// LastReport has the parts of a suspension that are worth another report if they change.
type LastReport struct {
	Suspension string               `json:"suspension"`
	Kind       agent.SuspensionKind `json:"kind"`
	Owner      agent.Owner          `json:"owner"`
	Open       int                  `json:"open,omitempty"` // requests
	// OwnerFailed means that the parent knows that the owner has failed, from the report with the number Seq.
	OwnerFailed bool  `json:"owner_failed,omitempty"`
	Seq         int64 `json:"seq,omitempty"`
}

// reasonParent is the reason of a run that is cancelled because its parent ended.
const reasonParent = "parent_ended"

// Checks become rarer, since a suspended run should cost nothing: the first comes after a
// minute, and then at least one a day. Checks of children come at least once an hour: this
// run may be waiting for one that is gone.
const (
	parentCheckFirst = time.Minute
	parentCheckMax   = 24 * time.Hour
	lookMost         = time.Hour
)

func (p *Parent) start(b *wire.ChildStart) { p.Start = b }

// setBounds keeps which tools the run may not use, and which rules its sub-agents inherit.
func (p *Parent) setBounds(beyond []string, rules []agent.Rule) {
	p.ForbiddenTools, p.InheritedRules = beyond, rules
}

// is reports whether a run is the parent.
func (p Parent) is(run string) bool { return p.Start != nil && p.Start.Parent.Run == run }

// depth returns how many runs are above this one.
func (p Parent) depth() int {
	if p.Start == nil {
		return 0
	}
	return p.Start.Depth
}

// isNews reports whether to report a suspension to the parent. Each report wakes the parent.
// So the parent learns of answers only when half of the open requests are decided. Each
// report is whole, so the last one is enough.
func (p Parent) isNews(n agent.SuspensionSummary) bool {
	t := p.LastReport
	return t == nil || t.Suspension != n.ID || t.Kind != n.Kind || t.Owner != n.Owner || n.Open > t.Open || n.Open < t.Open && n.Open <= t.Open/2 || !t.OwnerFailed && n.OwnerFailed != nil
}

// reported keeps the suspension that is reported to the parent. reportedResumed forgets it.
func (p *Parent) reported(n agent.SuspensionSummary, seq int64) {
	p.LastReport = &LastReport{Suspension: n.ID, Kind: n.Kind, Owner: n.Owner, Open: n.Open}
	if n.OwnerFailed != nil {
		p.LastReport.OwnerFailed, p.LastReport.Seq = true, seq
	}
}
func (p *Parent) reportedResumed() { p.LastReport = nil }

// reportAgain makes the suspension news again, whatever the parent knows of it.
func (p *Parent) reportAgain() { p.LastReport = &LastReport{} }

// scheduleCheck lets a run that becomes suspended check its parent after a minute.
func (p *Parent) scheduleCheck() { p.CheckAt = time.Time{} }

// checkWithinAMinute lets a run ask its parent about a hold that it met, however old its suspension is.
func (p *Parent) checkWithinAMinute(at time.Time) { p.CheckAt = at.Add(parentCheckFirst) }

func (p *Parent) startCheck() { p.Checking = true }

// mustReportEnd makes the run report its end.
func (p *Parent) mustReportEnd() { p.ReportEnd = true }

// parentAlive ends a check that found the parent alive, and sets when to check again: when
// the suspension is twice as old.
func (p *Parent) parentAlive(since, at time.Time) {
	p.Checking = false
	p.CheckAt = at.Add(min(max(at.Sub(since), parentCheckFirst), parentCheckMax))
}

// dropCheck ends a check whose result does not reach the new execution.
func (p *Parent) dropCheck() { p.Checking = false }

// startedByParent keeps what the parent started this run with; nil for a root.
func (s *step) startedByParent(b *wire.ChildStart) {
	if b == nil {
		return
	}
	s.Parent.start(b)
	s.learnHoldsAbove(b.KnownHolds)
	if s.holdsValid(b.Holds) { // an invalid hold could never be removed
		s.Holds.startUnder(strongest(b.Holds))
	}
	s.Ledger.start(b.Grant)
}

// reminders returns those that the run has from the agents above.
func (p Parent) reminders() []agent.InheritedReminder {
	if p.Start == nil {
		return nil
	}
	return p.Start.Reminders
}

// boundSpec returns a Spec within the bounds of the ancestors. Their rules hold here too. A
// tool that they do not allow is removed, and known by name: a call of it is refused.
func (s *step) boundSpec(spec agent.Spec) agent.Spec {
	spec.Definition = spec.InferReasoningTask(!s.Parent.parkUntil().IsZero()) // only runs that work for a check have such a time
	ceilings := s.Parent.ceilings(spec)
	if b := s.Parent.Start; b != nil {
		spec.Rules = mergeRules(b.Rules, spec.Rules)
		spec.InheritedReminders, spec.Workspace = b.Reminders, s.ownWorkspace()
		spec.InheritedCeilings = slices.DeleteFunc(slices.Clone(b.Ceilings), func(c []string) bool {
			return slices.Contains(c, "*") || slices.Contains(c, allServerTools) // it excludes none
		})
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
		if !slices.ContainsFunc(ceilings, func(c []string) bool {
			return !within([][]string{c}, t.Name) && !slices.Contains(c, clientToolPrefix+t.Name) // no pattern of an author means it
		}) {
			return false
		}
		beyond = append(beyond, t.Name)
		return true
	})
	// The Spec in the state loses the rules' schemas (withoutTexts). Parent keeps the rules
	// whole, if a sub-agent can inherit them.
	var rules []agent.Rule
	if len(spec.Agents) > 0 {
		rules = spec.Rules
	}
	s.Parent.setBounds(beyond, rules)
	return spec
}

// mergeRules returns the rules of a run: the ancestors' first, since the first of equal
// rules counts, then its own.
func mergeRules(above, own []agent.Rule) []agent.Rule {
	otherwise := func(rules []agent.Rule) bool { return len(rules) > 0 && rules[len(rules)-1].Otherwise }
	// An Otherwise rule ends the list of one agent (see ruling). Without one in between, a
	// match of an ancestor's rule would switch off the run's own Otherwise rule.
	if len(above) > 0 && otherwise(own) && !otherwise(above) {
		above = append(slices.Clip(above), agent.Rule{Do: agent.RulingAllow, Otherwise: true})
	}
	return slices.Concat(above, own)
}

// ceilings returns the ceilings of a run with a Spec: its own and its ancestors'.
func (p Parent) ceilings(spec agent.Spec) [][]string {
	if p.Start == nil {
		return [][]string{spec.Ceiling}
	}
	return append([][]string{spec.Ceiling}, p.Start.Ceilings...)
}

// rulesForbid reports whether the ancestors' rules deny one of the tools, or ask a person about it. A
// rule about certain arguments, or about later calls, counts for all: nobody compares those of a check.
func (p Parent) rulesForbid(tools []agent.ToolSpec) bool {
	if p.Start == nil {
		return false
	}
	for _, t := range tools {
		spoken := false
		for _, rule := range p.Start.Rules {
			covers := rule.Covers(t) && !(rule.Otherwise && spoken)
			if covers && rule.Do != agent.RulingAllow {
				return true
			}
			// An Otherwise rule is an agent's last (see ruling). An allowance for some calls does not
			// switch it off.
			always := covers && len(rule.Arguments) == 0 && rule.AfterCalls == 0
			spoken = !rule.Otherwise && (spoken || always)
		}
	}
	return false
}

// allServerTools is the pattern of all tools of a provider.
const allServerTools = agent.ServerToolPrefix + "*"

// MayServe reports whether the ceilings of a Spec, its own and those that it has from the agents above,
// allow a tool of the provider.
func MayServe(spec *agent.Spec, name string) bool {
	return within(append([][]string{spec.Ceiling}, spec.InheritedCeilings...), agent.ServerToolPrefix+name)
}

// clientToolPrefix stands before the name of a client tool where a ceiling is of the tools that a
// parent has.
const clientToolPrefix = "client:"

// within reports whether all ceilings allow a tool. An empty ceiling allows every tool.
func within(ceilings [][]string, name string) bool {
	for _, c := range ceilings {
		if len(c) > 0 && !glob.MatchesAny(c, name) {
			return false
		}
	}
	return true
}

// reportSuspensionToParent reports what the run waits for, if that is news. A suspension by
// an inherited hold alone is none: the parent passed that hold on, and a whole tree would
// report.
func (s *step) reportSuspensionToParent() {
	if s.Parent.Start == nil || s.onlyHeldByAncestor() && s.Parent.LastReport == nil {
		return
	}
	note := wire.Summary(*s.Suspension(), s.redacted())
	if !s.Parent.isNews(note) {
		return
	}
	s.Parent.reported(note, s.Log.Seq)
	r := s.ownReport(agent.StatusSuspended)
	r.Suspension = &note
	s.reportToParent(r)
}

// repeatOwnerFailed reports again that the owner has failed: a parent that was reset to an earlier state does
// not know it. The report has its old number, so other parents find it stale.
func (s *step) repeatOwnerFailed() {
	t := s.Parent.LastReport
	if t == nil || !t.OwnerFailed || t.Seq == 0 || s.Suspensions.Open == nil || !s.waitsForNews() {
		return
	}
	note := wire.Summary(*s.Suspension(), s.redacted())
	r := s.ownReport(agent.StatusSuspended)
	r.Seq, r.Suspension = t.Seq, &note
	s.reportToParent(r)
}

// reportResumedToParent tells a parent that knows this run as suspended that it is running
// again.
func (s *step) reportResumedToParent() {
	if s.Parent.LastReport != nil {
		s.Parent.reportedResumed()
		s.reportToParent(s.ownReport(agent.StatusRunning))
	}
}

// ownReport returns a report of this run. Its number is the log's last event.
func (s *step) ownReport(status agent.Status) wire.ChildReport {
	return wire.ChildReport{Run: s.Parent.Start.Parent.Run, Session: s.Session, From: s.Run, Seq: s.Log.Seq, Status: status, Budget: s.budgetReport()}
}

func (s *step) reportToParent(r wire.ChildReport) {
	s.do(ReportToParent{Session: s.Parent.Start.Parent.Session, Report: r})
}

// reportEndToParent tells the parent of a background run that it has ended, and a parent that
// has continued as new meanwhile. Other parents get the workflow's result.
func (s *step) reportEndToParent() {
	if b := s.Parent.Start; b == nil || !b.Background && !s.Parent.ReportEnd {
		return
	}
	r := s.ownReport(s.End.Outcome.Status)
	// Above the last report's number, which may be that of a suspension.
	r.Seq++
	s.reportToParent(r)
}

// parentCheckDue returns when a run checks whether its parent still lives; zero if it does
// not have to.
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

// onlyAwaitsChildren reports whether the turn waits for sub-agents alone. No activity of
// this run checks the parent then.
func (s *step) onlyAwaitsChildren() bool {
	return s.awaitsCalls() && s.Calls.runningCount() == 0 && s.Calls.count(CallAwaitingChildren) > 0
}

// checkParent checks whether the parent still lives, and repeats what may be lost.
func (s *step) checkParent() {
	// A run suspended by an inherited hold alone has not stored that yet (see stored).
	if s.Log.hasUnsealed() && s.maySeal() {
		s.seal(false)
	}
	s.Parent.startCheck()
	s.do(CheckParent{Parent: s.Parent.Start.Parent})
	s.repeatOwnerFailed()
	if s.Ledger.FromParent != nil { // repeats the requests of the runs below, too
		s.Ledger.askAgain()
	}
	// The order for this hold should have come by now. Perhaps the hold was never recorded.
	if early := s.Holds.Unconfirmed; early != nil {
		s.reportToParent(s.metReport(*early))
	}
}

// parentChecked takes the result of a check.
func (s *step) parentChecked(in ParentChecked) error {
	if s.outcomeDecided() {
		return s.refuse("the run is ending")
	}
	s.Parent.parentAlive(s.Suspensions.Since, s.At)
	if in.Gone {
		return s.cancelled(reasonParent, "", byParent)
	}
	return nil
}
