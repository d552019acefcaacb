package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// summarise asks the model for a summary, without tools; it is not a turn.
func (s *step) summarise(kind Summary) {
	s.Phase, s.Asked, s.Ask, s.Sum = Summing, s.At, s.Log.Seq, kind
	left := time.Duration(0)
	if s.Stopping != nil {
		left = s.Stopping.Until.Sub(s.At)
	}
	s.do(CallModel{Turn: s.Turn, Seq: s.Log.Seq, AfterToolResult: len(s.Tools) > 0, Summary: kind, Within: left})
}

// summaryCame takes a model's answer to the question for a summary.
func (s *step) summaryCame(r agent.Reply) {
	m := agent.Message{Parts: r.Parts}
	text := m.TextOf()
	if r.Finish == agent.FinishHeld {
		text = ""
	}
	if s.Sum != SumCompact {
		s.endTurn() // what it has cost
	}
	s.summed(text, r.Compaction, r.Finish == agent.FinishHeld)
}

// summed takes the summary, which is empty where the model gave none, and what
// of the conversation stays beside it. given tells that it was given up.
func (s *step) summed(text string, c *agent.Compaction, given bool) {
	s.Phase = Resting
	switch {
	case s.Sum == SumHandoff:
		s.Stopping.Summed, s.Stopping.Said = true, text
	case s.Sum == SumCompact:
		s.squeezed(text, c, given)
	case s.Stopping != nil: // it is asked for another
	case text == "":
		s.Fresh = "" // all that was said is better than nothing of it
	default:
		s.compacted(text, &agent.Compaction{Strategy: agent.CompactAll, Reason: s.Fresh})
		s.Fresh = ""
	}
}

// squeezed goes on with the turn for which the conversation was too long. Where
// it was given up, the turn is over.
func (s *step) squeezed(text string, c *agent.Compaction, given bool) {
	if given || s.Stopping != nil || s.held() {
		s.endTurn()
		return
	}
	if c != nil {
		s.compacted(text, c)
	}
	s.askModel()
}

func (s *step) compacted(text string, c *agent.Compaction) {
	e := agent.Event{Type: agent.Compacted, Compaction: c}
	if text != "" {
		m := agent.TextMessage(agent.RoleUser, text)
		m.Note, e.Message = agent.NoteSummary, &m
	}
	s.record(e)
}
