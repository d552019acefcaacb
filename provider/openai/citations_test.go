package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

// What a text of Responses cites, in the forms of the API. The places count characters.
const (
	greeting   = "Grüße 🌞: Rom."
	urlOfRom   = `{"type":"url_citation","start_index":9,"end_index":12,"url":"https://a.example/rom","title":"Röm"}`
	fileAtEnd  = `{"type":"file_citation","index":13,"file_id":"file-1","filename":"notes.md"}`
	ofSandbox  = `{"type":"container_file_citation","start_index":0,"end_index":5,"container_id":"c","file_id":"cfile_1","filename":"plot.png"}`
	madeByCode = `{"type":"file_path","index":0,"file_id":"file-2"}`
)

// content is a message of Responses with a text in pieces, each with its annotations.
func content(pieces ...string) string {
	var list []string
	for i := 0; i < len(pieces); i += 2 {
		b, _ := json.Marshal(pieces[i])
		list = append(list, fmt.Sprintf(`{"type":"output_text","text":%s,"annotations":[%s]}`, b, pieces[i+1]))
	}
	return `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[` + strings.Join(list, ",") + `]}`
}

// replied returns the only part of a reply of Responses.
func replied(t *testing.T, list ...string) agent.Part {
	t.Helper()
	m, _ := serveResponses(t, standin.Drip(events(append(list, ended("completed", ""))...), 0))
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Len(t, reply.Parts, 1)
	return reply.Parts[0]
}

// pieces returns what each citation of a part is about.
func pieces(p agent.Part) (list []string) {
	for _, c := range p.Citations {
		list = append(list, p.Text[c.Start:c.End])
	}
	return list
}

func TestResponseCitations(t *testing.T) {
	p := replied(t, created, written("output_text", 0, greeting), done(0, content(greeting, strings.Join([]string{urlOfRom, fileAtEnd, ofSandbox, madeByCode, urlOfRom}, ","))))
	require.Equal(t, []agent.Citation{
		{Start: 14, End: 17, URL: "https://a.example/rom", Title: "Röm"},
		{Start: 18, End: 18, Title: "notes.md"},
		{Start: 0, End: 7, Title: "plot.png"},
	}, p.Citations)
	require.Equal(t, []string{"Rom", "", "Grüße"}, pieces(p))
	require.Zero(t, p.Uncited)
	require.Empty(t, p.Raw, "the server does not demand it back")

	// Places count within one piece of content.
	p = replied(t, created, done(0, content("Grüße. ", urlOfRom[:0], greeting, urlOfRom)))
	require.Equal(t, []string{"Rom"}, pieces(p))
	require.Equal(t, "Grüße. "+greeting, p.Text)
}

// Some servers send citations only as events, or a text that differs from what they streamed.
func TestResponseCitationsOfImitations(t *testing.T) {
	noted := func(c string) string {
		return `{"type":"response.output_text.annotation.added","output_index":0,"content_index":0,"annotation_index":0,"annotation":` + c + `}`
	}
	p := replied(t, created, written("output_text", 0, greeting), noted(urlOfRom), done(0, content(greeting, "")))
	require.Equal(t, []string{"Rom"}, pieces(p))
	p = replied(t, created, written("output_text", 0, greeting), noted(urlOfRom))
	require.Equal(t, []string{"Rom"}, pieces(p), "the item never came")
	p = replied(t, created, written("output_text", 0, greeting), noted(urlOfRom), noted(ofSandbox), done(0, content(greeting, ofSandbox)))
	require.Equal(t, []string{"Grüße"}, pieces(p), "the item has all")
	p = replied(t, created, written("output_text", 0, "x"+greeting), done(0, content(greeting, urlOfRom)))
	require.Equal(t, []string{"x" + greeting}, pieces(p), "the place is one of another text")
}

// Chat Completions have citations in the chunks, or in the whole message.
func TestChatCitations(t *testing.T) {
	cites := `{"annotations":[{"type":"url_citation","url_citation":` + strings.Replace(urlOfRom, `"title"`, `"content":"Rom.","title"`, 1) + `},{"type":"url_citation","url_citation":{"url":"https://b.example","title":"B"}}]}`
	want := []agent.Citation{
		{Start: 14, End: 17, URL: "https://a.example/rom", Title: "Röm", Text: "Rom."},
		{Start: 0, End: 18, URL: "https://b.example", Title: "B"}, // a server that does not say where
	}
	m, _ := serve(t, standin.Drip(stream(begin, text("Grüße"), text(" 🌞: Rom."), chunk(cites), chunk(cites), because("stop"), end), 0))
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, []agent.Part{{Type: agent.PartText, Text: greeting, Citations: want}}, reply.Parts)

	b, _ := json.Marshal(greeting)
	m, _ = serve(t, standin.Answer(200, "application/json", `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":`+string(b)+`,`+cites[1:]+`}]}`))
	reply, _ = standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, []agent.Part{{Type: agent.PartText, Text: greeting, Citations: want}}, reply.Parts)

	m, _ = serve(t, standin.Drip(stream(begin, text("<think>Hm.</think>"+greeting), chunk(cites), because("stop"), end), 0))
	reply, _ = standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, greeting, reply.Parts[1].Text[reply.Parts[1].Citations[0].Start:reply.Parts[1].Citations[0].End], "the place may count the thinking")
}

// Places outside the text, sources that are none, and far too many: the reply is one, and
// counts what it leaves out.
func TestHostileCitations(t *testing.T) {
	var list []string
	for i := range 100_000 {
		list = append(list, fmt.Sprintf(`{"type":"url_citation","start_index":0,"end_index":5,"url":"https://a.example/%d","title":"A"}`, i))
	}
	p := replied(t, created, written("output_text", 0, greeting), done(0, content(greeting, strings.Join(list, ","))))
	require.Len(t, p.Citations, agent.MaxCitations)
	require.Equal(t, 100_000-agent.MaxCitations, p.Uncited)
	for _, place := range []string{`"start_index":3,"end_index":99`, `"start_index":5,"end_index":3`, `"start_index":-3,"end_index":3`, `"start_index":"x"`, `"start_index":99999999999999999999`} {
		p = replied(t, created, done(0, content(greeting, `{"type":"url_citation","url":"https://a.example","title":"A",`+place+`}`)))
		require.Equal(t, agent.Part{Type: agent.PartText, Text: greeting, Uncited: 1}, p, place)
	}
	for _, url := range []string{"javascript:alert(1)", "data:text/html,x", `https://a.example/\u0007`, `https://a.example/\u202e`, "https://", "https://bank.example@b.example/", "https://a.example/" + strings.Repeat("x", agent.MaxCitedURL)} {
		p = replied(t, created, done(0, content(greeting, `{"type":"url_citation","start_index":0,"end_index":5,"title":"A","url":"`+url+`"}`)))
		require.Equal(t, agent.Part{Type: agent.PartText, Text: greeting, Uncited: 1}, p, url)
	}
	m, _ := serve(t, standin.Drip(stream(begin, text("x"), chunk(`{"annotations":{"a":[1]}}`), chunk(`{"annotations":[1,null,"x",{}]}`), because("stop"), end), 0))
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, "x", reply.Parts[0].Text)
	require.Empty(t, reply.Parts[0].Citations)
	require.Equal(t, model.FinishStop, reply.Finish)
}
