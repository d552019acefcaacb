package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

func (s *step) begin(in Begin) {
	s.V, s.Session, s.Run = agent.Version, in.Session, in.Run
	s.Started, s.Since = s.At, s.At
	s.Phase = Opening
	s.born(in.Birth)
	if in.Err != nil {
		// Nothing of what can't be meant is shown, but for a name that could be one.
		s.Start = &agent.Start{}
		if agent.CheckName(in.Start.Agent) == nil {
			s.Start.Agent = in.Start.Agent
		}
		s.fail(in.Err)
		return
	}
	s.Stint.Parent = agent.TraceparentIn(in.Start.Meta)
	s.Start, s.Labels, s.Task, s.Brief = &in.Start, in.Start.Labels, in.Start.Input.Task(), in.Brief
	s.do(Open{Agent: in.Start.Agent})
}

// opened takes the Spec, which no deploy changes any more for this run.
func (s *step) opened(in Opened) {
	s.Log.Head, s.Log.Seq, s.Log.Version, s.Log.Fence = in.Head, in.Seq, in.Version, in.Fence
	s.Numbers, s.Posts = in.Numbers, in.Posts
	s.inherit(in.Inbox)
	if n := in.Numbers.Hold; n > 0 {
		s.hear(agent.Heard{Session: s.Session, N: n}) // of the runs before this one
	}
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	s.Imported = in.Imported
	if s.Start.Import != "" {
		s.Phase = Importing
		s.do(Import{Digest: s.Start.Import})
		return
	}
	s.Spec = in.Spec
	if s.Birth != nil { // who gave it the work waits for its end
		spec := *in.Spec
		spec.Daemon, s.Spec = nil, &spec
	}
	if s.silent() && s.Start.From == nil && s.daemon() == nil {
		s.fail(agent.Errorf(agent.InvalidInput, "start refused: input is missing; say what to do in input.text: only a daemon begins without").At("input"))
		return
	}
	s.Limits = in.Spec.Limits.Lower(s.Start.Limits)
	if s.Limits.CostUSD > 0 && s.Spec.Price == (agent.Price{}) {
		s.fail(agent.Errorf(agent.InvalidInput, "limits.cost_usd can't be held, since the price of %s is not known", s.Spec.Model).At("limits.cost_usd"))
		return
	}
	if s.Limits.CostUSD > 0 && len(s.Spec.Unpriced) > 0 {
		s.fail(agent.Errorf(agent.InvalidInput, "limits.cost_usd can't be held, since the price of %s is not known", strings.Join(s.Spec.Unpriced, ", ")).At("limits.cost_usd"))
		return
	}
	if in.Lost != "" {
		s.Point = &Located{Lost: in.Lost}
	}
	s.do(Publish{})
	if s.Limits.WallClock > 0 {
		s.Deadline = s.Started.Add(time.Duration(s.Limits.WallClock))
	}
	old := in.Seq > 0 && in.State != in.Spec.StateVersion && s.Start.Carry != agent.CarryReset
	if s.Start.From != nil || len(in.Behind) > 0 || old {
		s.Phase, s.Sources = Locating, in.Sources
		s.Log.Fence.N++
		s.do(Locate{From: s.Start.From, Behind: in.Behind, Silent: s.silent(), Reset: s.Start.Carry == agent.CarryReset})
		return
	}
	s.list(in.Sources)
}

// silent tells whether the run was given nothing to say to the model.
func (s *step) silent() bool { return len(inputMessage(s.Start, s.Brief).Parts) == 0 }

// located takes the point where the run begins.
func (s *step) located(in Located) {
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	s.Log.Head, s.Log.Seq, s.Log.Version, s.Numbers = in.Head, in.Seq, in.Version, in.Numbers
	s.Posts, s.Log.Fence.Chain = in.Posts, max(s.Log.Fence.Chain, in.Chain)
	s.inherit(in.Inbox)
	if n := in.Numbers.Hold; n > 0 {
		s.hear(agent.Heard{Session: s.Session, N: n})
	}
	if p := s.Point; p != nil && in.Lost == "" {
		in.Lost = p.Lost
	}
	s.Point = &in
	s.list(s.Sources)
}

// list asks for the tools that only their sources know.
func (s *step) list(sources []string) {
	s.Sources = nil
	if len(sources) > 0 {
		s.Phase = Listing
		s.do(List{Sources: sources})
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
	s.Spec = &spec
	s.first()
}

// first writes the beginning of the run's part of the log and begins the first turn.
func (s *step) first() {
	if run := s.posted(s.Start.ID); run != "" {
		s.fail(agent.Errorf(agent.Stale, "message %s was taken by run %s of the session: it is not said twice", s.Start.ID, run).At("id"))
		return
	}
	spec := s.bounded(*s.Spec)
	spec.Toolset = append(slices.Clip(spec.Toolset), ownTools(spec)...)
	s.Spec = &spec
	s.post(s.Start.ID)
	anew := s.Log.Seq == 0 || s.Start.Carry == agent.CarryReset
	s.opening()
	for _, h := range s.Holds {
		s.wait(agent.ByParent, string(h.Verb), h.Reason) // unless a suspension is open
		s.record(agent.Event{Type: agent.HoldLaid, Hold: &h})
	}
	if s.Start.Carry == agent.CarryCompact && !anew {
		s.Fresh = agent.CompactedForCarry
	}
	s.firstWord(inputMessage(s.Start, s.Brief))
	if s.Start.Park != nil {
		s.park(*s.Start.Park, agent.ByOperator, "")
	}
	if spec.Redact {
		s.do(Publish{}) // in the place of what it was started with
	}
	rules := spec.Light()
	s.Spec, s.Start, s.Brief, s.Phase = &rules, nil, "", Resting
}

// firstWord says what the run was started with. A daemon that was told nothing goes
// on with what the run before it was at, or idles.
func (s *step) firstWord(m agent.Message) {
	daemon := s.daemon() != nil
	s.Due = s.Due && daemon && s.Start.Carry != agent.CarryReset // which has forgotten it
	switch {
	case len(m.Parts) > 0 && s.Fresh != "":
		s.Letters = slices.Insert(s.Letters, 0, Letter{Message: m, Mode: agent.SendSteer})
	case len(m.Parts) > 0:
		s.say(m)
	case s.Start.From != nil: // it goes on where a checkpoint is
	case s.Due:
		s.Note = fmt.Sprintf("The run before this one ended before you were done with what you were told last. Go on with it; it is %s.", s.now().Format(time.RFC3339))
	default:
		s.idleOn()
		return
	}
	s.Due = daemon
}

// opening writes what the run is and where in the session's log it begins.
func (s *step) opening() {
	e := agent.Started{Run: s.Run, By: s.Start.By, Carry: s.Start.Carry, Spec: s.Spec}
	p := s.Point
	s.Point = nil
	if p == nil {
		s.record(agent.Event{Type: agent.RunStarted, Started: &e})
		return
	}
	e.Recovered, e.Lost = p.Recovered, p.Lost
	s.record(agent.Event{Type: agent.RunStarted, Started: &e})
	if p.Forked != nil {
		// The counters go on, so that the ids of calls stay apart; the limits are new.
		s.Turn, s.Base.Turns, s.Tools = p.Turn, p.Turn, p.Tools
		s.record(agent.Event{Type: agent.RunForked, Forked: p.Forked})
	}
	if p.Migrated != nil {
		s.record(agent.Event{Type: agent.StateMigrated, Migrated: p.Migrated})
	}
}

// heavy goes on in this execution. It is carried over at a later turn, when less
// waits to be answered or said; a run that rests tries it no more.
func (s *step) heavy() {
	s.Heavy = s.Turn + 1
	s.settleDown()
}

// continued goes on in a new execution: timers did not come along.
func (s *step) continued() {
	s.Wake, s.Leasing = time.Time{}, false
	for i := range s.Children {
		s.Children[i].Alone = s.Children[i].live() // nobody tells of its end but itself
	}
	s.LookAt = s.At.Add(leaseFirst)
	s.settleDown()
}

// settleDown takes up what was left off for the carry-over.
func (s *step) settleDown() {
	s.Log.Closed = false
	if s.Wait != nil {
		s.Wait.Carried = true
	}
	s.Phase = Resting
	if len(s.Calls) > 0 {
		s.Phase = Working
	}
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
