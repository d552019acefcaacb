package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/w3ctrace"
)

// Origin is the part that keeps what the run was started with, and brings it to its first
// turn.
type Origin struct {
	// Imported names the export that the session came with; empty for one that began here.
	// FormerRun is the run that this one continues after an import.
	Imported  string `json:"imported,omitempty"`
	FormerRun string `json:"former_run,omitempty"`
	// Start is the start, and BriefingText the text of its briefing. Both are kept until the
	// run has started.
	Start        *agent.Start `json:"start,omitempty"`
	BriefingText string       `json:"briefing_text,omitempty"`
	// Sources are asked for their tools. StartPoint is where in the log the run begins. Both
	// are kept until the run has started.
	Sources    []string `json:"sources,omitempty"`
	StartPoint *Located `json:"start_point,omitempty"`

	Task    string            `json:"task,omitempty"` // the first characters of what was asked
	Labels  map[string]string `json:"labels,omitempty"`
	Started time.Time         `json:"started"`
	By      string            `json:"by,omitempty"` // who started the run, or imported it
}

// Labels returns the labels that the run was started with. A child has its root's.
func (s *State) Labels() map[string]string {
	if s.Parent.Start != nil {
		return s.Parent.Start.Labels
	}
	return s.Origin.Labels
}

// Policy returns the policy with which the run began; nil before the run has its Spec.
func (s *State) Policy() agent.Policy {
	if s.Spec == nil {
		return nil
	}
	return s.Spec.Policy
}

// Agent returns the name of the run's agent, or the requested name before the run has its
// Spec.
func (s *State) Agent() string { return s.agent() }

// AwaitsImport reports whether the run continues an imported one, whose state it does not
// have yet.
func (s *State) AwaitsImport() bool {
	return s.Phase == RunImporting || s.HasNoLog() && s.Origin.Start != nil && s.Origin.Start.Import != ""
}

// setStart keeps what the run was started with.
func (o *Origin) setStart(start agent.Start, brief string) {
	o.Start, o.Labels, o.Task, o.By, o.BriefingText = &start, start.Labels, start.Input.Task(), start.By, brief
}

// inheritTask sets the task to the beginning of what the run before was asked.
func (o *Origin) inheritTask(task string) { o.Task = agent.Input{Text: task}.Task() }

// refuseStart keeps the agent's name of an invalid start, if that one is valid, and nothing
// else.
func (o *Origin) refuseStart(start agent.Start) {
	o.Start = &agent.Start{}
	if agent.CheckName(start.Agent) == nil {
		o.Start.Agent = start.Agent
	}
}

// located keeps where in the log the run begins.
func (o *Origin) located(p Located) {
	// Open may have failed to find a terminated run. Locate does not repeat that.
	if o.StartPoint != nil && p.Unrecovered == "" {
		p.Unrecovered = o.StartPoint.Unrecovered
	}
	o.StartPoint = &p
}

// askLater keeps the sources until they are asked.
func (o *Origin) askLater(sources []string) { o.Sources = sources }

// adopt makes this the origin of a run that continues an imported one.
func (o *Origin) adopt(former, export string) { o.FormerRun, o.Imported = former, export }

// startedBy sets who has started the run, or imported it.
func (o *Origin) startedBy(by string) { o.By = by }

// takeParts replaces the parts of the start by those with files of the run's own session. The words
// for files that are gone come before the task: the last text is the input of a flow.
func (o *Origin) takeParts(session string, parts []agent.Part) {
	start := *o.Start
	in := &start.Input
	in.Parts = nil
	for _, p := range parts {
		if p.File == nil {
			in.Parts = append(in.Parts, p)
		}
	}
	if len(in.Parts) > 0 && in.Text != "" {
		in.Parts, in.Text = append(in.Parts, agent.Part{Type: agent.PartText, Text: in.Text}), ""
	}
	for _, p := range parts {
		if p.File != nil && p.File.Session == session {
			in.Parts = append(in.Parts, p)
		}
	}
	o.Start = &start
}

// dropStart forgets what only the beginning needs.
func (o *Origin) dropStart() { o.Start, o.BriefingText, o.Sources, o.StartPoint = nil, "", nil, nil }

// begin takes the start, and asks for the Spec and the session's log.
func (s *step) begin(in Begin) {
	s.V, s.Session, s.Run = StateVersion, in.Session, in.Run
	s.Origin.Started = s.At
	s.Suspensions.begin(s.At)
	s.enterPhase(RunOpening)
	// Before the error: a child whose start is refused still reports its end.
	s.startedByParent(in.ChildStart)
	if in.Err != nil {
		s.Origin.refuseStart(in.Start)
		s.fail(in.Err)
		return
	}
	if bad := s.mayStartWith(in.Start.Input.Parts, in.ParentSession); bad != nil {
		s.Origin.refuseStart(in.Start)
		s.fail(bad)
		return
	}
	s.TraceSegment.Parent = w3ctrace.InMeta(in.Start.Meta)
	s.Origin.setStart(in.Start, in.BriefingText)
	_, copies := s.FilesOfParent()
	s.do(Open{OpenArgs{Session: s.Session, Agent: in.Start.Agent, Child: s.Parent.Start != nil, Copies: len(copies) > 0, After: in.Start.After, Input: s.Origin.flowInput(), Judge: in.Start.Judge}})
}

// opened takes the Spec. No later deploy changes it for this run.
func (s *step) opened(in Opened) {
	s.setLog(in.Head, in.Seq, in.Version, in.Counters, in.Receipts, in.Backlog)
	s.Log.setFence(in.Fence)
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	if _, foreign := s.FilesOfParent(); len(foreign) > 0 {
		s.Origin.takeParts(s.Session, in.Parts)
	}
	if err := s.needsSession(in.Spec); err != nil {
		s.fail(err)
		return
	}
	s.Origin.Imported = in.Imported
	if s.Origin.Start.Import != "" {
		s.enterPhase(RunImporting)
		s.do(Import{ImportArgs{Session: s.Session, Agent: s.Origin.Start.Agent, Digest: s.Origin.Start.Import}})
		return
	}
	s.Spec = in.Spec
	s.Log.setUnstored(s.Spec.Stateless)
	s.knowOwnInstructions()
	if s.Parent.Start != nil { // the parent waits for an end, and a daemon has none
		spec := *in.Spec
		spec.Daemon, s.Spec = nil, &spec
	}
	if err := s.lacksJudge(); err != nil {
		s.fail(err)
		return
	}
	// Only here is it known whether the agent is a daemon: a client does not know.
	if s.hasNoMessage() && s.Origin.Start.From == nil && s.daemon() == nil {
		s.fail(agent.Errorf(agent.CodeInvalidInput, "start refused: input is missing; say what to do in input.text: only a daemon begins without").WithPath("input"))
		return
	}
	s.Budget.setLimits(lowerLimits(in.Spec.Limits, s.Origin.Start.Limits))
	// Only here are all limits known: the agent's, the start's and the parent's grant.
	if err := s.lacksPrices(); err != nil {
		s.fail(err)
		return
	}
	if in.Unrecovered != "" {
		s.Origin.located(Located{Unrecovered: in.Unrecovered})
	}
	s.do(Publish{})
	s.Budget.startClock(s.Origin.Started)
	// Locate finds a fork's checkpoint, recovers the last events of terminated runs, migrates the
	// session's state, and reads which artifacts, active skills and lessons it has.
	old := in.Seq > 0 && (in.StateVersion != in.Spec.StateVersion || in.Counters.Artifact > 0 || in.Counters.Skill > 0 || in.Spec.Lessons && in.Counters.Lesson > 0 || s.needsFormerTask()) && s.Origin.Start.Carry != agent.CarryReset
	if s.Origin.Start.From != nil || len(in.TerminatedRuns) > 0 || old {
		s.enterPhase(RunLocating)
		s.Origin.Sources = in.Sources
		s.locate(in.TerminatedRuns)
		return
	}
	s.listSources(in.Sources)
}

// hasNoMessage reports whether the start has nothing for the model.
func (s *step) hasNoMessage() bool { return len(s.Origin.startMessage().Parts) == 0 }

// located takes the point in the log where the run begins.
func (s *step) located(in Located) {
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	// Again, after opened: Locate may have added a terminated run's last events to the log.
	s.setLog(in.Head, in.Seq, in.Version, in.Counters, in.Receipts, in.Backlog)
	s.Log.setChain(in.Chain)
	s.Artifacts.inherit(in.Artifacts)
	s.Skills.inherit(in.Skills)
	s.inheritLessons(in.Lessons)
	s.inheritTask(in.Task, in.TaskOf)
	s.Origin.located(in)
	s.listSources(s.Origin.Sources)
}

// listSources asks the sources for their tools, which only they know. A run that is being
// stopped does not: a source may take long.
func (s *step) listSources(sources []string) {
	if s.mustMakeWorkspace() {
		s.makeWorkspace(sources)
		return
	}
	if len(sources) > 0 && s.End.Stopping == nil {
		s.enterPhase(RunListing)
		s.list(sources)
		return
	}
	s.beginRun()
}

func (s *step) list(sources []string) { s.do(List{ListArgs{s.Session, s.Run, sources}}) }

// listed takes the tools of the sources.
func (s *step) listed(in Listed) {
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	spec := *s.Spec
	spec.Toolset = slices.Concat(spec.Toolset, in.Tools)
	spec = spec.WithSources(in.Instructions)
	s.Spec = &spec
	s.beginRun(in.Left...)
}

// toolsChanged gives the model the new tools of a source, from the next turn on. If they do
// not fit in the state, none is taken, and the log says so.
func (s *step) toolsChanged(r agent.ToolsChange) {
	ceilings := s.Parent.ceilings(*s.Spec)
	r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t agent.ToolSpec) bool { return !within(ceilings, t.Name) })
	// The event has the tools whole, and model calls read them from the log. The state keeps
	// them without texts.
	spec := withoutTexts(r.ApplyTo(*s.Spec))
	if n := specJSONLen(spec) + s.Parent.jsonLen(); n > specShare {
		refused := agent.Errorf(agent.CodeTooLarge, "with the other tools of %s what the agent is made of has %d bytes, and may have %d", r.Source, n, specShare)
		s.record(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &agent.ToolsChange{Source: r.Source, Refused: refused}})
		return
	}
	s.record(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &r})
	s.Spec = &spec
}

// beginRun writes the first events of the run, and lets the first turn begin. left is what
// is left out of the sources.
func (s *step) beginRun(left ...agent.ToolsChange) {
	// Not earlier: Located may have brought the receipt of this very message.
	message, sum := s.Origin.startMessage(), s.Origin.startDigest()
	if p, ok := s.Messages.receipt(s.Origin.Start.ID, s.Run); ok {
		err := p.Check(sum)
		if err == nil {
			err = agent.Errorf(agent.CodeStale, "message %s was taken by run %s of the session: it is not said twice", p.ID, p.Run).WithPath("id")
		}
		s.fail(asError(err))
		return
	}
	// Before OwnTools: a ceiling bounds a worker's tools and client tools, and none of the
	// runtime's.
	spec := s.boundSpec(*s.Spec)
	spec.Toolset = append(slices.Clip(spec.Toolset), OwnTools(spec)...)
	s.Spec = &spec
	if err := firstError(s.tooLong(), s.mayUseSkills(s.Origin.Start.Skills), s.checkBeyond()); err != nil {
		s.fail(err)
		return
	}
	s.rememberReceipt(message.ID, sum)
	s.beginArtifacts()
	s.beginMemory()
	// Before recordStart, which raises Seq.
	anew := s.Log.Seq == 0 || s.Origin.Start.Carry == agent.CarryReset
	s.recordStart()
	for _, r := range left {
		r.Tools = spec.ToolsOf(r.Source)
		spec = r.ApplyTo(spec)
		s.record(agent.Event{Type: agent.EventToolsChanged, ToolsChange: &r})
	}
	s.beginSkills()
	// Holds of the parent, and those that came while the run listed its tools.
	for _, h := range s.Holds.List {
		s.openSuspension(agent.InitiatorParent, string(h.Verb), h.Reason) // unless a suspension is open
		s.record(agent.Event{Type: agent.EventHoldAdded, Hold: &h})
	}
	// Before recordStartMessage: the message has to wait for the summary.
	if s.Origin.Start.Carry == agent.CarryCompact && !anew {
		s.Turn.summarizeFirst(agent.CompactedForCarry)
	}
	s.recordStartMessage(message)
	if s.Origin.Start.Park != nil {
		s.park(*s.Origin.Start.Park, agent.InitiatorOperator, "")
	}
	if spec.Redact {
		s.do(Publish{}) // the listing shows the task since the start, and must not any longer
	}
	// The log has the whole Spec now. The state keeps it without texts, to stay small.
	rules := withoutTexts(spec)
	s.Spec = &rules
	s.Origin.dropStart()
	s.enterPhase(RunActive)
}

// recordStartMessage records the start's message. A daemon without one continues what the
// run before it left unfinished, or becomes idle.
func (s *step) recordStartMessage(m agent.Message) {
	daemon := s.daemon() != nil
	s.Daemon.keepWorkIf(daemon && s.Origin.Start.Carry != agent.CarryReset) // a reset forgets the unfinished work
	switch {
	case len(m.Parts) > 0 && s.Turn.SummaryReason != "":
		// The summary is of the conversation before this run, so the message comes behind
		// it.
		s.Messages.addFirst(PendingMessage{Message: m, Mode: agent.SendSteer, Bytes: s.Origin.bytes(), Size: s.Origin.size()})
	case len(m.Parts) > 0:
		s.recordMessage(m, s.Origin.bytes())
	case s.Origin.Start.From != nil: // it continues from a checkpoint
	case s.Daemon.HasWork:
		s.Turn.setNote(fmt.Sprintf("The run before this one ended before you finished your last task. Continue it; it is %s.", s.now().Format(time.RFC3339)))
	default:
		s.goIdle()
		return
	}
	s.Daemon.setWork(daemon)
}

// recordStart records what the run is, and where in the session's log it begins.
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
		// Numbers of turns continue, so that the ids of calls stay unique. Limits and the
		// outcome count this run alone.
		s.Turn.setNumber(p.Turn)
		s.Budget.setForkTurn(p.Turn)
		s.Calls.inheritCounts(p.Tools)
		s.record(agent.Event{Type: agent.EventForked, Forked: p.Forked})
	}
	if p.Migrated != nil {
		s.record(agent.Event{Type: agent.EventStateMigrated, Migrated: p.Migrated})
	}
}

// setLog sets where the session's log ends, and takes over what the session's earlier runs
// left.
func (s *step) setLog(head string, seq, version int64, numbers remembered.Counters, receipts []remembered.Receipt, in remembered.Backlog) {
	s.Log.setHead(head, seq, version)
	s.Counters = numbers
	s.inheritGrants()
	s.Messages.inherit(receipts, in.Events)
	s.Daemon.setWork(in.Unfinished)
	// Holds of earlier runs have these numbers: none of them may stop an activity of this run.
	if n := numbers.Hold; n > 0 {
		s.Holds.remember(agent.HoldRef{Session: s.Session, N: n})
	}
}
