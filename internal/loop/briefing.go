package loop

import (
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// The model reads a briefing in the runtime's words, which a later build may choose
// otherwise. So a briefing counts what somebody else has written in it, and is known again
// by itself and not by its text.

// startMessage is the message that a run is started with.
func (o Origin) startMessage() agent.Message { return inputMessage(o.Start, o.BriefingText) }

// startDigest tells two starts of one id apart.
func (o Origin) startDigest() string {
	brief := o.BriefingText
	if b := o.Start.Input.Briefing; b != nil {
		if raw, err := json.Marshal(b); err == nil { // it came as JSON
			brief = string(raw)
		}
	}
	return remembered.MessageDigest(inputMessage(o.Start, brief))
}

// bytes is what the message counts that the run is started with, and size its length in JSON.
func (o Origin) bytes() int {
	return o.messageWithoutBriefing().Size() + briefingSize(o.Start.Input.Briefing, length)
}
func (o Origin) size() int {
	return messageJSONLen(o.messageWithoutBriefing()) + briefingSize(o.Start.Input.Briefing, quotedJSONLen)
}

// messageWithoutBriefing is that message without the briefing.
func (o Origin) messageWithoutBriefing() agent.Message { return inputMessage(o.Start, "") }

func length(text string) int { return frame/8 + len(text) }

// quotedJSONLen is how long a text is in JSON at most when it is quoted in Markdown: a line,
// and what would be a tag or an image there, become longer.
func quotedJSONLen(text string) int {
	n := receiptFrame + jsonLen(text)
	for _, r := range text {
		if strings.ContainsRune("<!\n\r\v\f\u0085\u2028\u2029", r) {
			n += len(`\n\u003e `)
		}
	}
	return n
}

// briefingSize is what all texts in a briefing count; nil has none.
func briefingSize(b *agent.Handoff, count func(string) int) (n int) {
	if b == nil {
		return 0
	}
	for h := range b.All() {
		n += ownWords
		for _, text := range textsOf(h) {
			n += count(text)
		}
	}
	return n
}

// textsOf are the texts of one agent's handoff.
func textsOf(h *agent.Handoff) (all []string) {
	all = append(all, h.Session, h.Run, h.Agent, string(h.Status), h.Task, h.Reason, h.Summary, string(h.SummarizedBy), string(h.ConfidenceBy))
	for _, items := range [][]agent.WorkItem{h.Done, h.InFlight, h.NotStarted, h.Failed} {
		for _, i := range items {
			all = append(all, i.What, i.Ref)
		}
	}
	for _, r := range h.Requests {
		all = append(all, r.ID, string(r.Type), r.Text)
		if r.Call != nil {
			all = append(all, r.Call.Tool, r.Call.ID)
		}
	}
	for _, e := range h.UnknownEffects {
		all = append(all, e.Tool, e.Call, e.Since, e.Key)
	}
	for _, e := range h.Evidence {
		all = append(all, e.Kind, e.Ref, e.Note)
	}
	return append(append(all, h.OpenQuestions...), h.Decisions...)
}
