package agent

import "time"

// RunReport tells how a run went, turn by turn. An outcome has it if the agent has report: true.
type RunReport struct {
	// Iterations are the run's turns, at most the last 50. IterationsLeft counts the ones before.
	Iterations     []Iteration `json:"iterations,omitempty"`
	IterationsLeft int         `json:"iterations_left,omitempty"`
	// JudgeDecisions are the verdicts of the run's checks, at most the last 16. JudgeDecisionsLeft
	// counts the ones before.
	JudgeDecisions     []JudgeDecision `json:"judge_decisions,omitempty"`
	JudgeDecisionsLeft int             `json:"judge_decisions_left,omitempty"`
	// Events counts the recorded events by type, in the order of their first one. The event of the
	// run's end is not counted.
	Events []EventCount `json:"events,omitempty"`
	// RetriedReplies counts replies that were empty or cut off.
	RetriedReplies int `json:"retried_replies,omitempty"`
	// TextCalls counts the replies whose calls were written as text and made, and
	// TextCallsRejected those whose calls were refused.
	TextCalls         int `json:"text_calls,omitempty"`
	TextCallsRejected int `json:"text_calls_rejected,omitempty"`
	// RepeatedCalls counts calls that are equal to the call before.
	RepeatedCalls int `json:"repeated_tool_calls,omitempty"`
	// StallWarnings are the remarks that the model got about repeated calls, at most the first 20.
	StallWarnings []StallWarning `json:"stall_warnings,omitempty"`
	// SuspectedLoop means that a call was repeated so often that the run failed, or asked.
	SuspectedLoop bool `json:"suspected_loop,omitempty"`
}

// Iteration is one turn of a run.
type Iteration struct {
	Iteration  int       `json:"iteration"` // the turn's number
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended,omitzero"`          // zero if the run ended in the turn
	ToolCount  int       `json:"tool_count,omitempty"`    // the calls that its reply asked for
	ProseChars int       `json:"prose_chars,omitempty"`   // characters of its reply's text
	Retried    bool      `json:"retried_reply,omitempty"` // its reply was empty or cut off
}

// JudgeDecision is the verdict of a check in a run's report. The event check.done has it whole.
type JudgeDecision struct {
	Iteration int      `json:"iteration"` // the turn whose answer was checked
	Check     string   `json:"check"`     // the check's name
	Verdict   Decision `json:"verdict"`
	Reasoning string   `json:"reasoning"` // 512 bytes at most
	NextStep  string   `json:"next_step"` // 256 bytes at most
	// JudgeDurationMS is how long the check took, in milliseconds.
	JudgeDurationMS int64 `json:"judge_duration_ms"`
	// Trigger is where in the run the check was made.
	Trigger CheckPoint `json:"trigger,omitempty"`
}

// EventCount counts events of one type.
type EventCount struct {
	Type  EventType `json:"type"`
	Count int       `json:"count"`
}

// StallWarning is a remark about a call that was repeated.
type StallWarning struct {
	Tool      string `json:"tool"`
	Iteration int    `json:"iteration"`
	Times     int    `json:"times"` // how many equal calls there were in a row
}

// size returns about how many bytes the report takes in a chunk; zero for nil.
func (r *RunReport) size() int {
	if r == nil {
		return 0
	}
	said := 0
	for _, d := range r.JudgeDecisions {
		said += 192 + len(d.Reasoning) + len(d.NextStep)
	}
	return said + 160*len(r.Iterations) + 48*len(r.Events) + 128*len(r.StallWarnings) + 256
}
