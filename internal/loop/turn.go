package loop

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// Turn is the part that asks the model: one call of it and the tool calls that it asks
// for are a turn. Turns are numbered over the session's life.
type Turn struct {
	N     int       `json:"n"`
	Phase TurnPhase `json:"phase,omitempty"`
	// Asked is since when the model is asked, and Ask the event up to which the
	// conversation goes: by it a reply is known. A call that is made again within a turn
	// has the same one; one that was given up has an event behind it.
	Asked  time.Time `json:"asked,omitzero"`
	AskSeq int64     `json:"ask_seq,omitempty"`
	// Delay is until when the model was not to be asked, the last time in this call.
	Delay *agent.Delay `json:"delay,omitempty"`
	// Summary is what the summary is for that the model is asked for.
	Summary Summary `json:"summary,omitempty"`
	Text    string  `json:"text,omitempty"` // the beginning of the last that the model said

	// Nudged, Repaired and Retried count how often in a row the model has only talked,
	// missed the schema, or sent a reply that was of no use.
	Nudged   int    `json:"nudged,omitempty"`
	Repaired int    `json:"repaired,omitempty"`
	Retried  int    `json:"retried,omitempty"`
	Repeat   Repeat `json:"repeat,omitzero"`

	// Note is said to the model once, behind everything, and is not stored.
	Note string `json:"note,omitempty"`
	// SummaryReason is why the next turn begins from a summary; empty if it does not.
	SummaryReason string `json:"summary_reason,omitempty"`
	// ForceFit means that the conversation was compacted in this turn: what is still too
	// long for the model's window is cut.
	ForceFit bool `json:"force_fit,omitempty"`
}

// maxLast bounds what is kept of the last text. The transcript has all of it.
const maxLast = turnShare - 6<<10

// maxDelay bounds the reason of a delay, in bytes.
const maxDelay = 1 << 10

// Repeat counts equal calls in a row.
type Repeat struct {
	Digest string `json:"digest"`
	Count  int    `json:"count"`
}

// Summary is what a summary is for.
type Summary string

// What summaries are for.
const (
	SummaryForHandoff    Summary = "handoff"    // for whoever carries on
	SummaryForResume     Summary = "resume"     // for the run itself, replaces all that was said
	SummaryForCompaction Summary = "compaction" // for the run itself, replaces what is older
)

// inFlight reports whether the model is at work.
func (t Turn) inFlight() bool { return t.Phase == TurnAsking || t.Phase == TurnSummarizing }

// next numbers a new turn.
func (t *Turn) next() { t.N, t.ForceFit = t.N+1, false }

// setNumber continues the count of the run that this one is a fork of.
func (t *Turn) setNumber(n int) { t.N = n }

func (t *Turn) ask(at time.Time, upTo int64) {
	enter(turnTransitions, &t.Phase, TurnAsking)
	t.Asked, t.AskSeq, t.Delay = at, upTo, nil
}

func (t *Turn) askSummary(at time.Time, upTo int64, what Summary) {
	enter(turnTransitions, &t.Phase, TurnSummarizing)
	t.Asked, t.AskSeq, t.Delay, t.Summary = at, upTo, nil, what
}

// delay takes that the model is not asked for a while.
func (t *Turn) delay(d *agent.Delay) { t.Delay = d }

// startCalls begins to make the calls of a reply.
func (t *Turn) startCalls() { enter(turnTransitions, &t.Phase, TurnWorking) }

// end makes the turn one that is over, if one is in progress.
func (t *Turn) end() {
	t.Delay = nil
	if t.Phase != TurnReady {
		enter(turnTransitions, &t.Phase, TurnReady)
	}
}

// setText takes the text of a reply that can be used.
func (t *Turn) setText(text string) {
	t.Retried = 0
	if text != "" {
		t.Text = excerpt.Of(text, bytesWithin(text, maxLast), len(text))
	}
}

// useless counts a reply of no use, and reports whether another may be asked for: a
// second in a row ends the run.
func (t *Turn) useless() (again bool) {
	t.Retried++
	return t.Retried <= 1
}

// acted takes that the model has called tools, and so did not only talk.
func (t *Turn) acted() { t.Nudged = 0 }

// nudge and repair count what the model did wrong, and report whether it may again.
func (t *Turn) nudge(most int) (again bool) {
	t.Nudged++
	return t.Nudged <= most
}

func (t *Turn) repair(most int) (again bool) {
	t.Repaired++
	return t.Repaired <= most
}

// countRepeat counts a call by its digest and returns the how manieth in a row it is.
func (t *Turn) countRepeat(digest string) int {
	if t.Repeat.Digest != digest {
		t.Repeat = Repeat{Digest: digest}
	}
	t.Repeat.Count++
	return t.Repeat.Count
}

// resetCounts forgets what counts towards an end by the model's own fault.
func (t *Turn) resetCounts() { t.Nudged, t.Repaired, t.Retried, t.Repeat = 0, 0, 0, Repeat{} }

// setNote sets what is said to the model once, and dropNote forgets it.
func (t *Turn) setNote(text string) { t.Note = text }
func (t *Turn) dropNote()           { t.Note = "" }

// startFromSummary lets the next turn begin from a summary, and asIs takes that back.
func (t *Turn) startFromSummary(why string) { t.SummaryReason = why }
func (t *Turn) cancelFromSummary()          { t.SummaryReason = "" }

// setForceFit remembers that the conversation was compacted for this turn.
func (t *Turn) setForceFit() { t.ForceFit = true }

// nextTurn asks the model again.
func (s *step) nextTurn() {
	s.deliver(false)
	s.Turn.next()
	s.Budget.startTurn()
	s.record(agent.Event{Type: agent.EventTurnStarted})
	s.askModel()
}

func (s *step) askModel() {
	s.Turn.ask(s.At, s.Log.Seq)
	s.Budget.modelCalled()
	s.callModel(ModelArgs{Note: s.Turn.Note, ForceFit: s.Turn.ForceFit})
}

// summarize asks the model for a summary, without tools; it is not a turn.
func (s *step) summarize(what Summary) {
	s.Turn.askSummary(s.At, s.Log.Seq, what)
	s.Budget.modelCalled()
	left := agent.Duration(0)
	if s.End.Stopping != nil {
		left = agent.Duration(s.End.Stopping.Until.Sub(s.At))
	}
	s.callModel(ModelArgs{Summary: what, Timeout: left})
}

// endTurn writes the turn's checkpoint.
func (s *step) endTurn() {
	s.record(agent.Event{Type: agent.EventTurnEnded, Snapshot: s.checkpoint()})
}

func (s *step) checkpoint() *agent.TurnSnapshot {
	c := &agent.TurnSnapshot{Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tools: s.Calls.Counts, Request: s.Budget.Counted}
	for _, call := range s.Calls.List {
		if len(call.StateChanges) > 0 && c.StateChanges == nil {
			c.StateChanges = map[string]json.RawMessage{}
		}
		maps.Copy(c.StateChanges, call.StateChanges) //workflowcheck:ignore each key is set once
	}
	return c
}

// startFromSummary lets the run go on from a summary of what was said.
func (s *step) startFromSummary() {
	if s.Turn.N > 0 && s.Turn.SummaryReason == "" {
		s.Turn.startFromSummary(agent.CompactedForResume)
	}
}

// atLimit fails the run at a limit, or asks what to do.
func (s *step) atLimit(err *agent.Error, on agent.LimitAction) {
	if on == agent.LimitActionAsk {
		s.askLimit(err)
		return
	}
	s.fail(err)
}
