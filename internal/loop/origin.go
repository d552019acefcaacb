package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/w3ctrace"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Origin is the part that knows how the run began, and brings it to its first turn.
type Origin struct {
	// Imported is the export that the session came with; empty for one that began here.
	// Former is the run that this one goes on with, if it does.
	Imported  string `json:"imported,omitempty"`
	FormerRun string `json:"former_run,omitempty"`
	// Start is what was asked for, until the run has opened, and Brief the text of its
	// briefing.
	Start        *agent.Start `json:"start,omitempty"`
	BriefingText string       `json:"briefing_text,omitempty"`
	// Sources are asked for their tools, and Point is where the log begins for the run,
	// until it has opened.
	Sources    []string `json:"sources,omitempty"`
	StartPoint *Located `json:"start_point,omitempty"`

	Task    string            `json:"task,omitempty"` // the first characters of what was asked
	Labels  map[string]string `json:"labels,omitempty"`
	Started time.Time         `json:"started"`
}

// Labels are those that the run was started with, or the one above it.
func (s *State) Labels() map[string]string {
	if s.Parent.Start != nil {
		return s.Parent.Start.Labels
	}
	return s.Origin.Labels
}

// Policy is the one with which the run began; none before it is known.
func (s *State) Policy() agent.Policy {
	if s.Spec == nil {
		return nil
	}
	return s.Spec.Policy
}

// Agent is the name of the run's agent, or the one that was asked for.
func (s *State) Agent() string { return s.agent() }

// AwaitsImport reports whether the run is one that was imported, and what it was is not known yet.
func (s *State) AwaitsImport() bool {
	return s.Phase == RunImporting || s.HasNoLog() && s.Origin.Start != nil && s.Origin.Start.Import != ""
}

// setStart takes what the run was started with.
func (o *Origin) setStart(start agent.Start, brief string) {
	o.Start, o.Labels, o.Task, o.BriefingText = &start, start.Labels, start.Input.Task(), brief
}

// refuseStart keeps nothing of a start that can't be meant except for a name that could be one.
func (o *Origin) refuseStart(start agent.Start) {
	o.Start = &agent.Start{}
	if agent.CheckName(start.Agent) == nil {
		o.Start.Agent = start.Agent
	}
}

// located takes where the log begins for the run.
func (o *Origin) located(p Located) {
	if o.StartPoint != nil && p.Unrecovered == "" {
		p.Unrecovered = o.StartPoint.Unrecovered
	}
	o.StartPoint = &p
}

// adopt makes the origin that of a run which goes on with one that was elsewhere.
func (o *Origin) adopt(former, export string) { o.FormerRun, o.Imported = former, export }

// dropStart forgets what only the beginning needs.
func (o *Origin) dropStart() { o.Start, o.BriefingText, o.Sources, o.StartPoint = nil, "", nil, nil }

func (s *step) begin(in Begin) {
	s.V, s.Session, s.Run = StateVersion, in.Session, in.Run
	s.Origin.Started = s.At
	s.Suspensions.begin(s.At)
	s.enterPhase(RunOpening)
	s.startedByParent(in.ChildStart)
	if in.Err != nil {
		s.Origin.refuseStart(in.Start)
		s.fail(in.Err)
		return
	}
	s.TraceSegment.Parent = w3ctrace.InMeta(in.Start.Meta)
	s.Origin.setStart(in.Start, in.BriefingText)
	s.do(Open{OpenArgs{Session: s.Session, Agent: in.Start.Agent, Child: s.Parent.Start != nil, After: in.Start.After}})
}

// opened takes the Spec, which no deploy changes any more for this run.
func (s *step) opened(in Opened) {
	s.setLog(in.Head, in.Seq, in.Version, in.Counters, in.Receipts, in.Backlog)
	s.Log.setFence(in.Fence)
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	s.Origin.Imported = in.Imported
	if s.Origin.Start.Import != "" {
		s.enterPhase(RunImporting)
		s.do(Import{ImportArgs{Session: s.Session, Agent: s.Origin.Start.Agent, Digest: s.Origin.Start.Import}})
		return
	}
	s.Spec = in.Spec
	if s.Parent.Start != nil { // who gave it the work waits for its end
		spec := *in.Spec
		spec.Daemon, s.Spec = nil, &spec
	}
	if s.hasNoMessage() && s.Origin.Start.From == nil && s.daemon() == nil {
		s.fail(agent.Errorf(agent.CodeInvalidInput, "start refused: input is missing; say what to do in input.text: only a daemon begins without").WithPath("input"))
		return
	}
	s.Budget.setLimits(lowerLimits(in.Spec.Limits, s.Origin.Start.Limits))
	if models := s.unpriced(); len(models) > 0 && s.budgetView().remaining(wire.ResourceCost) != unlimited {
		s.fail(agent.Errorf(agent.CodeInvalidInput, "limits.cost_usd can't be held, since the price of %s is not known", strings.Join(models, ", ")).WithPath("limits.cost_usd"))
		return
	}
	if in.Unrecovered != "" {
		s.Origin.located(Located{Unrecovered: in.Unrecovered})
	}
	s.do(Publish{})
	s.Budget.startClock(s.Origin.Started)
	old := in.Seq > 0 && in.StateVersion != in.Spec.StateVersion && s.Origin.Start.Carry != agent.CarryReset
	if s.Origin.Start.From != nil || len(in.TerminatedRuns) > 0 || old {
		s.enterPhase(RunLocating)
		s.Origin.Sources = in.Sources
		s.locate(in.TerminatedRuns)
		return
	}
	s.listSources(in.Sources)
}

// unpriced are the models that the run may ask and whose price is not known.
func (s *step) unpriced() []string {
	if s.Spec.Price == (agent.Price{}) {
		return []string{s.Spec.Model}
	}
	return s.Spec.Unpriced
}

// hasNoMessage reports whether the run was given nothing to say to the model.
func (s *step) hasNoMessage() bool { return len(s.Origin.startMessage().Parts) == 0 }

// located takes the point where the run begins.
func (s *step) located(in Located) {
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	s.setLog(in.Head, in.Seq, in.Version, in.Counters, in.Receipts, in.Backlog)
	s.Log.setChain(in.Chain)
	s.Origin.located(in)
	s.listSources(s.Origin.Sources)
}

// listSources asks for the tools that only their sources know. A run that is being stopped calls
// none.
func (s *step) listSources(sources []string) {
	if len(sources) > 0 && s.End.Stopping == nil {
		s.enterPhase(RunListing)
		s.do(List{ListArgs{s.Session, s.Run, sources}})
		return
	}
	s.beginRun()
}

func (s *step) listed(in Listed) {
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	spec := *s.Spec
	spec.Toolset = slices.Concat(spec.Toolset, in.Tools)
	if in.Instructions != "" {
		spec.Instructions = strings.TrimPrefix(spec.Instructions+"\n\n"+in.Instructions, "\n\n")
	}
	s.Spec = &spec
	s.beginRun(in.Left...)
}

// toolsChanged gives the model a source's other tools, from the next turn on. The log has them
// whole: it is what the model is asked by. What is beyond a ceiling is left out; of more
// than can be kept nothing is taken, and the log says that the model goes on with what it has.
func (s *step) toolsChanged(r agent.ToolsChange) {
	ceilings := s.Parent.ceilings(*s.Spec)
	r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t agent.ToolSpec) bool { return !within(ceilings, t.Name) })
	spec := withoutTexts(r.ApplyTo(*s.Spec))
	if n := specJSONLen(spec) + s.Parent.jsonLen(); n > specShare {
		refused := agent.Errorf(agent.CodeTooLarge, "with the other tools of %s what the agent is made of has %d bytes, and may have %d", r.Source, n, specShare)
		s.record(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &agent.ToolsChange{Source: r.Source, Refused: refused}})
		return
	}
	s.record(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &r})
	s.Spec = &spec
}

// beginRun writes the beginning of the run's part of the log and begins the first turn. left is
// what is left out of sources.
func (s *step) beginRun(left ...agent.ToolsChange) {
	message, sum := s.Origin.startMessage(), s.Origin.startDigest()
	if p, ok := s.Messages.receipt(s.Origin.Start.ID, s.Run); ok {
		err := p.Check(sum)
		if err == nil {
			err = agent.Errorf(agent.CodeStale, "message %s was taken by run %s of the session: it is not said twice", p.ID, p.Run).WithPath("id")
		}
		s.fail(asError(err))
		return
	}
	spec := s.boundSpec(*s.Spec)
	spec.Toolset = append(slices.Clip(spec.Toolset), OwnTools(spec)...)
	s.Spec = &spec
	if err := s.tooLong(); err != nil {
		s.fail(err)
		return
	}
	s.rememberReceipt(message.ID, sum)
	anew := s.Log.Seq == 0 || s.Origin.Start.Carry == agent.CarryReset
	s.recordStart()
	for _, r := range left {
		r.Tools = spec.ToolsOf(r.Source)
		spec = r.ApplyTo(spec)
		s.record(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &r})
	}
	for _, h := range s.Holds.List {
		s.openSuspension(agent.InitiatorParent, string(h.Verb), h.Reason) // unless a suspension is open
		s.record(agent.Event{Type: agent.EventHoldAdded, Hold: &h})
	}
	if s.Origin.Start.Carry == agent.CarryCompact && !anew {
		s.Turn.startFromSummary(agent.CompactedForCarry)
	}
	s.recordStartMessage(message)
	if s.Origin.Start.Park != nil {
		s.park(*s.Origin.Start.Park, agent.InitiatorOperator, "")
	}
	if spec.Redact {
		s.do(Publish{}) // instead of what it was started with
	}
	rules := withoutTexts(spec)
	s.Spec = &rules
	s.Origin.dropStart()
	s.enterPhase(RunActive)
}

// tooLong refuses a start of which more would have to be kept than there is room for.
func (s *step) tooLong() *agent.Error {
	park := s.Origin.Start.Park
	switch n := specJSONLen(withoutTexts(*s.Spec)) + s.Parent.jsonLen(); {
	case n > specShare:
		return agent.Errorf(agent.CodeTooLarge, "what agent %s is made of is too long to be kept: its rules, names of tools, ceilings and schemas have %d bytes with those of the agents above, and may have %d", s.Spec.Name, n, specShare).WithPath("agent")
	case park != nil && conditionsJSONLen(*park) > s.space():
		return agent.Errorf(agent.CodeTooLarge, "start refused: what the run would wait for is too long to be kept").WithPath("park")
	case s.Origin.Start.Carry == agent.CarryCompact && !s.sizeFits(s.Origin.size()):
		return agent.Errorf(agent.CodeTooLarge, "start refused: the input is too long to wait for the summary that comes before it (it may have %d bytes)", pendingShare).WithPath("input")
	}
	return nil
}

// recordStartMessage says what the run was started with. A daemon that was told nothing goes
// on with what the run before it was at, or idles.
func (s *step) recordStartMessage(m agent.Message) {
	daemon := s.daemon() != nil
	s.Daemon.keepWorkIf(daemon && s.Origin.Start.Carry != agent.CarryReset) // which has forgotten it
	switch {
	case len(m.Parts) > 0 && s.Turn.SummaryReason != "":
		s.Messages.addFirst(PendingMessage{Message: m, Mode: agent.SendSteer, Bytes: s.Origin.bytes(), Size: s.Origin.size()})
	case len(m.Parts) > 0:
		s.recordMessage(m, s.Origin.bytes())
	case s.Origin.Start.From != nil: // it goes on where a checkpoint is
	case s.Daemon.HasWork:
		s.Turn.setNote(fmt.Sprintf("The run before this one ended before you were done with what you were told last. Go on with it; it is %s.", s.now().Format(time.RFC3339)))
	default:
		s.goIdle()
		return
	}
	s.Daemon.setWork(daemon)
}

// recordStart writes what the run is and where in the session's log it begins.
func (s *step) recordStart() {
	e := agent.Started{Run: s.Run, By: s.Origin.Start.By, Carry: s.Origin.Start.Carry, Spec: s.Spec}
	s.Budget.addBytes(weight(agent.Event{Started: &e}))
	p := s.Origin.StartPoint
	if p == nil {
		s.record(agent.Event{Type: agent.EventRunStarted, Started: &e})
		return
	}
	e.Recovered, e.Unrecovered = p.Recovered, p.Unrecovered
	s.record(agent.Event{Type: agent.EventRunStarted, Started: &e})
	if p.Forked != nil {
		// The numbers go on, so that the ids of calls stay apart; limits and outcome are the
		// run's own.
		s.Turn.setNumber(p.Turn)
		s.Budget.setForkTurn(p.Turn)
		s.Calls.inheritCounts(p.Tools)
		s.record(agent.Event{Type: agent.EventForked, Forked: p.Forked})
	}
	if p.Migrated != nil {
		s.record(agent.Event{Type: agent.EventStateMigrated, Migrated: p.Migrated})
	}
}

// setLog takes where the session's log ends, and what its runs before this one have left.
func (s *step) setLog(head string, seq, version int64, numbers remembered.Counters, posts []remembered.Receipt, in remembered.Backlog) {
	s.Log.setHead(head, seq, version)
	s.Counters = numbers
	s.Messages.inherit(posts, in.Events)
	s.Daemon.setWork(in.Unfinished)
	if n := numbers.Hold; n > 0 {
		s.Holds.remember(agent.HoldRef{Session: s.Session, N: n}) // of the runs before this one
	}
}

// continued goes on in a new execution: timers did not come along.
func (s *step) continued() {
	s.NextTimer = time.Time{}
	s.Parent.dropCheck()
	s.Children.newExecution(s.At)
	s.Log.leaveTail()
	s.Suspensions.markContinuedAsNew()
	if s.Phase == RunContinuing { // else it was imported as it stood
		s.enterPhase(RunActive)
	}
	s.lookForEnds()
}

func inputMessage(start *agent.Start, brief string) agent.Message {
	m := agent.Message{ID: start.ID, Role: agent.RoleUser, By: start.By}
	if brief != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: brief})
	}
	if start.Input.Text != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: start.Input.Text})
	}
	m.Parts = append(m.Parts, start.Input.Parts...)
	if len(start.Input.Data) > 0 {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: string(start.Input.Data)})
	}
	return m
}
