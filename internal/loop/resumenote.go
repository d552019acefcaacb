package loop

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// The first request after a suspension ends with one note for the model: why the run was suspended, what
// ended that and came with it, and the time. What ends a reason to wait is kept in the open suspension, since
// there may be several. The note is made when the suspension closes, and only if the run came to rest: else
// the model was never kept waiting.

// SuspensionEnd is something that ended a reason to wait, as the model reads it.
type SuspensionEnd struct {
	Cause string `json:"cause"`
	// Input is what came with it; empty for nothing, and for what the call that asked returns.
	Input string `json:"input,omitempty"`
}

// Bounds in JSON bytes: of a suspension's ends, of the texts of one, and of the note.
const (
	maxEnds      = 2 << 10
	maxEndCause  = 1 << 10
	maxEndInput  = 512
	maxEndQuoted = 384 // of what a request asks, with its escapes
	maxNote      = 5 << 10
	endFrame     = 32
)

// noteWaitOf is how long a suspension has to last that the runtime itself ends, so that the model reads of
// it. A grant, for example, usually comes at once.
const noteWaitOf = time.Minute

// inputText returns what came with the end, as a sentence; empty for nothing.
func (e SuspensionEnd) inputText() string {
	if e.Input == "" {
		return ""
	}
	return " The input: " + quote(e.Input)
}

// jsonLen returns its length in JSON at most.
func (e SuspensionEnd) jsonLen() int { return endFrame + jsonLen(e.Cause) + jsonLen(e.Input) }

// resumeWith keeps for the note what lets a run go on that rests, and the words that come with it. Their
// beginning is enough: their message stands before the note.
func (s *step) resumeWith(cause, input string) {
	if s.Suspensions.atRest() {
		s.Suspensions.addEnd(SuspensionEnd{Cause: cause, Input: short(input)})
	}
}

// noteDecision keeps for the note how a person has decided a request.
func (s *step) noteDecision(r Request, d decision) {
	if handsOver(r.Request) { // the user's next message has come, and stands in the conversation
		s.noteEnd(r, "The user's next message came, for which you waited.", "")
		return
	}
	how, input := "answered", ""
	switch {
	case d.approve != nil:
		how = "approved"
	case d.reject != nil:
		how, input = "rejected", d.reject.Reason
	case r.Type != agent.RequestClientTool && d.answer != nil:
		input = r.answerText(d.answer)
	}
	if who := firstOf(d.approver, d.by); who != "" {
		how += " by " + quoteWithin(short(who), maxLateName)
	}
	s.noteEnd(r, fmt.Sprintf("%s was %s.", s.askedText(r), how), input)
}

// noteDeadline keeps for the note that a deadline has decided a request.
func (s *step) noteDeadline(r Request) {
	how, input := "decided", r.Default
	if r.Type == agent.RequestApproval {
		if how, input = "rejected", ""; r.Default == agent.DefaultApprove {
			how = "approved"
		}
	}
	s.noteEnd(r, fmt.Sprintf("%s was %s by its deadline, since nobody had answered.", s.askedText(r), how), input)
}

// noteEnd keeps for the note how a request was closed. What a tool asked the model has not read, and the
// answer is the tool's alone.
func (s *step) noteEnd(r Request, cause, input string) {
	if s.Suspensions.Open == nil {
		return
	}
	if r.RetryCall {
		cause, input = cause+" The tool that asked has the answer.", ""
	}
	s.Suspensions.addEnd(SuspensionEnd{Cause: cause, Input: short(input)})
}

// askedText says what a request asks and since when. The reason of the suspension is in the note already.
func (s *step) askedText(r Request) string {
	what := "a question"
	switch {
	case r.RetryCall:
		what = "a question of the tool " + r.Call.Tool
	case r.Type == agent.RequestApproval:
		what = "the approval of " + r.Call.Tool
	case r.Type == agent.RequestClientTool:
		what = "the client's call of " + r.Call.Tool
	case r.Type == agent.RequestLimit:
		what = "a limit"
	case s.Suspensions.Open == nil || fit(r.Text, maxReason) != s.Suspensions.Open.Reason:
		what = "the question " + quoteWithin(short(r.Text), maxEndQuoted)
	}
	return fmt.Sprintf("Request %s (%s), open since %s,", r.ID, what, r.Opened.UTC().Format(time.RFC3339))
}

// noteSuspension gives the model the note on the suspension that closes after a rest, in its next request.
func (s *step) noteSuspension() {
	if s.isFlow() || s.End.Stopping != nil || s.Spec.Texts[agent.TextResumeNote] == agent.NoText {
		return
	}
	w := *s.Suspensions.Open
	ends := w.Ends
	if len(ends) == 0 {
		if s.At.Sub(s.Suspensions.Since) < noteWaitOf {
			return
		}
		ends = []SuspensionEnd{{Cause: "The wait is over."}}
	}
	var causes []string
	if w.OlderEnds > 0 {
		causes = append(causes, fmt.Sprintf("%d more came before.", w.OlderEnds))
	}
	last, own := ends[len(ends)-1], s.Spec.Texts[agent.TextResumeNote]
	shown := own == "" || strings.Contains(own, "{input}") // else the agent's author leaves inputs out
	for _, e := range ends[:len(ends)-1] {
		text := e.Cause
		if shown {
			text += e.inputText()
		}
		causes = append(causes, text)
	}
	causes = append(causes, last.Cause)
	s.Turn.addNote(s.Spec.Text(agent.TextResumeNote, "turn", strconv.Itoa(w.Turn), "reason", w.reasonText(), "time", s.now().Format(time.RFC3339),
		"cause", strings.Join(causes, " "), "input", last.inputText()))
}

// reasonText returns why the run was suspended, for the model; empty if nobody said. What a tool asked, and
// what the runtime shows a user, is not the model's to read.
func (w OpenSuspension) reasonText() string {
	switch {
	case w.Reason == "" || w.Cause == causeWaitForUser:
		return ""
	case w.Cause == causeToolAsks:
		return " for a question of a tool"
	}
	return " for the reason " + quote(w.Reason)
}
