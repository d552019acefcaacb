package loop

import (
	"slices"
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
	s.Start, s.Labels, s.Task, s.Brief = &in.Start, in.Start.Labels, in.Start.Input.Task(), in.Brief
	s.do(Open{Agent: in.Start.Agent})
}

// opened takes the Spec, which no deploy changes any more for this run.
func (s *step) opened(in Opened) {
	s.Log.Head, s.Log.Seq, s.Log.Version = in.Head, in.Seq, in.Version
	s.Numbers = in.Numbers
	if n := in.Numbers.Hold; n > 0 {
		s.hear(agent.Heard{Session: s.Session, N: n}) // of the runs before this one
	}
	if in.Err != nil {
		s.fail(in.Err)
		return
	}
	s.Spec = in.Spec
	s.Limits = in.Spec.Limits.Lower(s.Start.Limits)
	if s.Limits.CostUSD > 0 && s.Spec.Price == (agent.Price{}) {
		s.fail(agent.Errorf(agent.InvalidInput, "limits.cost_usd can't be held, since the price of %s is not known", s.Spec.Model).At("limits.cost_usd"))
		return
	}
	s.do(Publish{})
	if s.Limits.WallClock > 0 {
		s.Deadline = s.Started.Add(time.Duration(s.Limits.WallClock))
	}
	if len(in.Sources) > 0 {
		s.Phase = Listing
		s.do(List{Sources: in.Sources})
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
	spec := s.bounded(*s.Spec)
	spec.Toolset = append(slices.Clip(spec.Toolset), ownTools(spec)...)
	s.Spec = &spec
	s.record(agent.Event{Type: agent.RunStarted, Started: &agent.Started{
		Run: s.Run, By: s.Start.By, Carry: s.Start.Carry, Spec: s.Spec,
	}})
	for _, h := range s.Holds {
		s.wait(agent.ByParent, string(h.Verb), h.Reason) // unless a suspension is open
		s.record(agent.Event{Type: agent.HoldLaid, Hold: &h})
	}
	s.say(inputMessage(s.Start, s.Brief))
	if s.Start.Park != nil {
		s.park(*s.Start.Park, agent.ByOperator, "")
	}
	rules := spec.Light()
	s.Spec, s.Start, s.Brief, s.Phase = &rules, nil, "", Resting
}

// continued goes on in a new execution: timers did not come along.
func (s *step) continued() {
	s.Wake, s.Leasing = time.Time{}, false
	for i := range s.Children {
		s.Children[i].Alone = s.Children[i].live() // nobody tells of its end but itself
	}
	s.LookAt = s.At.Add(leaseFirst)
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
