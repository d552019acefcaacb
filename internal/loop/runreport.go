package loop

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// RunReport is the part that counts what happens in a run, if the agent has report: true. The
// outcome gets it; nothing is decided by it.
type RunReport struct {
	agent.RunReport
}

// reportSpace is what a report takes in the state and in an outcome at most, in JSON bytes: its
// lists are bounded.
const reportSpace = 14 << 10

// decisionSpace is what the verdicts in a report take at most, for an agent with checks.
const decisionSpace = maxDecisions * (maxDecisionReasoning + maxDecisionStep + 224)

func (r RunReport) clone() RunReport {
	r.JudgeDecisions = slices.Clone(r.JudgeDecisions)
	r.Iterations, r.Events, r.StallWarnings = slices.Clone(r.Iterations), slices.Clone(r.Events), slices.Clone(r.StallWarnings)
	return r
}

// Limits of a report's lists.
const (
	maxIterations    = 50
	maxStallWarnings = 20
	maxEventTypes    = 64
	maxDecisions     = 16
	// Bytes of JSON.
	maxDecisionReasoning = 512
	maxDecisionStep      = 256
)

// note counts an event.
func (r *RunReport) note(e agent.Event) {
	r.count(e.Type)
	last := len(r.Iterations) - 1
	switch {
	case e.Type == agent.EventTurnStarted:
		if r.Iterations = append(r.Iterations, agent.Iteration{Iteration: e.Turn, Started: e.Time}); len(r.Iterations) > maxIterations {
			r.Iterations, r.IterationsLeft = r.Iterations[1:], r.IterationsLeft+1
		}
		return
	case e.Type == agent.EventModelRetried:
		r.RetriedReplies++
	case e.Type == agent.EventCheckDone && e.Check.Verdict != nil:
		r.noteVerdict(e.Turn, *e.Check)
	}
	if last < 0 {
		return
	}
	i := &r.Iterations[last]
	switch {
	case e.Type == agent.EventTurnEnded && i.Ended.IsZero():
		i.Ended = e.Time
	case e.Type == agent.EventModelRetried:
		i.Retried = true
	case e.Type == agent.EventCallRequested:
		i.ToolCount++
	case e.Message != nil && e.Message.Role == agent.RoleAssistant:
		i.ProseChars += utf8.RuneCountInString(e.Message.Text())
	}
}

// noteVerdict keeps the verdict of a check.
func (r *RunReport) noteVerdict(turn int, u agent.CheckUpdate) {
	r.JudgeDecisions = append(r.JudgeDecisions, agent.JudgeDecision{
		Iteration: turn, Check: u.Name, Verdict: u.Verdict.Decision, Trigger: u.Point, JudgeDurationMS: time.Duration(u.Duration).Milliseconds(),
		Reasoning: fit(u.Verdict.Reasoning, maxDecisionReasoning), NextStep: fit(u.Verdict.NextStep, maxDecisionStep),
	})
	if len(r.JudgeDecisions) > maxDecisions {
		r.JudgeDecisions, r.JudgeDecisionsLeft = r.JudgeDecisions[1:], r.JudgeDecisionsLeft+1
	}
}

func (r *RunReport) count(t agent.EventType) {
	for i := range r.Events {
		if r.Events[i].Type == t {
			r.Events[i].Count++
			return
		}
	}
	if len(r.Events) < maxEventTypes {
		r.Events = append(r.Events, agent.EventCount{Type: t, Count: 1})
	}
}

// noteRepeat counts a call that is the times-th equal one in a row.
func (r *RunReport) noteRepeat(tool string, turn, times int) {
	r.RepeatedCalls++
	r.SuspectedLoop = r.SuspectedLoop || times >= repeatLimit
	if times == repeatWarn && len(r.StallWarnings) < maxStallWarnings {
		r.StallWarnings = append(r.StallWarnings, agent.StallWarning{Tool: tool, Iteration: turn, Times: times})
	}
}

func (r *RunReport) noteTextCalls(refused bool) {
	if refused {
		r.TextCallsRejected++
		return
	}
	r.TextCalls++
}

// reports reports whether the run's outcome has a report.
func (s *State) reports() bool { return s.Spec != nil && s.Spec.Report }

// noteRepeat counts a repeated call; times is how many equal ones came in a row.
func (s *step) noteRepeat(tool string, times int) {
	if s.reports() && times > 1 {
		s.RunReport.noteRepeat(tool, s.Turn.N, times)
	}
}

// noteTextCalls counts a reply whose calls were written as text.
func (s *step) noteTextCalls(r wire.Reply) {
	if s.reports() {
		s.RunReport.noteTextCalls(s.refusesTextCalls(r))
	}
}

// report returns the run's report for its outcome; nil if the outcome has none. All outcomes of
// children are in one history, the parent's, so a child's has none.
func (s *step) report() *agent.RunReport {
	if !s.reports() || s.Parent.Start != nil {
		return nil
	}
	r := s.RunReport.clone().RunReport
	return &r
}
