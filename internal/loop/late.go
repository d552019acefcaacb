package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Late is the part that keeps what the first late answer to a request needs. It is zero until a deadline
// decides a request (decision 0007).
type Late struct {
	// Requests are the last requests that their deadlines decided, without those that have had a late
	// answer.
	Requests []ExpiredRequest `json:"requests,omitempty"`
	// Note goes to the model behind the conversation, once. The log does not have it.
	Note string `json:"note,omitempty"`
	// Asked is how much of Note the model call in flight has.
	Asked int `json:"asked,omitempty"`
}

// ExpiredRequest is a request that its deadline decided.
type ExpiredRequest struct {
	ID   string            `json:"id"`
	Type agent.RequestType `json:"type"`
	// Text and Default are cut.
	Text      string   `json:"text,omitempty"`
	Default   string   `json:"default,omitempty"`
	Tool      string   `json:"tool,omitempty"`
	Digest    string   `json:"digest,omitempty"`
	Choices   []string `json:"choices,omitempty"`
	Approvers []string `json:"approvers,omitempty"`
	Confirm   string   `json:"confirm,omitempty"`
	// ForTool means that a tool asked. The answer would have gone to the tool, and may be a secret: the
	// log and the model get none of it.
	ForTool bool      `json:"for_tool,omitempty"`
	At      time.Time `json:"at"` // when the deadline decided
}

// Bounds of the part, in JSON bytes but for maxLateAnswer. lateShare and lateNoteShare are parts of
// pastShare.
const (
	maxLateRequests = 8
	lateShare       = 6 << 10
	lateNoteShare   = 6 << 10
	lateFrame       = 288 // of an ExpiredRequest, with the names of its tool and its type
	maxLateText     = 256
	maxLateAnswer   = 500 // characters of an answer or a reason
	maxLateQuoted   = 600 // of one in a note, with its escapes
	maxLateName     = 128 // of a name in a note
)

func (l Late) clone() Late {
	l.Requests = slices.Clip(l.Requests)
	return l
}

func (r ExpiredRequest) jsonLen() int {
	return lateFrame + jsonLen(r.ID) + jsonLen(r.Type) + maxLateText + jsonLen(r.Default) + jsonLen(r.Tool) + jsonLen(r.Digest) + jsonLen(r.Confirm) + textsJSONLen(r.Choices) + textsJSONLen(r.Approvers)
}

// expired remembers a request that its deadline decided. One that is too long is not remembered.
func (l *Late) expired(r Request, at time.Time) {
	e := ExpiredRequest{
		ID: r.ID, Type: r.Type, Text: fit(r.Text, maxLateText), Default: fit(r.Default, maxLateText),
		Digest: r.Digest, Confirm: r.Confirm, Choices: r.Choices, Approvers: r.Approvers, ForTool: r.RetryCall, At: at,
	}
	if r.Call != nil {
		e.Tool = r.Call.Tool
	}
	if e.jsonLen() <= lateShare {
		l.Requests = append(l.Requests, e)
		l.bound()
	}
}

// bound drops requests whose ids can't be a run's, and the oldest, by number and by length. It cuts the note.
func (l *Late) bound() {
	l.Requests = slices.DeleteFunc(slices.Clone(l.Requests), func(r ExpiredRequest) bool { return requestNumber(r.ID) == 0 })
	size := 0
	for i, r := range slices.Backward(l.Requests) {
		if size += r.jsonLen(); size > lateShare || len(l.Requests)-i > maxLateRequests {
			l.Requests = slices.Clone(l.Requests[i+1:])
			break
		}
	}
	l.Note = fit(l.Note, lateNoteShare)
	l.Asked = max(0, min(l.Asked, len(l.Note)))
}

// keep forgets all requests but those that the session has closed.
func (l *Late) keep(closed func(id string) bool) {
	l.Requests = slices.DeleteFunc(slices.Clone(l.Requests), func(r ExpiredRequest) bool { return !closed(r.ID) })
}

// find returns a request that waits for its late answer.
func (l Late) find(id string) (ExpiredRequest, bool) {
	i := slices.IndexFunc(l.Requests, func(r ExpiredRequest) bool { return r.ID == id })
	if i < 0 {
		return ExpiredRequest{}, false
	}
	return l.Requests[i], true
}

// answered forgets a request: it has had its late answer.
func (l *Late) answered(id string) {
	l.Requests = slices.DeleteFunc(slices.Clone(l.Requests), func(r ExpiredRequest) bool { return r.ID == id })
}

// addNote adds a line to the note, and reports whether it fits. One that does not fit as a whole is left
// out: the log has the answer.
func (l *Late) addNote(line string) bool {
	if l.Note != "" {
		line = "\n" + line
	}
	fits := jsonLen(l.Note)+jsonLen(line) <= lateNoteShare
	if fits {
		l.Note += line
	}
	return fits
}

// ask returns the note for a model call. read drops it when the call has a reply that counts: what was
// added during the call is for the next one.
func (l *Late) ask() string {
	l.Asked = len(l.Note)
	return l.Note
}

func (l *Late) read() { l.Note, l.Asked = strings.TrimPrefix(l.Note[l.Asked:], "\n"), 0 }

// lateAnswer takes an answer to a request that is not open. The first one that comes after the deadline
// is recorded, and the model's next request has a note of it. It decides nothing, so its sender gets the
// refusal anyway. Other answers only get the refusal.
func (s *step) lateAnswer(d decision, refusal error) error {
	r, ok := s.Late.find(d.request)
	if !ok || s.End.Stopping != nil || !s.mayBeLate(r, d) {
		return refusal
	}
	a, text := d.answered(), ""
	if r.ForTool {
		a.Reason = ""
	} else {
		text = r.lateText(d)
	}
	if d.answer != nil {
		a.Text = text
	}
	a.Reason = fit(a.Reason, maxReason)
	s.record(agent.Event{Type: agent.EventRequestAnsweredLate, Answer: &a})
	s.Late.answered(r.ID)
	e := *asError(refusal)
	e.Message = fmt.Sprintf("%s refused: %s; the late answer is recorded", s.verb, e.Message)
	// The function of a flow reads no notes.
	if !s.isFlow() && s.Late.addNote(r.lateNote(d, text, s.now())) {
		e.Message += ", and the model's next request mentions it"
	}
	s.refuseAnyway(d.by, e)
	return nil
}

// refuseAnyway answers the verb of this step with a refusal, although the step changes the state. The
// answer is not remembered: the same id may be used again, as after any refusal.
func (s *step) refuseAnyway(by string, e agent.Error) {
	if s.bySignal {
		s.showRefused(string(s.verb), by, e)
	} else {
		s.do(Acknowledge{Err: &e})
	}
	s.verb = ""
}

// mayBeLate reports whether a late answer could have decided the request: it is of the right kind, and of
// an approver if there are any.
func (s *step) mayBeLate(r ExpiredRequest, d decision) bool {
	q := Request{Request: agent.Request{ID: r.ID, Type: r.Type, Choices: r.Choices, Approvers: r.Approvers, Digest: r.Digest, Confirm: r.Confirm}, RetryCall: r.ForTool}
	if s.mayTake(q, d) != nil {
		return false
	}
	return d.approve == nil || s.checkDigest(q, d.approve.Digest) == nil
}

// lateText returns what a late answer or a rejection says, cut.
func (r ExpiredRequest) lateText(d decision) string {
	said := ""
	switch {
	case d.reject != nil:
		said = d.reject.Reason
	case d.answer == nil:
	case d.answer.Choice != nil:
		said = r.Choices[*d.answer.Choice]
	case len(d.answer.Data) > 0:
		said = string(d.answer.Data)
	default:
		said = d.answer.Text
	}
	return firstCharacters(said, maxLateAnswer)
}

// quoteWithin returns a text in quotation marks, cut so that this has at most so many bytes of JSON: one
// character may take eleven, and a note has room for others.
func quoteWithin(text string, most int) string {
	quoted := fmt.Sprintf("%q", text)
	for jsonLen(quoted) > most {
		r := []rune(text)
		text = string(r[:len(r)*3/4])
		quoted = fmt.Sprintf("%q…", text)
	}
	return quoted
}

// lateNote returns what the model reads of a late answer. What people wrote is quoted.
func (r ExpiredRequest) lateNote(d decision, text string, now time.Time) string {
	about, decided, said := "", "nobody had answered", "answered it"
	if r.Tool != "" && r.Type == agent.RequestApproval {
		about = " about a call of " + r.Tool
	}
	if r.Default != "" && !r.ForTool {
		decided = "the default is " + quote(r.Default)
	}
	switch {
	case d.approve != nil:
		said = "approved it"
	case d.reject != nil:
		said = "rejected it"
	}
	if text != "" {
		said += ": " + quoteWithin(text, maxLateQuoted)
	}
	if r.ForTool {
		said += "; only the tool that asked may read the answer"
	}
	who := "somebody"
	if name := firstOf(d.approver, d.by); name != "" {
		who = quoteWithin(short(name), maxLateName)
	}
	// What a tool asked the model has not read, and nobody but the tool vouches for it.
	if !r.ForTool {
		about += fmt.Sprintf(" (%s)", quote(r.Text))
	}
	return fmt.Sprintf("A late answer. Request %s%s was decided by its deadline at %s: %s. At %s %s %s. The deadline's decision stands, and the late answer has no other effect.",
		r.ID, about, r.At.Format(time.RFC3339), decided, now.Format(time.RFC3339), who, said)
}
