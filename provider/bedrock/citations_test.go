package bedrock_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/bedrock"
)

func cites(index int, citation string) string { return delta(index, `{"citation":%s}`, citation) }

// citing starts a stand-in that answers with events, and a Model whose documents may be cited.
func citing(t *testing.T, events ...string) (model.Model, *standin.Server) {
	t.Helper()
	s := standin.Listen(t, streams(events...))
	o := options(s.URL, token, nil)
	o.Citations = true
	return bedrock.New(o), s
}

// Each block cites its sources for the whole of its text: files by digest, by their number or,
// where Bedrock says none, by the name that they have in the request.
func TestCitations(t *testing.T) {
	bytes := map[string][]byte{}
	plan, spec := standin.Shown(bytes, "plan.pdf", "application/pdf", []byte("%PDF-1")), standin.Shown(bytes, "Größe.pdf", "application/pdf", []byte("%PDF-2"))
	m, s := citing(t, begin, text(0, "Rom ist "), cites(0, `{"title":"plan-1","sourceContent":[{"text":"It is "},{"text":"sunny."}],"location":{"documentPage":{"documentIndex":0,"start":2,"end":3}}}`), text(0, "sonnig 🌞."), stop(0),
		text(1, " "), stop(1),
		text(2, "Warm."), cites(2, `{"sourceContent":[],"location":{"documentChar":{"documentIndex":1,"start":4,"end":9}}}`),
		cites(2, `{"title":"plan-1","location":{"web":{}}}`),
		cites(2, `{"location":{"web":{"url":"https://a.example","domain":"a.example"}}}`),
		cites(2, `{"source":"shelf 7","location":{"searchResultLocation":{"searchResultIndex":0,"start":1,"end":1}}}`), stop(2),
		cites(3, `{"location":{"web":{"url":"https://a.example"}}}`), stop(3),
		because("end_turn"), used)
	req := &model.Request{Model: sonnet, Files: bytes, Messages: []agent.Message{{Role: agent.RoleUser, Parts: []agent.Part{plan, spec, standin.Said("How is Rome?")}}}}
	reply, _ := standin.Reply(t, m, req)
	require.Equal(t, []agent.Part{
		{Type: agent.PartText, Text: "Rom ist sonnig 🌞.", Citations: []agent.Citation{
			{End: 20, Title: "plan.pdf", File: plan.File.Digest, Unit: agent.CitedPages, From: 2, To: 3, Text: "It is sunny."},
		}},
		standin.Said(" "),
		{Type: agent.PartText, Text: "Warm.", Citations: []agent.Citation{
			{End: 5, Title: "Größe.pdf", File: spec.File.Digest, Unit: agent.CitedChars, From: 4, To: 9},
			{End: 5, Title: "plan.pdf", File: plan.File.Digest},
			{End: 5, URL: "https://a.example", Title: "a.example"},
			{End: 5, Title: "shelf 7", Unit: agent.CitedBlocks, From: 1, To: 2},
		}},
	}, reply.Parts)
	require.Equal(t, 2, strings.Count(string(s.Bodies[0]), `"citations":{"enabled":true}`))

	req.Output = []byte(`{"type":"object"}`)
	standin.Reply(t, m, req)
	req.Output, req.Model = nil, "eu.amazon.nova-pro-v1:0" // which refuses it
	standin.Reply(t, m, req)
	req.Model = sonnet
	standin.Reply(t, at(s.URL, http.DefaultClient), req)
	for _, body := range s.Bodies[1:] {
		require.NotContains(t, string(body), "citations")
	}
}

// Far too many, false ones, and one of another form: the reply is one.
func TestHostileCitations(t *testing.T) {
	const n = 1000
	events := []string{begin, text(0, "Sunny.")}
	for i := range n {
		events = append(events, cites(0, fmt.Sprintf(`{"title":"A","location":{"web":{"url":"https://a.example/%d"}},"sourceContent":[{"text":%q}]}`, i, strings.Repeat("x", 20<<10))))
	}
	m, _ := serve(t, streams(append(events, because("end_turn"), used)...))
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Len(t, reply.Parts[0].Citations, agent.MaxCitations)
	require.Equal(t, n-agent.MaxCitations, reply.Parts[0].Uncited)

	m, _ = serve(t, streams(begin, text(0, "Sunny."), cites(0, `7`), cites(0, `{"title":{}}`), cites(0, `{"location":{"documentPage":{"documentIndex":9,"start":-1}}}`),
		cites(0, `{"title":"A","location":{"web":{"url":"javascript:alert(1)"}}}`), because("end_turn"), used))
	reply, _ = standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, []agent.Part{{Type: agent.PartText, Text: "Sunny.", Uncited: 4}}, reply.Parts)
}
