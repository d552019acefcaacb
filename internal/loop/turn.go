package loop

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// Turn is the part that asks the model: a turn is one model call, and the tool calls that
// its reply asks for. Turns are numbered within the run. A fork continues the numbers of
// the run that it forks.
type Turn struct {
	N     int       `json:"n"`
	Phase TurnPhase `json:"phase,omitempty"`
	// Asked is since when the model call is in flight. AskSeq is the last log event that the
	// model was shown. It identifies the call: a reply with another AskSeq is late. A call
	// that is repeated within a turn may have the same one. That is harmless: the first has
	// returned. A cancelled call adds an event to the log, so the call after it has a higher one.
	Asked  time.Time `json:"asked,omitzero"`
	AskSeq int64     `json:"ask_seq,omitempty"`
	// Checkpoint is the event of the run's newest checkpoint; zero before its first turn.
	Checkpoint int64 `json:"checkpoint,omitempty"`
	// Delay is until when the provider is not asked; nil if the call in flight was not
	// delayed.
	Delay *agent.Delay `json:"delay,omitempty"`
	// Summary is what the last requested summary is for.
	Summary Summary `json:"summary,omitempty"`
	Text    string  `json:"text,omitempty"` // the beginning of the model's last text
	// TextBefore means that Text was said before the task that a daemon has now. It is kept only for
	// daemons that a judge may end while they repeat themselves.
	TextBefore bool `json:"text_before,omitempty"`

	// Nudged counts replies in a row without a tool call, and Retried useless replies in a
	// row. Repaired counts answers that missed the output's schema; they need not follow one
	// another.
	Nudged   int    `json:"nudged,omitempty"`
	Repaired int    `json:"repaired,omitempty"`
	Retried  int    `json:"retried,omitempty"`
	Repeat   Repeat `json:"repeat,omitzero"`
	// TextCalls counts the run's replies whose calls were written as text.
	TextCalls int `json:"text_calls,omitempty"`

	// Note goes to the model once, after the conversation. The log does not have it.
	Note string `json:"note,omitempty"`
	// Correction says what was wrong with the form of the turn's reply. It goes to the model behind the
	// results of the turn's calls, unless the run is suspended before (PA-24). Nudged counts it.
	Correction string `json:"correction,omitempty"`
	// SummaryReason is why the next turn begins from a summary; empty if it does not.
	SummaryReason string `json:"summary_reason,omitempty"`
	// ForceFit means that the conversation was compacted in this turn already. What is still
	// too long for the model's window is cut.
	ForceFit bool `json:"force_fit,omitempty"`
	// Interrupted means that an interrupt came in this turn.
	Interrupted bool `json:"interrupted,omitempty"`
}

// maxLast bounds the last text, in JSON bytes. The transcript has all of it. The other 8 KB of
// turnShare (space.go) are for the turn's other fields.
const maxLast = turnShare - 8<<10

// maxCorrection bounds the correction, in JSON bytes.
const maxCorrection = 2 << 10

// maxDelay bounds the error message of a delay, in JSON bytes.
const maxDelay = 1 << 10

// Repeat counts equal calls in a row.
type Repeat struct {
	Digest string `json:"digest"`
	Count  int    `json:"count"`
	// Replies is in how many replies in a row the model asked for the call.
	Replies int `json:"replies,omitempty"`
	// Made is in how many replies in a row the call was made, and Vetoed means that a check has vetoed it
	// in this turn. After a veto Made counts from zero.
	Made   int  `json:"made,omitempty"`
	Vetoed bool `json:"vetoed,omitempty"`
}

// repeated returns how many calls of a reply, its last ones, ask for the repeated call.
func (r Repeat) repeated(calls int) int { return max(0, min(r.Count, calls)) } // an imported count may be below zero

// Summary is what a summary is for.
type Summary string

// What summaries are for.
const (
	SummaryForHandoff Summary = "handoff" // for the handoff
	SummaryFinal      Summary = "final"   // for people: the last reply of a run that reached a limit
	SummaryOfAll      Summary = "all"     // for the run itself: replaces the whole conversation
	SummaryOfOlder    Summary = "older"   // for the run itself: replaces the older part of the conversation
)

// task returns what the call for a summary is for; empty for a turn. The last reply of a run is an answer.
func (s Summary) task() agent.ReasoningTask {
	if s == "" || s == SummaryFinal {
		return ""
	}
	return agent.ReasoningSummarize
}

// inFlight reports whether a model call is in flight.
func (t Turn) inFlight() bool { return t.Phase == TurnAsking || t.Phase == TurnSummarizing }

// next begins to count a new turn.
func (t *Turn) next() { t.N, t.ForceFit, t.Interrupted = t.N+1, false, false }

// interrupt notes that an interrupt has come.
func (t *Turn) interrupt() { t.Interrupted = true }

// setNumber continues the count of the run that this one forks.
func (t *Turn) setNumber(n int) { t.N = n }

func (t *Turn) ask(at time.Time, upTo int64) {
	enter(turnTransitions, &t.Phase, TurnAsking)
	t.Asked, t.AskSeq, t.Delay = at, upTo, nil
}

func (t *Turn) askSummary(at time.Time, upTo int64, what Summary) {
	enter(turnTransitions, &t.Phase, TurnSummarizing)
	t.Asked, t.AskSeq, t.Delay, t.Summary = at, upTo, nil, what
}

// advance begins to ask a flow's function.
func (t *Turn) advance(at time.Time, upTo int64) {
	enter(turnTransitions, &t.Phase, TurnAdvancing)
	t.Asked, t.AskSeq = at, upTo
}

// delay records that the provider is not asked for a while.
func (t *Turn) delay(d *agent.Delay) { t.Delay = d }

// work enters the phase working. The rules begin the calls.
func (t *Turn) work() { enter(turnTransitions, &t.Phase, TurnWorking) }

// end ends the turn, if one is in progress.
func (t *Turn) end() {
	t.Delay, t.Correction = nil, ""
	if t.Phase != TurnReady {
		enter(turnTransitions, &t.Phase, TurnReady)
	}
}

// setText keeps the text of a reply that is not useless.
func (t *Turn) setText(text string) {
	t.Retried = 0
	if text != "" {
		t.Text, t.TextBefore = excerpt.Of(text, bytesWithin(text, maxLast), len(text)), false
	}
}

// newTask notes that the last text is about an earlier task.
func (t *Turn) newTask() { t.TextBefore = t.Text != "" }

// textOfTask returns the last text, if the model has written it for the task that it has.
func (t Turn) textOfTask() string {
	if t.TextBefore {
		return ""
	}
	return t.Text
}

// countUseless counts a useless reply, and reports whether to ask again: a second one in a row
// ends the run.
func (t *Turn) countUseless() (again bool) {
	t.Retried++
	return t.Retried <= 1
}

// countTextCalls counts a reply whose calls were written as text.
func (t *Turn) countTextCalls() { t.TextCalls++ }

// acted records that the model called tools, and so did not only talk.
func (t *Turn) acted() { t.Nudged = 0 }

// nudge and repair count a failure of the model, and report whether it may try again.
func (t *Turn) nudge(most int) (again bool) {
	t.Nudged++
	return t.Nudged <= most
}

func (t *Turn) repair(most int) (again bool) {
	t.Repaired++
	return t.Repaired <= most
}

// countRepeat counts a reply's i-th call by its digest, and returns how many equal calls came in a row.
func (t *Turn) countRepeat(i int, digest string) int {
	if t.Repeat.Digest != digest {
		t.Repeat = Repeat{Digest: digest, Replies: 1}
	} else if i == 0 {
		t.Repeat.Replies++
	}
	t.Repeat.Count++
	return t.Repeat.Count
}

// endRepeat notes a call that is not counted: equal calls before and after it are not in a row.
func (t *Turn) endRepeat() { t.Repeat = Repeat{} }

// vetoRepeat notes that a check has vetoed the turn's calls.
func (t *Turn) vetoRepeat() { t.Repeat.Vetoed = true }

// countMade counts whether the turn, which is over, has made the repeated call.
func (t *Turn) countMade(calls []Call) {
	r := &t.Repeat
	last := calls[len(calls)-r.repeated(len(calls)):]
	switch {
	case r.Vetoed:
		r.Made, r.Vetoed = 0, false
	case slices.ContainsFunc(last, Call.wasStarted):
		r.Made++
	}
}

// resetCounts forgets all failures that could end the run.
func (t *Turn) resetCounts() { t.Nudged, t.Repaired, t.Retried, t.Repeat = 0, 0, 0, Repeat{} }

// setNote sets a note that goes to the model once, and addNote adds one behind a note that the model has
// not read yet, if there is room. dropNote drops them.
func (t *Turn) setNote(text string) { t.Note = fit(text, maxNote) }
func (t *Turn) dropNote()           { t.Note = "" }
func (t *Turn) addNote(text string) {
	if both := t.Note + "\n" + text; t.Note != "" && jsonLen(both) <= maxNote {
		text = both
	}
	t.setNote(text)
}

// correct sets the correction that follows the turn's results. dropCorrection drops one that the model has
// not got, with its count: a run must not end for what its model was never told.
func (t *Turn) correct(text string) { t.Correction = fit(text, maxCorrection) }
func (t *Turn) dropCorrection() {
	if t.Correction != "" {
		t.Correction, t.Nudged = "", max(0, t.Nudged-1)
	}
}

// summarizeFirst lets the next turn begin from a summary. cancelSummarizeFirst undoes that.
func (t *Turn) summarizeFirst(why string) { t.SummaryReason = why }
func (t *Turn) cancelSummarizeFirst()     { t.SummaryReason = "" }

// setForceFit remembers that the conversation was compacted in this turn.
func (t *Turn) setForceFit() { t.ForceFit = true }

// nextTurn begins a turn and asks the model, or a flow's function.
func (s *step) nextTurn() {
	s.deliver(false)
	s.startAdaptiveTurn()
	s.Hooks.startTurn(len(s.Spec.ChecksAt(agent.PointAfterTurn)) > 0)
	s.Turn.next()
	s.Budget.startTurn()
	if s.ownTurns() == 1 { // the one before the run's first turn; a summary before it has one, too
		s.Turn.passCheckpoint(s.Log.Seq)
	}
	s.record(agent.Event{Type: agent.EventTurnStarted})
	if s.isFlow() {
		s.askFlow()
		return
	}
	s.askModel()
}

// askModel asks the model for the turn's reply. The conversation ends with the log's last
// event.
func (s *step) askModel() {
	s.Turn.ask(s.At, s.Log.Seq)
	s.Budget.modelCalled()
	s.callModel(ModelArgs{Note: s.Turn.Note, LateAnswers: s.Late.ask(), ForceFit: s.Turn.ForceFit, Skills: s.skillOrder(), Next: s.Hooks.NextTurn})
}

// summarize asks the model for a summary, without tools. It counts as no turn.
func (s *step) summarize(what Summary) {
	s.Turn.askSummary(s.At, s.Log.Seq, what)
	s.Budget.modelCalled()
	left := agent.Duration(0)
	if s.End.Stopping != nil {
		left = agent.Duration(s.End.Stopping.Until.Sub(s.At))
	}
	s.callModel(ModelArgs{Summary: what, Timeout: left})
}

// recordTurnEnd records turn.ended with the turn's checkpoint. It does not change the
// phase; [Turn.end] does.
func (s *step) recordTurnEnd() {
	if s.Turn.Phase != TurnSummarizing { // a summary is no turn
		s.Hooks.turnOver()
	}
	s.record(agent.Event{Type: agent.EventTurnEnded, Snapshot: s.checkpoint()})
	s.Turn.passCheckpoint(s.Log.Seq)
}

// passCheckpoint remembers the run's newest checkpoint.
func (t *Turn) passCheckpoint(seq int64) { t.Checkpoint = seq }

// checkpointID returns the run's newest checkpoint in its session; empty before its first turn.
func (t Turn) checkpointID(session string) string {
	if t.Checkpoint == 0 {
		return ""
	}
	return agent.CheckpointID(session, t.Checkpoint)
}

// checkpoint returns what a fork from here needs beside the log.
func (s *step) checkpoint() *agent.TurnSnapshot {
	c := &agent.TurnSnapshot{Usage: s.Budget.Usage, Cost: s.Budget.Cost, Tools: s.Calls.Counts, Request: s.Budget.Counted}
	for _, call := range s.Calls.List {
		if len(call.StateChanges) > 0 && c.StateChanges == nil {
			c.StateChanges = map[string]json.RawMessage{}
		}
		maps.Copy(c.StateChanges, call.StateChanges) //workflowcheck:ignore each key is set once
	}
	if s.isFlow() {
		c.StateChanges = s.Flow.takeStateChanges()
	}
	return c
}

// summarizeFirst lets the next turn begin from a summary of the conversation, if there is
// one yet.
func (s *step) summarizeFirst() {
	if s.Turn.N > 0 && s.Turn.SummaryReason == "" && !s.isFlow() {
		s.Turn.summarizeFirst(agent.CompactedForResume)
	}
}
