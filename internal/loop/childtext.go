package loop

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// What the model reads of children is JSON, and has to be whole: what would be too long is left out of it,
// and the text is not cut.

// answerFrame is how many bytes the keys of a child's answer, and its times, count.
const answerFrame = 128

// answerSize returns how many bytes of a child's answer count as written by others.
func (c Child) answerSize() int {
	n := answerFrame + len(c.Session)
	if c.Outcome != nil {
		n += outcomeSize(c.Outcome)
		if c.Outcome.Error != nil {
			n += maxWhy // and not its length: the runtime's own words may change in a later build
		}
	}
	w := c.Suspension
	if w == nil {
		return n
	}
	n += len(w.ID) + len(w.Kind) + len(w.Cause) + len(w.Reason) + len(w.Owner)
	for _, r := range w.Requests {
		n += verbFrame + len(r.ID) + len(r.Type) + len(r.Text) + len(r.Tool) + len(r.Digest)
		for _, a := range r.Approvers {
			n += len(a)
		}
	}
	if f := w.OwnerFailed; f != nil {
		n += verbFrame + len(f.Suspension) + len(f.Owner) + len(f.Code) + len(f.Reason)
	}
	return n
}

// answersSize is answerSize of all; zero in an execution of an older build.
func (s *step) answersSize(list []Child) (n int) {
	if !s.waitsForNews() {
		return 0
	}
	for _, c := range list {
		n += c.answerSize()
	}
	return n
}

// answersText returns answers as a JSON array that the result of call i takes, and how many of them it shows.
// bytes counts what others wrote, and files come with it.
func (s *step) answersText(i int, answers []childAnswer, bytes int, files []agent.Part) (text string, shown int) {
	text = asJSON(answers)
	if !s.waitsForNews() {
		return text, len(answers)
	}
	fits := func(text string) bool { return s.resultFits(i, text, bytes, files) }
	if fits(text) {
		return text, len(answers)
	}
	for _, most := range answerLengths {
		if text = asJSON(shorter(answers, most)); fits(text) {
			return text, len(answers)
		}
	}
	least := shorter(answers, 0)
	for n := len(least) / 2; n > 0; n /= 2 {
		left := childAnswer{Note: fmt.Sprintf("%d more agents are not shown. Name fewer in children.", len(least)-n)}
		if text = asJSON(append(least[:n:n], left)); fits(text) {
			return text, n
		}
	}
	return "There is no space to show agents. Name fewer in children.", 0
}

// answerText returns one answer as a JSON object that the result of call i takes.
func (s *step) answerText(i int, a childAnswer, bytes int) string {
	text := asJSON(a)
	for n := 0; n < len(answerLengths) && s.waitsForNews() && !s.resultFits(i, text, bytes, nil); n++ {
		text = asJSON(shorter([]childAnswer{a}, answerLengths[n])[0])
	}
	return text
}

// answerLengths are how long the texts of answers may be that are too long together, in bytes.
var answerLengths = []int{32 << 10, 8 << 10, maxChildText, 512, 128, 0}

// shorter returns answers with texts of at most so many bytes. The first that go are the lists.
func shorter(answers []childAnswer, most int) []childAnswer {
	all := make([]childAnswer, len(answers))
	for i, a := range answers {
		a.Text, a.Error, a.Unsaved = shortened(a.Text, most), fit(a.Error, most), fit(a.Unsaved, most)
		if len(a.Output) > most {
			a.Output, a.Note = nil, firstOf(a.Note, "The output is too long to be shown.")
		}
		if most <= maxChildText {
			a.Missing = nil
		}
		if a.Workspace != nil && most < maxChildText {
			less := *a.Workspace
			less.Paths, less.PathsLeft = nil, less.PathsLeft+len(less.Paths)
			a.Workspace = &less
		}
		if a.Suspension != nil && most < maxChildText {
			a.Suspension = shorterSuspension(*a.Suspension, most)
		}
		all[i] = a
	}
	return all
}

func shorterSuspension(w agent.SuspensionSummary, most int) *agent.SuspensionSummary {
	w.Reason, w.Requests = fit(w.Reason, most), nil
	if w.OwnerFailed != nil {
		f := *w.OwnerFailed
		f.Reason = fit(f.Reason, most)
		w.OwnerFailed = &f
	}
	return &w
}

// shortened returns the beginning and the end of a text; nothing of it if it may have no length.
func shortened(text string, most int) string {
	if most == 0 {
		return ""
	}
	return excerpt.Of(text, most, len(text))
}

// asJSON encodes texts, numbers and what was read as JSON.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // an output that is no JSON
		return err.Error()
	}
	return string(text)
}
