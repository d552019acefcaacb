package gemini_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

var plainUsage = agent.Usage{Input: 10, Output: 25}

var replies = []struct {
	name   string
	chunks []string
	want   model.Reply
}{{
	name:   "text",
	chunks: []string{chunk(text("Hello")), chunk(text(", wörld")), because("STOP")},
	want:   model.Reply{Parts: []agent.Part{said("Hello, wörld")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "text that is signed at its end, on no words",
	chunks: []string{chunk(thinks("Two and "), thinks("two.")), chunk(text("Four.")), chunk(signed(text(""), "c2ln")), because("STOP")},
	want:   model.Reply{Parts: []agent.Part{thought("Two and two.", ""), said("Four."), thought("", "c2ln")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name: "calls at once, of which the first is signed",
	chunks: []string{chunk(thinks("Look it up.")), chunk(signed(calls("a", "weather", `{"city":"Rome","n":12345678901234567891}`), "c2ln"), calls("b", "weather", `{"city":"Oslo"}`)),
		chunk(calls("", "now", "")), because("STOP")},
	want: model.Reply{Parts: []agent.Part{thought("Look it up.", "c2ln"), model.CallPart("a", "weather", `{"city":"Rome","n":12345678901234567891}`),
		model.CallPart("b", "weather", `{"city":"Oslo"}`), model.CallPart("", "now", "")}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name:   "a call that is signed without a word of thinking, and whose arguments are null",
	chunks: []string{chunk(signed(calls("a", "now", `null`), "c2ln")), because("STOP")},
	want:   model.Reply{Parts: []agent.Part{thought("", "c2ln"), model.CallPart("a", "now", "")}, Finish: model.FinishToolCalls, Usage: plainUsage},
}, {
	name:   "thinking that is signed itself, twice",
	chunks: []string{chunk(signed(thinks("One."), "MQ==")), chunk(signed(thinks("Two."), "Mg==")), chunk(text("Three.")), because("STOP")},
	want:   model.Reply{Parts: []agent.Part{thought("One.", "MQ=="), thought("Two.", "Mg=="), said("Three.")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name: "parts, candidates and fields that nobody knows",
	chunks: []string{`{"candidates":[{"index":1,"content":{"parts":[{"text":"other"}]}},{"content":{"parts":[{"executableCode":{"code":"1"}},{"inlineData":{"data":"eA=="}},{"new":[1]}]},"safetyRatings":[{"category":"X"}],"groundingMetadata":{}}],"modelStatus":{"x":"not a time"}}`,
		chunk(text("x")), because("STOP")},
	want: model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name:   "a reason to stop that nobody knows",
	chunks: []string{chunk(text("x")), because("BORED")},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: plainUsage},
}, {
	name: "usage that grows, with a cache, thoughts and tools of the provider's",
	chunks: []string{`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":4000,"candidatesTokenCount":1}}`,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4000,"toolUsePromptTokenCount":12,"cachedContentTokenCount":3000,"candidatesTokenCount":80,"thoughtsTokenCount":420,"totalTokenCount":4512}}`},
	want: model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishStop, Usage: agent.Usage{Input: 4012, Output: 500, CacheRead: 3000, Reasoning: 420}},
}, {
	name:   "cut off at its limit, in its thinking",
	chunks: []string{chunk(thinks("Hm.")), because("MAX_TOKENS")},
	want:   model.Reply{Parts: []agent.Part{thought("Hm.", "")}, Finish: model.FinishLength, Usage: plainUsage},
}, {
	name:   "to be continued",
	chunks: []string{chunk(text("x")), because("CONTINUATION")},
	want:   model.Reply{Parts: []agent.Part{said("x")}, Finish: model.FinishLength, Usage: plainUsage},
}, {
	name:   "filtered in its midst",
	chunks: []string{chunk(text("Once")), because("SAFETY")},
	want:   model.Reply{Parts: []agent.Part{said("Once")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name:   "filtered, with a reason",
	chunks: []string{`{"candidates":[{"finishReason":"RECITATION","finishMessage":"It is a song's."}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":25}}`},
	want:   model.Reply{Parts: []agent.Part{said("RECITATION: It is a song's.")}, Finish: model.FinishContentFilter, Usage: plainUsage},
}, {
	name:   "a question that is filtered",
	chunks: []string{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`},
	want:   model.Reply{Parts: []agent.Part{said("PROHIBITED_CONTENT")}, Finish: model.FinishContentFilter, Usage: agent.Usage{Input: 10}},
}}

func TestReplies(t *testing.T) {
	for _, c := range replies {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{0, 7} {
				m, _ := serve(t, standin.Drip(stream(c.chunks...), n))
				reply, h := standin.Reply(t, m, ask("Hello"))
				standin.Same(t, fmt.Sprintf("in pieces of %d", n), reply, &c.want, h)
			}
		})
	}
}

// What came back goes back: the next request has each signature on the part that had it.
func TestSignaturesGoBackWhereTheyWere(t *testing.T) {
	m, _ := serve(t, standin.Drip(stream(chunk(thinks("Hm.")), chunk(signed(calls("a", "now", `{}`), "Zmlyc3Q="), calls("b", "now", `{}`)), because("STOP")), 0))
	reply, _ := standin.Reply(t, m, ask("Hello"))
	n := 0
	for _, p := range reply.Parts {
		if p.Call != nil {
			n++
			p.Call.ID = fmt.Sprintf("t1.%d", n)
		}
	}
	m, s := serve(t, standin.Drip(whole, 0))
	req := ask("Hello")
	req.Messages = append(req.Messages, assistant(flash, reply.Parts...),
		agent.Message{Role: agent.RoleTool, Parts: []agent.Part{result("t1.1", "now", agent.CallOK, "12:00"), result("t1.2", "now", agent.CallOK, "12:00")}})
	standin.Reply(t, m, req)
	require.Contains(t, string(s.Bodies[0]), `[{"thoughtSignature":"Zmlyc3Q=","functionCall":{"id":"call00001","name":"now","args":{}}},{"functionCall":{"id":"call00002","name":"now","args":{}}}]`)
}

// A gateway that does not stream answers at once, with one event or a list.
func TestWholeReply(t *testing.T) {
	for _, body := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":25}}`,
		`[` + chunk(text("Hel")) + `,` + chunk(text("lo")) + `,` + because("STOP") + `]`,
	} {
		m, _ := serve(t, standin.Answer(200, "application/json", body))
		reply, h := standin.Reply(t, m, ask("Hello"))
		standin.Same(t, body, reply, &model.Reply{Parts: []agent.Part{said("Hello")}, Finish: model.FinishStop, Usage: plainUsage}, h)
	}
}

// Up to its reason to stop a stream that ends is a fault; what breaks behind it has
// taken nothing from the reply.
func TestEnds(t *testing.T) {
	m, s := serve(t, standin.Drip(stream(chunk(text("Hel"))), 0))
	fault := mustFail(t, m, s)
	require.Equal(t, agent.FaultTransient, fault.Provider.Kind)
	require.Contains(t, fault.Message, "the stream broke off after")

	m, _ = serve(t, func(w http.ResponseWriter, r *http.Request) {
		standin.Drip(stream(chunk(text("Hello")), because("STOP")), 0)(w, r)
		panic(http.ErrAbortHandler)
	})
	reply, _ := standin.Reply(t, m, ask("Hello"))
	require.Equal(t, model.FinishStop, reply.Finish)

	m, _ = serve(t, standin.Drip("event: message\nid: 1\n"+stream(chunk(text("Hello")))+"data: "+because("STOP"), 3))
	reply, _ = standin.Reply(t, m, ask("Hello"))
	require.Equal(t, []agent.Part{said("Hello")}, reply.Parts, "the last event has no blank line behind it")
}
