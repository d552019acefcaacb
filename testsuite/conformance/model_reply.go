package conformance

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

func textBlock(pieces ...string) Block { return Block{Type: agent.PartText, Pieces: pieces} }

func callBlock(id, tool string, pieces ...string) Block {
	return Block{Type: agent.PartToolCall, ID: id, Tool: tool, Pieces: pieces}
}

// wholeReply returns a complete reply of some blocks.
func wholeReply(finish model.Finish, blocks ...Block) ProviderResponse {
	return ProviderResponse{Blocks: blocks, Finish: finish, Usage: plainUsage}
}

// check plays a response and compares the reply with it.
func (a adapter) check(t testing.TB, how string, response ProviderResponse) {
	t.Helper()
	out := a.plays(t, response).answered(how, a.question)
	a.same(t, how, response, out)
}

// same compares a reply, and what was emitted of it, with what the provider sent.
func (a adapter) same(t testing.TB, how string, response ProviderResponse, out outcome) {
	t.Helper()
	want := response.parts()
	var text, thinking string
	for _, p := range want {
		switch p.Type {
		case agent.PartText:
			text += p.Text
		case agent.PartThinking:
			thinking += p.Text
		}
	}
	// First, because a wrong call has worse effects than a wrong text.
	require.Equal(t, calledTools(want), calledTools(out.reply.Parts), "%s: the calls in the reply: a lost call is never made, and a doubled call is made twice", how)
	require.Len(t, out.reply.Parts, len(want), "%s: the parts of the reply are %s", how, asJSON(out.reply.Parts))
	for i, w := range want {
		a.samePart(t, how, w, out.reply.Parts[i])
	}
	require.Equal(t, response.Finish, out.reply.Finish, "%s: the reason to stop decides what the run does next", how)
	require.Equal(t, response.Usage, out.reply.Usage, "%s: limits and costs count usage", how)
	require.Equal(t, text, out.emitted.text.String(), "%s: the pieces of text that were emitted are not the reply's text", how)
	require.Equal(t, thinking, out.emitted.thinking.String(), "%s: the pieces of thinking that were emitted are not the reply's thinking", how)
}

// parts returns the response's blocks in the runtime's form.
func (s ProviderResponse) parts() []agent.Part {
	var parts []agent.Part
	for _, b := range s.Blocks {
		whole := strings.Join(b.Pieces, "")
		if b.Type == agent.PartToolCall {
			parts = append(parts, model.CallPart(b.ID, b.Tool, whole))
		} else {
			parts = append(parts, agent.Part{Type: b.Type, Text: whole, Signature: b.Signature})
		}
	}
	return parts
}

func (a adapter) samePart(t testing.TB, how string, want, got agent.Part) {
	t.Helper()
	require.Equal(t, want.Type, got.Type, "%s: the parts are not in the model's order", how)
	require.Equal(t, want.Text, got.Text, how)
	if !a.o.Unsupported.Signatures {
		require.Equal(t, want.Signature, got.Signature, "%s: the provider refuses thinking that is sent back without its signature (see Unsupported.Signatures)", how)
	}
	if want.Call == nil {
		return
	}
	require.NotNil(t, got.Call, how)
	// Its own message, because a lost piece usually shows as broken JSON.
	if want.Call.Malformed == "" && got.Call.Malformed != "" {
		t.Fatalf("%s: the arguments of %s are %q in the reply, which is not JSON, but the model wrote %s: a piece of them was lost or added",
			how, want.Call.Tool, got.Call.Malformed, want.Call.Arguments)
	}
	require.Equal(t, want.Call.Malformed, got.Call.Malformed,
		"%s: text that is not JSON belongs in Call.Malformed, where model.CallPart puts it: the model reads it and can correct its call", how)
	require.True(t, sameJSON(want.Call.Arguments, got.Call.Arguments),
		"%s: the arguments of %s are %s, and the model wrote %s", how, want.Call.Tool, got.Call.Arguments, want.Call.Arguments)
	if !a.o.Unsupported.CallIDs {
		require.Equal(t, want.Call.ProviderID, got.Call.ProviderID, "%s: the provider's id of the call of %s (see Unsupported.CallIDs)", how, want.Call.Tool)
	}
	require.Empty(t, got.Call.ID, "%s: the runtime sets the ids of calls; the provider's id belongs in ProviderID", how)
}

func calledTools(parts []agent.Part) []string {
	names := []string{}
	for _, c := range (agent.Message{Parts: parts}).ToolCalls() {
		names = append(names, c.Tool)
	}
	return names
}

// sameJSON compares JSON by its content, numbers to the last digit.
func sameJSON(a, b json.RawMessage) bool {
	return canonical(a) == canonical(b)
}

func canonical(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	// Numbers stay texts, because a float would hide a changed digit.
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "not JSON: " + string(raw)
	}
	// Encoding sorts the keys, so equal objects have equal texts.
	return asJSON(v)
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func replyIsWhatWasSaid(t testing.TB, a adapter) {
	a.check(t, "a text in pieces", wholeReply(model.FinishStop, textBlock("Hello", ", ", "wörld 🌍", "\n\"done\" \\ <b>&amp;")))
	a.check(t, "a text in one piece", wholeReply(model.FinishStop, textBlock("x")))
	a.check(t, "no text at all", wholeReply(model.FinishStop))
	a.check(t, "a long text", wholeReply(model.FinishStop, textBlock(strings.Repeat("a long line\n", 2000), strings.Repeat("ö", 70_000))))
}

func callsStay(t testing.TB, a adapter) {
	a.check(t, "a text and three calls", wholeReply(model.FinishToolCalls, textBlock("Let me ", "look."),
		callBlock("call_a", "weather", `{"city"`, `:"Ro`, `me"}`),
		callBlock("call_b", "now"),
		callBlock("call_c", "weather", `{"city":"Oslo","at":`, `"12:00"}`)))
	a.check(t, "the same call twice", wholeReply(model.FinishToolCalls,
		callBlock("call_a", "add", `{"n":1}`), callBlock("call_b", "add", `{"n":1}`)))
	a.check(t, "one call and no text", wholeReply(model.FinishToolCalls, callBlock("call_a", "now", "{}")))
	a.check(t, "arguments of every type", wholeReply(model.FinishToolCalls,
		callBlock("call_a", "pay", `{"id":12345678901234567891,"amount":0.10,`, `"tags":["<a>","ü","\u0000\n"],"to":{"name":null,"ok":true},"":[]}`)))
}

func brokenArgumentsAreKept(t testing.TB, a adapter) {
	a.check(t, "arguments that end too early", wholeReply(model.FinishToolCalls, callBlock("call_a", "pay", `{"amount"`, `: 5`), callBlock("call_b", "now", `{}`)))
	a.check(t, "arguments that are no object", wholeReply(model.FinishToolCalls, callBlock("call_a", "pay", `[5]`)))
}

func idsStay(t testing.TB, a adapter) {
	a.check(t, "ids repeated", wholeReply(model.FinishToolCalls,
		callBlock("same", "f", `{"n":1}`), callBlock("same", "g", `{"n":2}`), callBlock("other", "f", `{"n":3}`)))
	a.check(t, "an id missing", wholeReply(model.FinishToolCalls, callBlock("", "f", `{"n":1}`)))
}

func thinkingStays(t testing.TB, a adapter) {
	// Adapters of real providers decode it, so it must be base64.
	signature := "c2lnbmF0dXJl"
	if a.o.Unsupported.Signatures {
		signature = ""
	}
	a.check(t, "thinking, a text and a call", wholeReply(model.FinishToolCalls,
		Block{Type: agent.PartThinking, Pieces: []string{"Two and ", "two."}, Signature: signature},
		textBlock("Four."), callBlock("call_a", "now", "{}")))
}

func finishIsRight(t testing.TB, a adapter) {
	a.check(t, "cut off at its limit", wholeReply(model.FinishLength, textBlock("Once ", "upon")))
	if !a.o.Unsupported.Refusals {
		a.check(t, "refused (see Unsupported.Refusals)", wholeReply(model.FinishContentFilter, textBlock("I can't ", "do that.")))
	}
	// With JSON values as arguments, a call that is cut off can't be expressed.
	if !a.o.Unsupported.BrokenJSON {
		a.check(t, "cut off in a call", wholeReply(model.FinishLength, callBlock("call_a", "f", `{"n":`)))
	}
}

func usageIsRight(t testing.TB, a adapter) {
	response := wholeReply(model.FinishStop, textBlock("Four", ", ", "I think."))
	response.Usage = agent.Usage{Input: 4312, Output: 500, CacheRead: 4000, CacheWrite: 300, Reasoning: 420}
	if a.o.Unsupported.CacheRead {
		response.Usage.CacheRead = 0
	}
	if a.o.Unsupported.CacheWrite {
		response.Usage.CacheWrite = 0
	}
	if a.o.Unsupported.Reasoning {
		response.Usage.Reasoning = 0
	}
	a.check(t, "usage with a cache and with reasoning (see CacheRead, CacheWrite and Reasoning of Unsupported)", response)
}

// emitted plays a response whose rest comes only after enough was emitted. An adapter that emits
// only at the end would wait forever.
func (a adapter) emits(t testing.TB, how string, response ProviderResponse, enough func(model.Delta) bool) {
	t.Helper()
	rest := make(chan struct{})
	response.Wait = rest
	var once sync.Once
	out := a.plays(t, response).ask(t.Context(), how, a.question, func(d model.Delta) {
		// emit is called for every piece, and a channel can be closed only once.
		if enough(d) {
			once.Do(func() { close(rest) })
		}
	})
	require.NoError(t, out.err, how)
	a.same(t, how, response, out)
}

func replyIsEmitted(t testing.TB, a adapter) {
	a.emits(t, "a reply whose pieces are emitted before its end", wholeReply(model.FinishStop, textBlock("Hello", ", ", "world", ".")),
		func(d model.Delta) bool { return d.Text != "" })
}

func callIsASign(t testing.TB, a adapter) {
	a.emits(t, "a call that arrives in pieces", wholeReply(model.FinishToolCalls, callBlock("call_a", "write", `{"text":"`, "a long ", "text", `"}`)),
		func(model.Delta) bool { return true })
}

func pingIsASign(t testing.TB, a adapter) {
	response := wholeReply(model.FinishStop, textBlock("Hello"))
	response.Ping = true
	a.emits(t, "a ping", response, func(model.Delta) bool { return true })
}
