package conformance

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

func madeCall(id, tool, arguments string) agent.Part {
	p := model.CallPart("theirs", tool, arguments) // providers repeat their ids
	p.Call.ID = id
	return p
}

func resultOf(call, tool string, status agent.CallStatus, text string) agent.Message {
	return agent.Message{Role: agent.RoleTool, Parts: []agent.Part{
		{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: call, Tool: tool, Status: status, Text: text}}}}
}

func saidText(text string) agent.Part { return agent.Part{Type: agent.PartText, Text: text} }

// conversation consists of two runs, in both of which calls are numbered from one.
func (a adapter) conversation() *model.Request {
	assistant := func(parts ...agent.Part) agent.Message {
		return agent.Message{Role: agent.RoleAssistant, Model: a.o.Provider + "/" + a.o.Model, Parts: parts}
	}
	both := resultOf("t1.2", "now", agent.CallFailed, "no clock")
	// Both results are in one message, as the runtime stores them.
	both.Parts = append(resultOf("t1.1", "weather", agent.CallOK, `21 °C, "mild"`).Parts, both.Parts...)
	both.Parts = append(both.Parts, saidText("[file 1, from a call of weather]")) // as the runtime names files that follow
	req := a.question()
	req.Messages = append(req.Messages,
		assistant(saidText("Let me look."), madeCall("t1.1", "weather", `{"city":"Rome"}`), madeCall("t1.2", "now", "")),
		both,
		assistant(saidText("Mild.")),
		agent.TextMessage(agent.RoleUser, "And Oslo?\nIn winter."),
		assistant(madeCall("t1.1", "weather", `{"city":`), madeCall("t1.2", "weather", `{"city":"Oslo"}`)),
		resultOf("t1.1", "weather", agent.CallRejected, "the arguments are not JSON"),
		resultOf("t1.2", "weather", agent.CallOK, "-3 °C"),
		assistant(saidText("Cold.")),
		agent.TextMessage(agent.RoleUser, "Thank you."),
	)
	return req
}

// anyReply is the reply for parts that are about the request.
var anyReply = wholeReply(model.FinishStop, textBlock("Very ", "well", "."))

// brokenCall is the number of the call in the conversation whose arguments are no JSON.
// The adapter chooses what it sends instead.
const brokenCall = 3

// lines are a conversation, a part a line. Of names the call that a result in the
// i-th message is for: they are counted.
func (l Unsupported) lines(t testing.TB, messages []agent.Message, of func(i int, call string) string) []string {
	t.Helper()
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	calls, results := 0, 0
	for i, m := range messages {
		who := "user"
		if m.Role == agent.RoleAssistant {
			who = "assistant"
		}
		for _, p := range m.Parts {
			switch {
			case p.Type == agent.PartText:
				say("%s: %s", who, p.Text)
			case p.Type == agent.PartToolCall && p.Call != nil:
				calls++
				arguments := canonical(p.Call.Arguments)
				// What replaces broken arguments is the adapter's choice.
				if calls == brokenCall {
					arguments = "(not JSON)"
				}
				say("%s: call%05d is %s %s", who, calls, p.Call.Tool, arguments)
			case p.Type == agent.PartToolResult && p.Result != nil:
				results++
				call := of(i, p.Result.Call)
				// Without ids, the order connects a result with its call.
				if l.CallIDs {
					call = fmt.Sprintf("call%05d", results)
				}
				say("user: %s is done (well: %v): %s", call, p.Result.Status == agent.CallOK || l.FailedResults, p.Result.Text)
			}
		}
	}
	return out
}

// wireIDs are the calls of a request by the ids that it has for them.
func (l Unsupported) wireIDs(t testing.TB, messages []agent.Message) map[string]string {
	t.Helper()
	ids := map[string]string{}
	n := 0
	for _, m := range messages {
		for _, c := range m.ToolCalls() {
			n++
			// There is nothing to check then.
			if l.CallIDs {
				continue
			}
			require.NotEmpty(t, c.ID, "the call of %s is sent without an id: nothing connects it with its result", c.Tool)
			require.NotContains(t, ids, c.ID, "two calls are sent with the id %q: providers refuse that or mix up the results; see model.CallIDs", c.ID)
			ids[c.ID] = fmt.Sprintf("call%05d", n)
		}
	}
	return ids
}

// sent makes a call with a request, and returns what the provider got.
func (a adapter) sent(t testing.TB, how string, req func() *model.Request) ProviderRequest {
	t.Helper()
	s := a.plays(t, anyReply)
	a.same(t, how, anyReply, s.answered(how, req))
	return s.last()
}

func conversationIsAsked(t testing.TB, a adapter) {
	asked := a.sent(t, "a conversation over two runs", a.conversation)
	ids := a.o.Unsupported.wireIDs(t, asked.Messages)
	got := a.o.Unsupported.lines(t, asked.Messages, func(_ int, call string) string { return ids[call] })
	held := a.conversation().Messages
	// The expected ids are those that model.CallIDs gives, because calls of two runs have the same
	// numbers.
	require.Equal(t, a.o.Unsupported.lines(t, held, model.CallIDs(held)), got,
		"the model does not read the conversation as it was (where only \"well\" differs, see Unsupported.FailedResults)")
	brokenIsSent(t, asked.Messages)
}

// brokenIsSent checks what replaces arguments that are no JSON.
func brokenIsSent(t testing.TB, messages []agent.Message) {
	t.Helper()
	n := 0
	for _, m := range messages {
		for _, c := range m.ToolCalls() {
			if n++; n != brokenCall {
				continue
			}
			sent := string(c.Arguments) + c.Malformed
			require.NotContains(t, []string{"", `""`, "null"}, sent,
				"the call whose arguments are no JSON is sent with the arguments %q: the provider refuses that; send {}, or Call.Malformed if the provider accepts any text", sent)
		}
	}
}

// resultsGoWithCalls uses results in another order than their calls.
func resultsGoWithCalls(t testing.TB, a adapter) {
	req := func() *model.Request {
		r := a.question()
		r.Messages = append(r.Messages,
			agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{madeCall("t1.1", "f", `{}`), madeCall("t1.2", "f", `{}`)}},
			resultOf("t1.2", "f", agent.CallOK, "of the second"), resultOf("t1.1", "f", agent.CallOK, "of the first"))
		return r
	}
	asked := a.sent(t, "two results in another order", req)
	ids := a.o.Unsupported.wireIDs(t, asked.Messages)
	got := map[string]string{}
	for _, m := range asked.Messages {
		for _, p := range m.Parts {
			if p.Result != nil {
				got[ids[p.Result.Call]] = p.Result.Text
			}
		}
	}
	require.Equal(t, map[string]string{"call00001": "of the first", "call00002": "of the second"}, got, "the model reads a result as the result of another call")
}

func thinkingGoesBack(t testing.TB, a adapter) {
	const signature = "c2lnbmF0dXJl"
	require.NotEmpty(t, a.o.Provider, "ModelOptions.Provider is empty: set it to the adapter's name for its provider, the part before the slash in full names of models; the adapter recognises its own thinking by it")
	for by, back := range map[string]bool{a.o.Provider: true, "another": false} {
		asked := a.sent(t, "thinking by "+by, func() *model.Request {
			r := a.question()
			parts := []agent.Part{{Type: agent.PartThinking, Text: "I should look.", Signature: signature, ProviderID: "rs_1"}, madeCall("t1.1", "now", `{}`)}
			// A provider refuses another provider's server tools, too.
			if !back {
				parts = append(parts, agent.Part{Type: agent.PartServerTool, Text: "web_search", Raw: json.RawMessage(`{"type":"server_tool_use","id":"s-1","name":"web_search","input":{}}`)})
			}
			r.Messages = append(r.Messages,
				agent.Message{Role: agent.RoleAssistant, Model: by + "/" + a.o.Model, Parts: parts},
				resultOf("t1.1", "now", agent.CallOK, "12:00"))
			return r
		})
		marks := 0
		for _, m := range asked.Messages {
			for _, p := range m.Parts {
				if p.Type == agent.PartThinking && p.Signature == signature {
					marks++
				}
				require.False(t, back && marks == 0 && p.Type == agent.PartToolCall, "the call comes before its thinking, or the thinking is missing: the provider refuses the turn")
			}
		}
		if back {
			require.Equal(t, 1, marks, "the provider's own thinking must be sent back once, with its signature: agent.Provider(msg.Model) is ModelOptions.Provider, %q", a.o.Provider)
		} else {
			require.Zero(t, marks, "the thinking of another provider is sent to this one, which refuses it")
		}
	}
}

// suiteTools returns tools with and without a schema, not in the order of their names.
func suiteTools() []agent.ToolSpec {
	return []agent.ToolSpec{
		{Name: "weather", Description: "The weather of a \"city\".", Input: json.RawMessage(
			`{"type":"object","properties":{"city":{"type":"string","description":"<name> & country"},"days":{"type":["integer","null"],"minimum":1}},"required":["city"],"additionalProperties":false}`)},
		{Name: "now", Description: "The time."},
	}
}

func settingsAreSent(t testing.TB, a adapter) {
	warm := 0.5
	asked := a.sent(t, "a request with everything", func() *model.Request {
		r := a.question()
		r.Instructions, r.Tools, r.MaxOutputTokens, r.Temperature = "Be brief.\nBe kind.", suiteTools(), 1234, &warm
		return r
	})
	require.Equal(t, a.o.Model, asked.Model, "the model")
	require.Equal(t, "Be brief.\nBe kind.", asked.Instructions, "the instructions")
	if !a.o.Unsupported.Keys {
		require.Equal(t, suiteKey, asked.Key, "the key (see Unsupported.Keys)")
	}
	if !a.o.Unsupported.OutputCap {
		require.Equal(t, 1234, asked.MaxOutputTokens, "the bound of the reply's length (see Unsupported.OutputCap)")
	}
	if !a.o.Unsupported.Temperature {
		a.temperatureIsSent(t, warm, asked)
		// Zero is a temperature too, and easily confused with none.
		cold := 0.0
		a.temperatureIsSent(t, cold, a.sent(t, "a request with the temperature 0", func() *model.Request {
			r := a.question()
			r.Temperature = &cold
			return r
		}))
	}
	require.Len(t, asked.Tools, len(suiteTools()), "the tools")
	for i, want := range suiteTools() {
		require.Equal(t, want.Name, asked.Tools[i].Name, "the tools, in their order: another order misses the provider's cache")
		require.Equal(t, want.Description, asked.Tools[i].Description, "what the model reads of %s", want.Name)
		keepsSchema(t, want, asked.Tools[i])
	}
	plain := a.sent(t, "a request with nothing", a.question)
	require.Nil(t, plain.Temperature, "a temperature that nobody asked for")
	require.Empty(t, plain.Instructions, "instructions that nobody gave")
	require.Empty(t, plain.Tools, "tools that nobody gave")
}

func (a adapter) temperatureIsSent(t testing.TB, want float64, asked ProviderRequest) {
	t.Helper()
	require.NotNil(t, asked.Temperature, "the temperature %v was not sent: only nil means that there is none (see Unsupported.Temperature)", want)
	require.InDelta(t, want, *asked.Temperature, 1e-9, "another temperature was sent")
}

// keepsSchema requires that everything of a schema was sent. The adapter may add to it.
func keepsSchema(t testing.TB, want, got agent.ToolSpec) {
	t.Helper()
	var was, is map[string]json.RawMessage
	// A provider may need a schema where the tool has none.
	if len(want.Input) == 0 {
		return
	}
	require.NoError(t, json.Unmarshal(want.Input, &was))
	require.NoError(t, json.Unmarshal(got.Input, &is), "the schema of %s", want.Name)
	for key, value := range was {
		require.Equal(t, canonical(value), canonical(is[key]), "%q in the schema of %s: arguments are checked against the tool's own schema", key, want.Name)
	}
}

func privateStays(t testing.TB, a adapter) {
	asked := a.sent(t, "a request with names of ours", func() *model.Request {
		r := a.question()
		r.Call = model.CallInfo{Session: "session-4711", Run: "run-4712", Turn: 1, Attempt: 1}
		r.Messages[0].ID, r.Messages[0].By = "message-4713", "ana-4714@example.com"
		return r
	})
	for _, private := range []string{"session-4711", "run-4712", "message-4713", "ana-4714"} {
		require.NotContains(t, asked.Raw, private, "a private name was sent to the provider")
	}
}

func schemaIsAccepted(t testing.TB, a adapter) {
	for _, schema := range []string{
		`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`,
		`{"type":"array","items":{"type":"string","minLength":3}}`,
	} {
		a.sent(t, "an answer of the schema "+schema, func() *model.Request {
			r := a.question()
			r.Output = json.RawMessage(schema)
			return r
		})
	}
}
