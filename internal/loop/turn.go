package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// nextTurn asks the model again, unless a limit or a store that is behind stands
// before it.
func (s *step) nextTurn() {
	if err := s.limit(); err != nil {
		s.reached(err, s.Spec.OnLimit)
		return
	}
	if s.Log.Bytes > waitAt && (s.Log.Sealing > 0 || s.Log.Fault != nil) {
		return
	}
	if s.Fresh != "" {
		s.summarise(SumFresh)
		return
	}
	s.deliver(false)
	s.Turn++
	s.Squeezed = false
	s.record(agent.Event{Type: agent.TurnStarted})
	s.askModel()
}

func (s *step) askModel() {
	s.Phase, s.Asked, s.Ask = Asking, s.At, s.Log.Seq
	s.do(CallModel{Turn: s.Turn, Seq: s.Ask, AfterToolResult: len(s.Tools) > 0, Note: s.Note, Squeeze: s.Squeezed})
}

// reached fails the run at a bound, or asks what to do (catalogue X-06).
func (s *step) reached(err *agent.Error, on agent.OnReached) {
	if on == agent.AskOnReached {
		s.askLimit(err)
		return
	}
	s.fail(err)
}

// replied takes the model's answer, whole or what there is of it.
func (s *step) replied(in Replied) {
	r := in.Reply
	if r.Finish == agent.FinishHeld && r.Hold != nil && !s.justified(*r.Hold) {
		s.outdated(*r.Hold)
		s.again()
		return
	}
	if s.heed(r.Hold); s.over() {
		return
	}
	s.Usage = s.Usage.Add(r.Usage)
	s.Cost += s.costOf(r)
	given := s.Giving
	s.Giving = nil
	switch {
	case s.Phase == Summing:
		s.summaryCame(r)
		return
	case r.Finish == agent.FinishFull && (given != nil || s.Stopping != nil):
		s.endTurn()
		s.Phase = Resting
		return
	case r.Finish == agent.FinishFull:
		s.Squeezed = true
		s.summarise(SumCompact)
		return
	}
	s.Note = ""
	m := s.message(r)
	if r.Finish == agent.FinishHeld {
		if m.Partial = true; len(m.Parts) > 0 {
			s.say(m)
		}
		s.endTurn()
		s.Phase = Resting
		return
	}
	s.take(in, m, given)
}

// costOf is what a reply cost, with the price of the model that gave it.
func (s *step) costOf(r agent.Reply) agent.USD {
	if r.Model != "" {
		return r.Cost
	}
	return s.Spec.Price.Of(r.Usage)
}

// again makes a model call once more that was given up for a hold which is over.
func (s *step) again() {
	switch {
	case s.Phase == Summing && s.Sum == SumCompact:
		s.summarise(SumCompact) // in the turn that waits for it
	case s.Phase == Summing:
		s.Phase = Resting // it begins anew from there
	default:
		s.askModel()
	}
}

// take looks at a whole reply in this order: cut off, refused, then what it says
// (catalogue PA-84).
func (s *step) take(in Replied, m agent.Message, given *Giving) {
	r := in.Reply
	switch {
	case r.Finish == agent.FinishLength:
		s.unusable(m.Model, "it was cut off at its output limit; ask for less, or raise max_output_tokens")
		return
	case r.Finish == agent.FinishFiltered:
		if len(m.Parts) > 0 {
			s.say(withoutCalls(m))
		}
		s.endTurn()
		s.fail(agent.Errorf(agent.Refusal, "the model %s refused to answer: %s", m.Model, quote(m.TextOf())))
		return
	case m.TextOf() == "" && len(m.ToolCalls()) == 0:
		s.unusable(m.Model, "it was empty")
		return
	}
	s.Retried = 0
	s.say(m)
	if text := m.TextOf(); text != "" {
		s.Text = text
	}
	if calls := m.ToolCalls(); len(calls) > 0 {
		s.Nudged = 0
		s.dispatch(calls, in, given)
		return
	}
	s.endTurn()
	s.answered(r)
}

// message gives a reply's calls our ids and makes it a message.
func (s *step) message(r agent.Reply) agent.Message {
	m := agent.Message{Role: agent.RoleAssistant, Model: cmp.Or(r.Model, s.Spec.Model)}
	n := 0
	for _, p := range r.Parts {
		if p.Type == agent.PartCall && p.Call != nil {
			n++
			c := *p.Call
			c.ID = agent.CallID(s.Turn, n)
			p.Call = &c
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// unusable drops a reply and asks once more; a second one in a row ends the run
// (catalogue PA-44).
func (s *step) unusable(model, why string) {
	s.record(agent.Event{Type: agent.ModelRetried})
	s.endTurn()
	s.Retried++
	if s.Retried > 1 {
		s.fail(agent.Errorf(agent.BadOutput, "the reply of %s was of no use, twice: %s", model, why))
		return
	}
	s.note(agent.NoteRetry, "Your last reply could not be used: "+why+". Answer again, more briefly where you can.")
	s.Phase = Resting
}

// answered decides what a reply without tool calls means.
func (s *step) answered(r agent.Reply) {
	s.Phase = Resting
	if s.Stopping != nil { // its text is in the handoff
		s.Due = s.Due && (s.finishes() || r.OutputFault != "")
		return
	}
	if s.deliver(true) {
		return // it goes on with what was sent
	}
	if s.Spec.Completion == agent.CompleteTool {
		s.nudge()
		return
	}
	if r.OutputFault != "" {
		s.repair(r.OutputFault)
		return
	}
	s.complete(agent.ReasonDone, s.Text, r)
}

const nudgeText = "You have not called a tool. Go on with the task; when it is done, call the tool finish."

func (s *step) nudge() {
	s.Nudged++
	if s.Nudged > s.Spec.Nudges {
		s.fail(agent.Errorf(agent.Stuck, "the model answered %d times in a row without calling a tool; it must call %q to end", s.Nudged, agent.FinishTool))
		return
	}
	text := s.Spec.Nudge
	if text == "" {
		text = nudgeText
	}
	s.note(agent.NoteNudge, text)
}

func (s *step) repair(fault string) {
	s.Repaired++
	if s.Repaired > s.Spec.Repairs {
		s.fail(agent.Errorf(agent.BadOutput, "the output does not fit the agent's schema: %s", fault))
		return
	}
	s.note(agent.NoteRepair, "Your answer does not fit the schema of the output: "+fault+"\nAnswer again with JSON that fits it, and with nothing else.")
}

// endTurn writes the turn's checkpoint.
func (s *step) endTurn() {
	s.record(agent.Event{Type: agent.TurnEnded, Checkpoint: s.checkpoint()})
}

func (s *step) checkpoint() *agent.Checkpoint {
	c := &agent.Checkpoint{Usage: s.Usage, Cost: s.Cost, Tools: s.Tools}
	for _, call := range s.Calls {
		if len(call.Set) > 0 && c.Set == nil {
			c.Set = map[string]json.RawMessage{}
		}
		maps.Copy(c.Set, call.Set) //workflowcheck:ignore each key is set once
	}
	return c
}

// limit finds the first limit that stands before the next model call, in this
// order: turns, time, tokens, cost (catalogue PA-83).
func (s *step) limit() *agent.Error {
	l := s.Limits
	tokens, cost := s.Usage.Total()-s.Base.Tokens, s.Cost-s.Base.CostUSD
	switch {
	case l.Turns > 0 && s.Turn-s.Base.Turns >= l.Turns:
		return agent.Errorf(agent.LimitTurns, "the run has made the %d model calls that limits.turns allows", l.Turns)
	case !s.Deadline.IsZero() && !s.At.Before(s.Deadline):
		return s.outOfTime()
	case l.Tokens > 0 && tokens >= l.Tokens:
		return agent.Errorf(agent.LimitTokens, "the run has used %d tokens; limits.tokens allows %d", tokens, l.Tokens)
	case l.CostUSD > 0 && cost >= l.CostUSD:
		return agent.Errorf(agent.LimitCost, "the run has cost %s USD; limits.cost_usd allows %s", cost, l.CostUSD)
	}
	return nil
}

func (s *step) outOfTime() *agent.Error {
	return agent.Errorf(agent.LimitTime, "the run has worked for the %s that limits.wall_clock allows", s.Limits.WallClock)
}

// modelFailed ends the run, but not where the call was given up anyway or was for
// a summary.
func (s *step) modelFailed(err *agent.Error) {
	given := s.Giving
	s.Giving = nil
	if s.Phase == Summing {
		s.summed("", nil, given != nil)
		return
	}
	s.endTurn()
	if given != nil {
		s.Phase = Resting
		return
	}
	s.fail(err)
}

// withoutCalls drops the calls of a message whose run ends before they are made.
func withoutCalls(m agent.Message) agent.Message {
	var parts []agent.Part
	for _, p := range m.Parts {
		if p.Type != agent.PartCall {
			parts = append(parts, p)
		}
	}
	m.Parts = parts
	return m
}

// quote shortens a text for a message on one line.
func quote(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
