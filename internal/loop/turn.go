package loop

import (
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// nextTurn asks the model again, unless a limit, a full history or a store that
// is behind stands before it.
func (s *step) nextTurn() {
	if err := s.limit(); err != nil {
		s.fail(err)
		return
	}
	if s.Full {
		s.Phase = Carrying
		s.sealRest(false)
		return
	}
	if s.Log.Sealing > 0 && s.Log.Bytes > waitAt {
		s.Phase = Storing
		return
	}
	s.Turn++
	s.Phase, s.Asked = Asking, s.At
	s.record(agent.Event{Type: agent.TurnStarted})
	s.do(CallModel{Turn: s.Turn, Seq: s.Log.Seq, AfterToolResult: len(s.Tools) > 0})
}

// replied looks at a reply in this order: cut off, refused, then what it says
// (catalogue PA-84).
func (s *step) replied(r agent.Reply) {
	s.Usage = s.Usage.Add(r.Usage)
	s.Cost += s.Spec.Price.Of(r.Usage)
	m := s.message(r)
	switch {
	case r.Finish == agent.FinishLength:
		s.unusable("it was cut off at its output limit; ask for less, or raise max_output_tokens")
		return
	case r.Finish == agent.FinishFiltered:
		if len(m.Parts) > 0 {
			s.say(withoutCalls(m))
		}
		s.endTurn()
		s.fail(agent.Errorf(agent.Refusal, "the model %s refused to answer: %s", s.Spec.Model, quote(m.TextOf())))
		return
	case m.TextOf() == "" && len(m.ToolCalls()) == 0:
		s.unusable("it was empty")
		return
	}
	s.Retried = 0
	s.say(m)
	if text := m.TextOf(); text != "" {
		s.Text = text
	}
	if calls := m.ToolCalls(); len(calls) > 0 {
		s.Nudged = 0
		s.dispatch(calls, r)
		return
	}
	s.endTurn()
	s.answered(r)
}

// message gives a reply's calls our ids and makes it a message.
func (s *step) message(r agent.Reply) agent.Message {
	m := agent.Message{Role: agent.RoleAssistant, Model: s.Spec.Model}
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
func (s *step) unusable(why string) {
	s.record(agent.Event{Type: agent.ModelRetried})
	s.endTurn()
	s.Retried++
	if s.Retried > 1 {
		s.fail(agent.Errorf(agent.BadOutput, "the reply of %s was of no use, twice: %s", s.Spec.Model, why))
		return
	}
	s.note(agent.NoteRetry, "Your last reply could not be used: "+why+". Answer again, more briefly where you can.")
	s.nextTurn()
}

// answered decides what a reply without tool calls means.
func (s *step) answered(r agent.Reply) {
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
	s.nextTurn()
}

func (s *step) repair(fault string) {
	s.Repaired++
	if s.Repaired > s.Spec.Repairs {
		s.fail(agent.Errorf(agent.BadOutput, "the output does not fit the agent's schema: %s", fault))
		return
	}
	s.note(agent.NoteRepair, "Your answer does not fit the schema of the output: "+fault+"\nAnswer again with JSON that fits it, and with nothing else.")
	s.nextTurn()
}

// endTurn writes the turn's checkpoint.
func (s *step) endTurn() {
	s.record(agent.Event{Type: agent.TurnEnded, Checkpoint: &agent.Checkpoint{Usage: s.Usage, Cost: s.Cost, Tools: s.Tools}})
}

// limit finds the first limit that stands before the next model call, in this
// order: turns, time, tokens, cost (catalogue PA-83).
func (s *step) limit() *agent.Error {
	l := s.Limits
	switch {
	case l.Turns > 0 && s.Turn >= l.Turns:
		return agent.Errorf(agent.LimitTurns, "the run has made the %d model calls that limits.turns allows", l.Turns)
	case !s.Deadline.IsZero() && !s.At.Before(s.Deadline):
		return s.outOfTime()
	case l.Tokens > 0 && s.Usage.Total() >= l.Tokens:
		return agent.Errorf(agent.LimitTokens, "the run has used %d tokens; limits.tokens allows %d", s.Usage.Total(), l.Tokens)
	case l.CostUSD > 0 && s.Cost >= l.CostUSD:
		return agent.Errorf(agent.LimitCost, "the run has cost %s USD; limits.cost_usd allows %s", s.Cost, l.CostUSD)
	}
	return nil
}

func (s *step) outOfTime() *agent.Error {
	return agent.Errorf(agent.LimitTime, "the run has worked for the %s that limits.wall_clock allows", s.Limits.WallClock)
}

func (s *step) modelFailed(err *agent.Error) {
	s.endTurn()
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
