package loop

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// This file has the options that bound the form of a turn, and those that say which reply or
// call ends the run. They count in Turn.Nudged, and have no state of their own.

// correctForm answers a reply without calls that may not end the run, and reports whether it did.
// text is the reply's text.
func (s *step) correctForm(r wire.Reply, text string) (corrected bool) {
	visible, _, marked := withoutSentinel(s.Spec, text)
	policy := s.Spec.TurnPolicy
	switch {
	case s.Spec.Completion == agent.CompletionTool:
		s.nudge("without calling a tool; it must call \"finish\" to end", s.nudgeText())
	case s.Spec.Sentinel() != "" && !marked:
		s.nudge("with neither a tool call nor the text that marks the end", s.nudgeText())
	case policy != nil && policy.RequireAction && !marked:
		s.nudge("without calling a tool", s.Spec.Text(agent.TextRequireAction))
	case s.exceedsProse(visible) && r.Output == nil:
		s.nudge("with more text than turn_policy.max_prose_chars allows", s.proseText(agent.TextMaxProse, visible))
	default:
		return false
	}
	return true
}

// nudgeText answers a reply that may not end the run.
func (s *step) nudgeText() string {
	if s.Spec.Completion != agent.CompletionTool && s.Spec.Sentinel() != "" {
		return cmp.Or(s.Spec.Nudge, s.Spec.Text(agent.TextNudgeSentinel, "sentinel", s.Spec.Sentinel()))
	}
	return cmp.Or(s.Spec.Nudge, s.Spec.Text(agent.TextNudge))
}

// nudge asks the model for another reply, as often in a row as the Spec allows. how says in the
// run's error what was wrong with the replies.
func (s *step) nudge(how, text string) {
	again := s.Turn.nudge(s.Spec.Nudges)
	switch err := s.stuck(how); {
	case s.recoverFirst(agent.FailureNoProgress, err):
	case !again:
		s.recoverOrFail(agent.FailureNoProgress, err)
	default:
		s.recordOwnText(agent.NoteNudge, text)
	}
}

func (s *step) stuck(how string) *agent.Error {
	times := "once"
	if n := s.Turn.Nudged; n != 1 {
		times = strconv.Itoa(n) + " times in a row"
	}
	return agent.Errorf(agent.CodeStuck, "the model answered %s %s", times, how)
}

// exceedsProse reports whether a text has more characters than the Spec allows.
func (s *step) exceedsProse(text string) bool {
	p := s.Spec.TurnPolicy
	return p != nil && p.MaxProseChars > 0 && utf8.RuneCountInString(text) > p.MaxProseChars
}

func (s *step) proseText(name agent.TextName, text string) string {
	return s.Spec.Text(name, "chars", strconv.Itoa(utf8.RuneCountInString(text)), "max", strconv.Itoa(s.Spec.TurnPolicy.MaxProseChars))
}

// checkForm counts a reply with calls that has another form than the agent's, and says so to the
// model. If too many came in a row, it returns what was wrong with them.
func (s *step) checkForm(r wire.Reply) *agent.Error {
	text, how := agent.Message{Parts: r.Parts}.Text(), ""
	if r.TextCalls {
		s.Turn.countTextCalls()
		s.Hooks.noteTextCalls()
		s.noteTextCalls(r)
	}
	switch {
	case s.refusesTextCalls(r): // each call gets a result that says so
		how = "with tool calls that are written as text"
	case s.exceedsProse(text):
		s.Turn.correct(s.proseText(agent.TextMaxProseWithCalls, text))
		how = "with more text beside its calls than turn_policy.max_prose_chars allows"
	default:
		s.Turn.acted()
		if s.callsAreProgress() {
			s.Recovery.reset(agent.FailureNoProgress)
		}
		return nil
	}
	if s.Turn.nudge(s.Spec.Nudges) {
		return nil
	}
	return s.stuck(how)
}

// refusesTextCalls reports whether the calls of a reply are not made because the model wrote them as
// text.
func (s *step) refusesTextCalls(r wire.Reply) bool {
	switch {
	case !r.TextCalls, s.Spec.TextCalls == agent.TextCallsAllow:
		return false
	case s.Spec.TextCalls == agent.TextCallsAllowOnce:
		return s.Turn.TextCalls > 1 // this reply counts already
	}
	return true
}

// AnswerText returns the text of a reply that ends a run as the run's outcome shows it.
func AnswerText(spec *agent.Spec, reply string) string {
	visible, _, _ := withoutSentinel(spec, reply)
	return visible
}

// withoutSentinel returns a text without the text that marks the end, and where that was, with
// the white space before it. found is whether the text has it: as a line of its own, or as its end.
func withoutSentinel(spec *agent.Spec, text string) (visible string, cut [2]int, found bool) {
	mark := spec.Sentinel()
	if mark == "" {
		return text, cut, false
	}
	forms := []string{"<done>" + mark + "</done>", mark}
	end := len(strings.TrimRight(text, " \t\r\n"))
	for _, form := range forms {
		if strings.HasSuffix(text[:end], form) {
			return cutOut(text, end-len(form), len(text))
		}
	}
	at := 0
	for line := range strings.Lines(text) {
		if slices.Contains(forms, strings.TrimSpace(line)) {
			return cutOut(text, at, at+len(line))
		}
		at += len(line)
	}
	return text, cut, false
}

func cutOut(text string, from, to int) (visible string, cut [2]int, found bool) {
	if to == len(text) { // at the end nothing follows that the white space would part
		from = len(strings.TrimRight(text[:from], " \t\r\n"))
	}
	return text[:from] + text[to:], [2]int{from, to}, true
}

// answered completes the run with a reply. Its text is shown without the text that marks the end.
func (s *step) answered(r wire.Reply, text string) {
	visible, cut, marked := withoutSentinel(s.Spec, text)
	if marked {
		part := agent.Part{Type: agent.PartText, Text: visible}
		for _, c := range (agent.Message{Parts: r.Parts}).Citations() {
			switch {
			case c.Start >= cut[1]:
				c.Start, c.End = c.Start-(cut[1]-cut[0]), c.End-(cut[1]-cut[0])
			case c.End > cut[0]: // a part of what it is about is gone
				continue
			}
			part.Citations = append(part.Citations, c)
		}
		r.Parts = []agent.Part{part}
	}
	s.complete(agent.ReasonDone, visible, r, "")
}

// stopsAfter returns the last call of the turn whose success ends the run; nil if there is none.
func (s *step) stopsAfter() *Call {
	for _, c := range slices.Backward(s.Calls.List) {
		if slices.Contains(s.Spec.StopAfter, c.Tool) && c.Result.Status == agent.CallOK {
			return copied(&c)
		}
	}
	return nil
}

// ResultOutput returns a call's result as the output of the run that it ends: a whole result that is a
// JSON object or array; nil for others.
func ResultOutput(r agent.ToolResult) json.RawMessage {
	text := strings.TrimSpace(r.Text)
	if r.Size != 0 || strings.IndexAny(text, "{[") != 0 || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// completeByCall completes the run with the result of a call. A result that is JSON is the output too.
func (s *step) completeByCall(c Call) {
	r := wire.Reply{}
	for _, f := range (agent.Message{Parts: c.Result.Files}).Files() {
		r.Returned = append(r.Returned, *f)
	}
	r.Output = ResultOutput(*c.Result)
	s.complete(agent.ReasonStopAfter, c.Result.Text, r, c.ID)
}
