package loop

import (
	"cmp"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Adaptive is the part that moves a limit of the run's own turns with what the run does. It is zero
// unless the Spec has limits.adaptive.
type Adaptive struct {
	// Limit is the limit now; zero means the initial one.
	Limit int `json:"limit,omitempty"`
	// Progress is what this turn brought; empty for nothing. Called means that it had a call, which
	// extends the limit also if it failed: the model learns from a failing test. Stalled counts the
	// turns in a row before this one that brought nothing.
	Progress agent.MoveReason `json:"progress,omitempty"`
	Called   bool             `json:"called,omitempty"`
	Stalled  int              `json:"stalled,omitempty"`
	// Extensions counts the moves up. Moves are the last moves.
	Extensions int               `json:"extensions,omitempty"`
	Moves      []agent.LimitMove `json:"moves,omitempty"`
}

const (
	// stalledTurns is how many turns in a row bring nothing before the limit shrinks.
	stalledTurns = 2
	// maxMoves is how many moves are remembered. The log has all of them.
	maxMoves = 32
)

func (a Adaptive) clone() Adaptive {
	a.Moves = slices.Clip(a.Moves)
	return a
}

// startTurn begins to look at a turn; after says whether another one was before it.
func (a *Adaptive) startTurn(after bool) {
	if a.Progress != "" || !after {
		a.Stalled = 0
	} else {
		a.Stalled++
	}
	a.Progress, a.Called = "", false
}

// note notes what the turn brought, and called that it made a call.
func (a *Adaptive) note(why agent.MoveReason) { a.Progress = why }
func (a *Adaptive) called()                   { a.Called = true }

// renew begins with the initial limit again: a person let the run continue, or a daemon was woken.
func (a *Adaptive) renew() { a.Limit, a.Stalled = 0, 0 }

// move moves the limit.
func (a *Adaptive) move(m agent.LimitMove) {
	if m.To > m.From {
		a.Extensions++
	}
	a.Limit, a.Stalled, a.Moves = m.To, -1, append(a.Moves, m) // -1: this turn is judged already
	a.Moves = a.Moves[max(0, len(a.Moves)-maxMoves):]
}

// adaptiveTurns returns how many turns the run has taken by its adaptive limit, and the limit now;
// ok is false without such a limit.
func (s *State) adaptiveTurns() (used, limit int, ok bool) {
	l := s.Budget.Limits
	if l.Adaptive == nil {
		return 0, 0, false
	}
	limit = s.Adaptive.Limit
	if limit == 0 {
		limit = l.Adaptive.Initial
	}
	return s.ownTurns() - s.Budget.OwnTurnsAtRenewal, min(limit, l.OwnTurns), true
}

// adaptiveMove returns the move of the adaptive limit that is due; nil if none is.
func (s *step) adaptiveMove() *agent.LimitMove {
	used, limit, ok := s.adaptiveTurns()
	if !ok || used == 0 {
		return nil
	}
	a, m := s.Budget.Limits.Adaptive, agent.LimitMove{Limit: "own_turns", From: limit, Turn: s.Turn.N, Reason: s.Adaptive.Progress}
	if m.Reason == "" && len(s.missingTools()) > 0 {
		m.Reason = agent.MovedByMissing
	}
	switch {
	case used >= limit && (m.Reason != "" || s.Adaptive.Called):
		m.Reason = cmp.Or(m.Reason, agent.MovedByToolCall)
		m.To = min(limit+a.ExtendBy, s.Budget.Limits.OwnTurns)
	case m.Reason == "" && a.ShrinkBy > 0 && s.Adaptive.Stalled+1 >= stalledTurns:
		m.To, m.Reason = min(limit, max(limit-a.ShrinkBy, used+1)), agent.MovedByStall
	default:
		return nil
	}
	if m.To == limit {
		return nil
	}
	return &m
}

// moveLimit moves the adaptive limit.
func (s *step) moveLimit() {
	m := s.adaptiveMove()
	s.Adaptive.move(*m)
	s.record(agent.Event{Type: agent.EventLimitMoved, Moved: m})
}

// startAdaptiveTurn begins to look at the next turn, if the Spec has limits.adaptive.
func (s *step) startAdaptiveTurn() {
	if s.Budget.Limits.Adaptive != nil {
		s.Adaptive.startTurn(s.ownTurns() > 0)
	}
}

// noteMove notes what the turn brought, if the Spec has limits.adaptive.
func (s *step) noteMove(why agent.MoveReason) {
	if s.Budget.Limits.Adaptive != nil {
		s.Adaptive.note(why)
	}
}

// adaptiveBudget returns how the adaptive limit moved; nil without one.
func (s *step) adaptiveBudget() *agent.AdaptiveBudget {
	_, limit, ok := s.adaptiveTurns()
	if !ok {
		return nil
	}
	return &agent.AdaptiveBudget{Decisions: append([]agent.LimitMove{}, s.Adaptive.Moves...), ExtensionsUsed: s.Adaptive.Extensions, FinalLimit: limit}
}
