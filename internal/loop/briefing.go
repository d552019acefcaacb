package loop

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// The model gets a briefing as a text that the runtime writes around a handoff. A later build may
// word it differently, and a replay must decide the same. So sizes count only what a tool, model
// or person wrote in the handoff, and a repeated start is recognized by the handoff, not the text.

// startMessage returns the message that the run was started with.
func (o Origin) startMessage() agent.Message { return inputMessage(o.Start, o.BriefingText) }

// flowInput returns what a flow's function gets as its input, if the agent is one: the last text. It is
// empty if the function gets the input of a run that this one forks or continues.
func (o Origin) flowInput() string {
	if f := o.Start.From; f != nil && !f.ReplaceInput || o.Start.Import != "" {
		return ""
	}
	for _, p := range slices.Backward(o.messageWithoutBriefing().Parts) {
		if p.Type == agent.PartText {
			return p.Text
		}
	}
	return ""
}

// startDigest returns a digest that tells two starts with the same id apart.
func (o Origin) startDigest() string {
	brief := o.BriefingText
	if b := o.Start.Input.Briefing; b != nil {
		if raw, err := json.Marshal(b); err == nil { // cannot fail: it came as JSON
			brief = string(raw)
		}
	}
	return remembered.MessageDigest(inputMessage(o.Start, brief))
}

// bytes returns what the start message counts in the log (see weight.go), and size its greatest
// length in JSON.
func (o Origin) bytes() int {
	return o.messageWithoutBriefing().Size() + briefingSize(o.Start.Input.Briefing, length)
}
func (o Origin) size() int {
	return messageJSONLen(o.messageWithoutBriefing()) + briefingSize(o.Start.Input.Briefing, quotedJSONLen)
}

// messageWithoutBriefing returns the start message without the briefing's text.
func (o Origin) messageWithoutBriefing() agent.Message { return inputMessage(o.Start, "") }

func length(text string) int { return frame/8 + len(text) }

// quotedJSONLen returns the greatest length in JSON of a text that is quoted in Markdown. There
// each new line gets a prefix, and characters that could begin a tag or an image are escaped.
func quotedJSONLen(text string) int {
	n := receiptFrame + jsonLen(text)
	for _, r := range text {
		if strings.ContainsRune("<!\n\r\v\f\u0085\u2028\u2029", r) {
			n += len(`\n\u003e `)
		}
	}
	return n
}

// briefingSize sums up the texts of a briefing, as count counts each; zero for nil.
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

// textsOf returns the texts of one agent's handoff.
func textsOf(h *agent.Handoff) (all []string) {
	all = append(all, h.Session, h.Run, h.Agent, string(h.Status), h.Task, h.Reason, h.Summary, h.Rationale, string(h.SummarizedBy), string(h.ConfidenceBy))
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
	for _, a := range h.Artifacts {
		all = append(all, a.Name, a.MediaType, a.Session, a.Call)
	}
	for _, e := range h.Evidence {
		all = append(all, e.Kind, e.Ref, e.Note)
	}
	return slices.Concat(all, h.OpenQuestions, h.Decisions, h.Blockers, h.NextSteps)
}

func inputMessage(start *agent.Start, brief string) agent.Message {
	m := agent.Message{ID: start.ID, Role: agent.RoleUser, By: start.By}
	if brief != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: brief})
	}
	if start.Input.Text != "" {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: start.Input.Text})
	}
	m.Parts = append(m.Parts, start.Input.Parts...)
	if len(start.Input.Data) > 0 {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartText, Text: string(start.Input.Data)})
	}
	return m
}
