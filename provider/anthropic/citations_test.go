package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

// citing starts a stand-in that answers with events, and a Model whose documents may be cited.
func citing(t *testing.T, events ...string) (*anthropic.Model, *standin.Server) {
	t.Helper()
	s := standin.Listen(t, standin.Answer(200, "text/event-stream", stream(events...)))
	return anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL, Citations: true}), s
}

// withDocuments has a text and a PDF that the user shows, and a PDF of a tool between them.
func withDocuments() (*model.Request, []string) {
	bytes := map[string][]byte{}
	notes, plan, spec := standin.Shown(bytes, "notes.md", "text/markdown", []byte("Grüße. Rom ist sonnig.")), standin.Shown(bytes, "plan.pdf", "application/pdf", []byte("%PDF-1")), standin.Shown(bytes, "", "application/pdf", []byte("%PDF-2"))
	r := result("t1.1", "look", agent.CallOK, "See the plan.")
	r.Result.Files = []agent.Part{plan}
	return &model.Request{Model: "claude-sonnet-5-5", Files: bytes, Messages: []agent.Message{
		{Role: agent.RoleUser, Parts: []agent.Part{notes, said("How is Rome?")}},
		assistant(sonnet, call("t1.1", "look", `{}`)),
		{Role: agent.RoleTool, Parts: []agent.Part{r}},
		{Role: agent.RoleUser, Parts: []agent.Part{spec, said("And now?")}},
	}}, []string{notes.File.Digest, plan.File.Digest, spec.File.Digest}
}

// What a text cites is in the reply: of documents by digest and place, of pages by URL. Each is
// about the whole text of its block.
func TestCitations(t *testing.T) {
	req, digest := withDocuments()
	m, s := citing(t, begin,
		open(0, textBlock), text(0, "Rome is "), citation(0, `{"type":"char_location","cited_text":"Rom ist sonnig.","document_index":0,"document_title":"notes.md","file_id":null,"start_char_index":7,"end_char_index":22}`),
		text(0, "sunny ☀️."), citation(0, `{"type":"page_location","cited_text":"The plan.","document_index":1,"document_title":"plan.pdf#01234567","file_id":null,"start_page_number":5,"end_page_number":6}`), stop(0),
		open(1, textBlock), text(1, " And "), stop(1),
		open(2, textBlock), text(2, "old."), citation(2, `{"type":"content_block_location","cited_text":"Old.","document_index":2,"document_title":null,"start_block_index":0,"end_block_index":1}`),
		citation(2, `{"type":"search_result_location","cited_text":"Older.","source":"https://b.example/x","title":"B","search_result_index":0,"start_block_index":1,"end_block_index":3}`),
		citation(2, `{"type":"search_result_location","cited_text":"Oldest.","source":"shelf 7","title":null,"search_result_index":0,"start_block_index":1,"end_block_index":3}`), stop(2),
		because("end_turn"), end)
	reply, _ := standin.Reply(t, m, req)
	require.Equal(t, []agent.Part{
		{Type: agent.PartText, Text: "Rome is sunny ☀️.", Citations: []agent.Citation{
			{End: 21, Title: "notes.md", File: digest[0], Unit: agent.CitedChars, From: 7, To: 22, Text: "Rom ist sonnig."},
			{End: 21, Title: "plan.pdf", File: digest[1], Unit: agent.CitedPages, From: 5, To: 6, Text: "The plan."},
		}},
		said(" And "),
		{Type: agent.PartText, Text: "old.", Citations: []agent.Citation{
			{End: 4, File: digest[2], Unit: agent.CitedBlocks, From: 0, To: 1, Text: "Old."},
			{End: 4, URL: "https://b.example/x", Title: "B", Unit: agent.CitedBlocks, From: 1, To: 3, Text: "Older."},
			{End: 4, Title: "shelf 7", Unit: agent.CitedBlocks, From: 1, To: 3, Text: "Oldest."},
		}},
	}, reply.Parts)
	body := string(s.Bodies[0])
	require.Equal(t, 3, strings.Count(body, `"citations":{"enabled":true}`))
	require.Contains(t, body, fmt.Sprintf(`"title":"plan.pdf#%.8s"`, digest[1]), "the handle: a tool may have chosen the name")
	require.Contains(t, body, fmt.Sprintf(`"title":"file#%.8s"`, digest[2]))
	require.Contains(t, body, `{"data":"Grüße. Rom ist sonnig.","media_type":"text/plain","type":"text"}`)

	// The provider does not demand places in documents back, and their numbers may be others by now.
	req.Messages = append(req.Messages, assistant(sonnet, reply.Parts...), agent.TextMessage(agent.RoleUser, "Sure?"))
	standin.Reply(t, m, req)
	require.NotContains(t, string(s.Bodies[1]), "char_location")
}

// Without the option, and where the provider would refuse it, nothing is asked for.
func TestCitationsAreAskedFor(t *testing.T) {
	with, s := citing(t, begin, open(0, textBlock), text(0, "{}"), stop(0), because("end_turn"), end)
	without := anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL})
	req, _ := withDocuments()
	req.Messages[0].Parts = req.Messages[0].Parts[1:] // the runtime sends it as text
	standin.Reply(t, without, req)
	req.Output = []byte(`{"type":"object"}`)
	standin.Reply(t, with, req)
	for _, body := range s.Bodies {
		require.NotContains(t, string(body), "citations")
	}
	require.Contains(t, with.Info("claude-sonnet-5-5").Files, "text/markdown")
	require.Contains(t, with.Info("claude-sonnet-5-5").ResultFiles, "text/csv")
	require.NotContains(t, without.Info("claude-sonnet-5-5").Files, "text/markdown")
	require.Nil(t, with.Info("claude-of-tomorrow").Files)
}

// A page that was found is cited by URL, and kept as written: the provider demands it back.
func TestCitedPages(t *testing.T) {
	found := `{"type":"web_search_result_location","url":"https://a.example","title":"A","cited_text":"Sun.","encrypted_index":"aWR4"}`
	m, _ := citing(t, begin, open(0, textBlock), text(0, "Sunny."), citation(0, found), stop(0), because("end_turn"), end)
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, []agent.Citation{{End: 6, URL: "https://a.example", Title: "A", Text: "Sun."}}, reply.Parts[0].Citations)
	require.JSONEq(t, "["+found+"]", string(reply.Parts[0].Raw))
}

// A reply with far too many citations, or false ones, keeps a few, counts the others, and is a
// reply.
func TestHostileCitations(t *testing.T) {
	events := []string{begin, open(0, textBlock), text(0, "Sunny.")}
	const n = 1700 // more bytes than a reply may have
	for i := range n {
		events = append(events, citation(0, fmt.Sprintf(`{"type":"web_search_result_location","url":"https://a.example/%d","title":"A","cited_text":%q,"encrypted_index":"aWR4"}`, i, strings.Repeat("x", 10<<10))))
	}
	m, _ := citing(t, append(events, stop(0), because("end_turn"), end)...)
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Len(t, reply.Parts[0].Citations, agent.MaxCitations)
	require.Equal(t, n-agent.MaxCitations, reply.Parts[0].Uncited)
	require.LessOrEqual(t, len(reply.Parts[0].Raw), 256<<10)

	m, _ = citing(t, begin, open(0, textBlock), text(0, "Sunny."),
		citation(0, `{"type":"web_search_result_location","url":"javascript:alert(1)","title":"A"}`),
		citation(0, `{"type":"web_search_result_location","url":"https://a.example/\u001b[2J","title":"A"}`),
		citation(0, `{"type":"char_location","document_index":-1}`),
		citation(0, `{"type":"char_location","document_index":99999999999999999999}`),
		citation(0, `{"type":"page_location","document_index":0,"document_title":"x.pdf","start_page_number":9,"end_page_number":3}`),
		citation(0, `{"type":"of_tomorrow"}`),
		citation(0, fmt.Sprintf(`{"type":"web_search_result_location","url":"https://a.example","title":%q,"cited_text":%q}`, strings.Repeat("ü", 1<<20), strings.Repeat("x", 1<<20))),
		stop(0), because("end_turn"), end)
	reply, _ = standin.Reply(t, m, ask("How is Rome?"))
	p := reply.Parts[0]
	require.Equal(t, 5, p.Uncited)
	require.Len(t, p.Citations, 2)
	require.Equal(t, agent.Citation{End: 6, Title: "x.pdf"}, p.Citations[0], "an invalid place is left out")
	require.LessOrEqual(t, len(p.Citations[1].Title), agent.MaxCitedTitle)
	require.True(t, strings.HasSuffix(p.Citations[1].Title, "ü…"))
	require.Nil(t, p.Citations[1].Check(p.Text))
}
