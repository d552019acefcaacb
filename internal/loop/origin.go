package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Origin is the part that knows how the run began, and brings it to its first turn.
type Origin struct {
	// Imported is the export that the session came with; empty for one that began here.
	// Former is the run that this one goes on with, if it does.
	Imported string `json:"imported,omitempty"`
	Former   string `json:"former,omitempty"`
	// Start is what was asked for, until the run has opened, and Brief the text of its
	// briefing.
	Start *agent.Start `json:"start,omitempty"`
	Brief string       `json:"brief,omitempty"`
	// Sources are asked for their tools, and Point is where the log begins for the run,
	// until it has opened.
	Sources []string `json:"sources,omitempty"`
	Point   *Located `json:"point,omitempty"`

	Task    string            `json:"task,omitempty"` // the first characters of what was asked
	Labels  map[string]string `json:"labels,omitempty"`
	Started time.Time         `json:"started"`
}

// Labels are those that the run was started with, or the one above it.
func (s *State) Labels() map[string]string {
	if s.Parent.Birth != nil {
		return s.Parent.Birth.Labels
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

// Arriving reports whether the run is one that was imported, and what it was is not known yet.
func (s *State) Arriving() bool {
	return s.Life == Importing || s.Unwritten() && s.Origin.Start != nil && s.Origin.Start.Import != ""
}

// asked takes what the run was started with.
func (o *Origin) asked(start agent.Start, brief string) {
	o.Start, o.Labels, o.Task, o.Brief = &start, start.Labels, start.Input.Task(), brief
}

// refused keeps nothing of a start that can't be meant but for a name that could be one.
func (o *Origin) refused(start agent.Start) {
	o.Start = &agent.Start{}
	if agent.CheckName(start.Agent) == nil {
		o.Start.Agent = start.Agent
	}
}

// located takes where the log begins for the run.
func (o *Origin) located(p Located) {
	if o.Point != nil && p.Lost == "" {
		p.Lost = o.Point.Lost
	}
	o.Point = &p
}

// moved makes the origin that of a run which goes on with one that was elsewhere.
func (o *Origin) moved(former, export string) { o.Former, o.Imported = former, export }

// dropStart forgets what only the beginning needs.
func (o *Origin) dropStart() { o.Start, o.Brief, o.Sources, o.Point = nil, "", nil, nil }

func (s *step) begin(in Begin) {
	s.V, s.Session, s.Run = StateVersion, in.Session, in.Run
	s.Origin.Started = s.At
	s.Rest.begin(s.At)
	s.enterLife(Opening)
	s.born(in.Birth)
	if in.Err != nil {
		s.Origin.refused(in.Start)
		s.fail(in.Err)
		return
	}
	s.Stint.Parent = agent.TraceparentIn(in.Start.Meta)
	s.Origin.asked(in.Start, in.Brief)
	s.do(Open{OpenStep{Session: s.Session, Agent: in.Start.Agent, Child: s.Parent.Birth != nil, After: in.Start.After}})
}

// opened takes the Spec, which no deploy changes any more for this run.
func (s *step) opened(in Opened) {
	s.goesOn(in.Head, in.Seq, in.Version, in.Numbers, in.Posts, in.Inbox)
	s.Log.goesOn(in.Fence)
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	s.Origin.Imported = in.Imported
	if s.Origin.Start.Import != "" {
		s.enterLife(Importing)
		s.do(Import{ImportStep{Session: s.Session, Agent: s.Origin.Start.Agent, Digest: s.Origin.Start.Import}})
		return
	}
	s.Spec = in.Spec
	if s.Parent.Birth != nil { // who gave it the work waits for its end
		spec := *in.Spec
		spec.Daemon, s.Spec = nil, &spec
	}
	if s.silent() && s.Origin.Start.From == nil && s.daemon() == nil {
		s.fail(agent.Errorf(agent.InvalidInput, "start refused: input is missing; say what to do in input.text: only a daemon begins without").At("input"))
		return
	}
	s.Budget.allow(in.Spec.Limits.Lower(s.Origin.Start.Limits))
	if models := s.unpriced(); len(models) > 0 && s.reckon().left(agent.ResourceCost) != plenty {
		s.fail(agent.Errorf(agent.InvalidInput, "limits.cost_usd can't be held, since the price of %s is not known", strings.Join(models, ", ")).At("limits.cost_usd"))
		return
	}
	if in.Lost != "" {
		s.Origin.located(Located{Lost: in.Lost})
	}
	s.do(Publish{})
	s.Budget.starts(s.Origin.Started)
	old := in.Seq > 0 && in.State != in.Spec.StateVersion && s.Origin.Start.Carry != agent.CarryReset
	if s.Origin.Start.From != nil || len(in.Behind) > 0 || old {
		s.enterLife(Locating)
		s.Origin.Sources = in.Sources
		s.locateStep(in.Behind)
		return
	}
	s.list(in.Sources)
}

// unpriced are the models that the run may ask and whose price is not known.
func (s *step) unpriced() []string {
	if s.Spec.Price == (agent.Price{}) {
		return []string{s.Spec.Model}
	}
	return s.Spec.Unpriced
}

// silent reports whether the run was given nothing to say to the model.
func (s *step) silent() bool { return len(s.Origin.first().Parts) == 0 }

// located takes the point where the run begins.
func (s *step) located(in Located) {
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	s.goesOn(in.Head, in.Seq, in.Version, in.Numbers, in.Posts, in.Inbox)
	s.Log.written(in.Chain)
	s.Origin.located(in)
	s.list(s.Origin.Sources)
}

// list asks for the tools that only their sources know. A run that is being stopped calls
// none.
func (s *step) list(sources []string) {
	if len(sources) > 0 && s.End.Stopping == nil {
		s.enterLife(Listing)
		s.do(List{ListStep{s.Session, s.Run, sources}})
		return
	}
	s.first()
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
	s.first(in.Left...)
}

// relisted gives the model a source's other tools, from the next turn on. The log has them
// whole: it is what the model is asked by. What is beyond a ceiling is left out; of more
// than can be kept nothing is taken, and the log says that the model goes on with what it has.
func (s *step) relisted(r agent.Relisted) {
	ceilings := s.Parent.over(*s.Spec)
	r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t agent.ToolSpec) bool { return !within(ceilings, t.Name) })
	spec := r.In(*s.Spec).Light()
	if n := specInJSON(spec) + s.Parent.inJSON(); n > specShare {
		refused := agent.Errorf(agent.TooLarge, "with the other tools of %s what the agent is made of has %d bytes, and may have %d", r.Source, n, specShare)
		s.record(agent.Event{Type: agent.ToolsChanged, Relisted: &agent.Relisted{Source: r.Source, Refused: refused}})
		return
	}
	s.record(agent.Event{Type: agent.ToolsChanged, Relisted: &r})
	s.Spec = &spec
}

// first writes the beginning of the run's part of the log and begins the first turn. left is
// what is left out of sources.
func (s *step) first(left ...agent.Relisted) {
	message, sum := s.Origin.first(), s.Origin.sum()
	if p, ok := s.Messages.posted(s.Origin.Start.ID, s.Run); ok {
		err := p.Is(sum)
		if err == nil {
			err = agent.Errorf(agent.Stale, "message %s was taken by run %s of the session: it is not said twice", p.ID, p.Run).At("id")
		}
		s.fail(asError(err))
		return
	}
	spec := s.bounded(*s.Spec)
	spec.Toolset = append(slices.Clip(spec.Toolset), ownTools(spec)...)
	s.Spec = &spec
	if err := s.tooLong(); err != nil {
		s.fail(err)
		return
	}
	s.post(message.ID, sum)
	anew := s.Log.Seq == 0 || s.Origin.Start.Carry == agent.CarryReset
	s.opening()
	for _, r := range left {
		r.Tools = spec.ToolsOf(r.Source)
		spec = r.In(spec)
		s.record(agent.Event{Type: agent.ToolsChanged, Relisted: &r})
	}
	for _, h := range s.Holds.List {
		s.openSuspension(agent.ByParent, string(h.Verb), h.Reason) // unless a suspension is open
		s.record(agent.Event{Type: agent.HoldLaid, Hold: &h})
	}
	if s.Origin.Start.Carry == agent.CarryCompact && !anew {
		s.Turn.anew(agent.CompactedForCarry)
	}
	s.firstWord(message)
	if s.Origin.Start.Park != nil {
		s.park(*s.Origin.Start.Park, agent.ByOperator, "")
	}
	if spec.Redact {
		s.do(Publish{}) // instead of what it was started with
	}
	rules := spec.Light()
	s.Spec = &rules
	s.Origin.dropStart()
	s.enterLife(Live)
}

// tooLong refuses a start of which more would have to be kept than there is room for.
func (s *step) tooLong() *agent.Error {
	park := s.Origin.Start.Park
	switch n := specInJSON(s.Spec.Light()) + s.Parent.inJSON(); {
	case n > specShare:
		return agent.Errorf(agent.TooLarge, "what agent %s is made of is too long to be kept: its rules, names of tools, ceilings and schemas have %d bytes with those of the agents above, and may have %d", s.Spec.Name, n, specShare).At("agent")
	case park != nil && conditionsInJSON(*park) > s.space():
		return agent.Errorf(agent.TooLarge, "start refused: what the run would wait for is too long to be kept").At("park")
	case s.Origin.Start.Carry == agent.CarryCompact && !s.mayWaitAs(s.Origin.size()):
		return agent.Errorf(agent.TooLarge, "start refused: the input is too long to wait for the summary that comes before it (it may have %d bytes)", pendingShare).At("input")
	}
	return nil
}

// firstWord says what the run was started with. A daemon that was told nothing goes
// on with what the run before it was at, or idles.
func (s *step) firstWord(m agent.Message) {
	daemon := s.daemon() != nil
	s.Daemon.keepsDue(daemon && s.Origin.Start.Carry != agent.CarryReset) // which has forgotten it
	switch {
	case len(m.Parts) > 0 && s.Turn.Fresh != "":
		s.Messages.first(Pending{Message: m, Mode: agent.SendSteer, Bytes: s.Origin.bytes(), Size: s.Origin.size()})
	case len(m.Parts) > 0:
		s.say(m, s.Origin.bytes())
	case s.Origin.Start.From != nil: // it goes on where a checkpoint is
	case s.Daemon.Due:
		s.Turn.notes(fmt.Sprintf("The run before this one ended before you were done with what you were told last. Go on with it; it is %s.", s.now().Format(time.RFC3339)))
	default:
		s.idleOn()
		return
	}
	s.Daemon.dueIf(daemon)
}

// opening writes what the run is and where in the session's log it begins.
func (s *step) opening() {
	e := agent.Started{Run: s.Run, By: s.Origin.Start.By, Carry: s.Origin.Start.Carry, Spec: s.Spec}
	s.Budget.said(weight(agent.Event{Started: &e}))
	p := s.Origin.Point
	if p == nil {
		s.record(agent.Event{Type: agent.RunStarted, Started: &e})
		return
	}
	e.Recovered, e.Lost = p.Recovered, p.Lost
	s.record(agent.Event{Type: agent.RunStarted, Started: &e})
	if p.Forked != nil {
		// The numbers go on, so that the ids of calls stay apart; limits and outcome are the
		// run's own.
		s.Turn.goesOn(p.Turn)
		s.Budget.began(p.Turn)
		s.Calls.goesOn(p.Tools)
		s.record(agent.Event{Type: agent.RunForked, Forked: p.Forked})
	}
	if p.Migrated != nil {
		s.record(agent.Event{Type: agent.StateMigrated, Migrated: p.Migrated})
	}
}

// goesOn takes where the session's log ends, and what its runs before this one have left.
func (s *step) goesOn(head string, seq, version int64, numbers agent.Numbers, posts []agent.Post, in agent.Inbox) {
	s.Log.opens(head, seq, version)
	s.Numbers = numbers
	s.Messages.inherit(posts, in.Events)
	s.Daemon.dueIf(in.Cut)
	if n := numbers.Hold; n > 0 {
		s.Holds.hear(agent.Heard{Session: s.Session, N: n}) // of the runs before this one
	}
}

// continued goes on in a new execution: timers did not come along.
func (s *step) continued() {
	s.Wake = time.Time{}
	s.Parent.forgetLook()
	s.Children.carried(s.At)
	s.Log.stays()
	s.Rest.markCarried()
	if s.Life == Carrying { // else it was imported as it stood
		s.enterLife(Live)
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
