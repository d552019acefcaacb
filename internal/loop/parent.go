package loop

import (
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Parent is the part of a run below another: what the parent said of it at its birth, and
// when it looks whether the parent still lives. It is zero for a root.
type Parent struct {
	// Birth is what the parent said of this run; nil for a root.
	Birth *agent.Birth `json:"birth,omitempty"`
	// Beyond are tools that the run may not use though its agent has them, and Inherited
	// the rules that hold for its sub-agents too.
	Beyond    []string     `json:"beyond,omitempty"`
	Inherited []agent.Rule `json:"inherited,omitempty"`
	// Told is what the parent was told last of the run's suspension; nil if it knows the run
	// as one that goes on.
	Told *Told `json:"told,omitempty"`
	// LeaseAt is when a run that rests looks for its parent again; Leasing means that it
	// is looking.
	LeaseAt time.Time `json:"lease_at,omitzero"`
	Leasing bool      `json:"leasing,omitempty"`
}

// Told is what of a suspension is worth another report if it changes.
type Told struct {
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
	leaseFirst = time.Minute
	leaseMost  = 24 * time.Hour
	lookMost   = time.Hour
)

func (p *Parent) born(b *agent.Birth) { p.Birth = b }

// bound remembers which tools are beyond the run, and which rules its sub-agents inherit.
func (p *Parent) bound(beyond []string, rules []agent.Rule) { p.Beyond, p.Inherited = beyond, rules }

// is reports whether a run is the parent.
func (p Parent) is(run string) bool { return p.Birth != nil && p.Birth.Parent.Run == run }

// depth is how many runs stand above this one.
func (p Parent) depth() int {
	if p.Birth == nil {
		return 0
	}
	return p.Birth.Depth
}

// news reports whether the parent is to be told of a suspension. Each report is whole, so
// the last one that arrives is enough, and the parent wakes for each: of answers it hears
// when half of what it knows to be open has been decided.
func (p Parent) news(n agent.SuspensionNote) bool {
	t := p.Told
	return t == nil || t.Suspension != n.ID || t.Kind != n.Kind || t.Owner != n.Owner || n.Open > t.Open || n.Open < t.Open && n.Open <= t.Open/2
}

// tells remembers what the parent is told of a suspension, and goesOn that it is told of
// its end.
func (p *Parent) tells(n agent.SuspensionNote) {
	p.Told = &Told{Suspension: n.ID, Kind: n.Kind, Owner: n.Owner, Open: n.Open}
}
func (p *Parent) goesOn() { p.Told = nil }

// lookAnew lets a run that begins to rest look soon.
func (p *Parent) lookAnew() { p.LeaseAt = time.Time{} }

func (p *Parent) looks() { p.Leasing = true }

// looked takes that the parent lives, and sets when to look again.
func (p *Parent) looked(since, at time.Time) {
	p.Leasing = false
	p.LeaseAt = at.Add(min(max(at.Sub(since), leaseFirst), leaseMost))
}

// forgetLook ends a look whose answer does not come along into a new execution.
func (p *Parent) forgetLook() { p.Leasing = false }

// born takes what the parent says of this run.
func (s *step) born(b *agent.Birth) {
	if b == nil {
		return
	}
	s.Parent.born(b)
	s.hearAbove(b.Heard)
	if s.layable(b.Held) {
		s.Holds.born(strongest(b.Held))
	}
	s.Ledger.born(b.Grant)
}

// bounded makes a Spec one that its ancestors allow: their rules hold here too, and tools
// that they may not use are known by name and refused.
func (s *step) bounded(spec agent.Spec) agent.Spec {
	ceilings := s.Parent.over(spec)
	if b := s.Parent.Birth; b != nil {
		spec.Rules = below(b.Rules, spec.Rules)
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
	s.Parent.bound(beyond, rules)
	return spec
}

// below are the rules of a run with those above it: of equal ones, the ancestors' count. The
// ancestors' end with one for all else, if the run's own do: that one is about what none of
// the run's own matches.
func below(above, own []agent.Rule) []agent.Rule {
	otherwise := func(rules []agent.Rule) bool { return len(rules) > 0 && rules[len(rules)-1].Otherwise }
	if len(above) > 0 && otherwise(own) && !otherwise(above) {
		above = append(slices.Clip(above), agent.Rule{Do: agent.Allow, Otherwise: true})
	}
	return slices.Concat(above, own)
}

// over are the ceilings of a run with a Spec: its own, and those of the runs above.
func (p Parent) over(spec agent.Spec) [][]string {
	if p.Birth == nil {
		return [][]string{spec.Ceiling}
	}
	return append([][]string{spec.Ceiling}, p.Birth.Ceilings...)
}

func within(ceilings [][]string, name string) bool {
	for _, c := range ceilings {
		if len(c) > 0 && !agent.MatchesAny(c, name) {
			return false
		}
	}
	return true
}

// reportRest tells the parent on what this run rests, if that is news there. That it rests
// for an inherited hold alone is none.
func (s *step) reportRest() {
	if s.Parent.Birth == nil || s.heldAboveOnly() && s.Parent.Told == nil {
		return
	}
	note := s.Suspension().Note(s.redacted())
	if !s.Parent.news(note) {
		return
	}
	s.Parent.tells(note)
	r := s.ownReport(agent.Suspended)
	r.Suspension = &note
	s.tellParent(r)
}

// reportGoesOn tells a parent that knows this run as suspended that it goes on.
func (s *step) reportGoesOn() {
	if s.Parent.Told != nil {
		s.Parent.goesOn()
		s.tellParent(s.ownReport(agent.Running))
	}
}

// ownReport is a report of this run, numbered by its log.
func (s *step) ownReport(status agent.Status) agent.ChildReport {
	return agent.ChildReport{Run: s.Parent.Birth.Parent.Run, Session: s.Session, From: s.Run, Seq: s.Log.Seq, Status: status, Share: s.shareReport()}
}

func (s *step) tellParent(r agent.ChildReport) {
	s.do(TellParent{Session: s.Parent.Birth.Parent.Session, Report: r})
}

// reportEnd tells a parent that does not wait for the result that the run has ended.
func (s *step) reportEnd() {
	if b := s.Parent.Birth; b == nil || !b.Background {
		return
	}
	r := s.ownReport(s.End.Outcome.Status)
	r.Seq++ // a report of this event was one of a rest, or of work
	s.tellParent(r)
}

// leaseDue is when a run that rests looks whether its parent still lives.
func (s *step) leaseDue() time.Time {
	p := s.Parent
	if p.Birth == nil || p.Leasing || !s.Rest.resting() && !s.onlyBelow() {
		return time.Time{}
	}
	if p.LeaseAt.IsZero() {
		return s.Rest.Since.Add(leaseFirst)
	}
	return p.LeaseAt
}

// onlyBelow reports whether the turn waits for sub-agents alone: no step of this run looks
// for its parent then.
func (s *step) onlyBelow() bool {
	return s.works() && s.Calls.active() == 0 && s.Calls.count(Below) > 0
}

// look looks whether the parent still lives, stores what a run that rests for its hold has
// not stored, and asks about a hold that a step met and that nobody told of.
func (s *step) look() {
	if s.Log.open() && s.mayStore() {
		s.sealStep(false)
	}
	s.Parent.looks()
	s.do(Lease{Parent: s.Parent.Birth.Parent})
	if s.Ledger.Above != nil { // also for those below: what was asked may be lost
		s.Ledger.asksAnew()
	}
	if early := s.Holds.Early; early != nil {
		s.tellParent(s.metReport(*early))
	}
}

// leased takes what the look found.
func (s *step) leased(in Leased) error {
	if s.over() {
		return s.refuse("the run is ending")
	}
	s.Parent.looked(s.Rest.Since, s.At)
	if in.Gone {
		return s.cancelled(reasonParent)
	}
	return nil
}
