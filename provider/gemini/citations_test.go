package gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
)

// grounds is the last event of a reply, with what its text rests on.
func grounds(field, metadata string) string {
	return `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0,"` + field + `":` + metadata + `}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":25,"totalTokenCount":35}}`
}

// sources are what a search found, and a document of a store.
const sources = `"groundingChunks":[{"web":{"uri":"https://a.example/r","title":"a.example"}},{"retrievedContext":{"uri":"gs://shelf/b.pdf","title":"b.pdf","text":"Rom ist sonnig.","pageNumber":3}},{"image":{}}]`

func supports(list ...string) string {
	return grounds("groundingMetadata", `{`+sources+`,"webSearchQueries":["rom"],"groundingSupports":[`+strings.Join(list, ",")+`]}`)
}

// Segments count bytes: those of the whole text, whatever pieces it came in.
func TestCitations(t *testing.T) {
	m, _ := serve(t, standin.Answer(200, "text/event-stream", stream(chunk(thinks("Hm.")), chunk(text("Grüße 🌞: ")), chunk(text("Rom. Rom ist warm.")),
		supports(`{"segment":{"startIndex":14,"endIndex":18,"text":"Rom."},"groundingChunkIndices":[0,1],"confidenceScores":[0.9,0.5]}`,
			`{"segment":{"endIndex":7,"text":"Grüße"},"groundingChunkIndices":[0]}`,
			// The place is one within a later part; the text is in the reply once.
			`{"segment":{"partIndex":2,"startIndex":5,"endIndex":18,"text":"Rom ist warm."},"groundingChunkIndices":[0]}`))))
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Len(t, reply.Parts, 2)
	p := reply.Parts[1]
	require.Equal(t, []agent.Citation{
		{Start: 14, End: 18, URL: "https://a.example/r", Title: "a.example"},
		{Start: 14, End: 18, Title: "b.pdf", Unit: agent.CitedPages, From: 3, To: 4, Text: "Rom ist sonnig."},
		{Start: 0, End: 7, URL: "https://a.example/r", Title: "a.example"},
		{Start: 19, End: 32, URL: "https://a.example/r", Title: "a.example"},
	}, p.Citations)
	require.Equal(t, "Rom.", p.Text[14:18])
	require.Equal(t, "Rom ist warm.", p.Text[19:32])
	require.Zero(t, p.Uncited)
}

// What the model repeats at length is cited, also by Vertex, which names it differently; each
// once, although events repeat it, and within the part where it begins.
func TestQuotations(t *testing.T) {
	for _, name := range []string{"citations", "citationSources"} {
		quoted := `{"` + name + `":[{"startIndex":7,"endIndex":20,"uri":"https://a.example/q","license":"mit"},{"endIndex":3,"uri":"https://b.example"}]}`
		m, _ := serve(t, standin.Answer(200, "text/event-stream", stream(chunk(text("Größe. ")), grounds("citationMetadata", quoted),
			chunk(calls("a", "now", "{}")), chunk(text("Rom.")), grounds("citationMetadata", quoted))))
		reply, _ := standin.Reply(t, m, ask("How is Rome?"))
		require.Equal(t, "Größe. ", reply.Parts[0].Text, name)
		require.Equal(t, 2, reply.Parts[0].Uncited, "one ends in the middle of ö, the other after the text")
		require.Empty(t, reply.Parts[0].Citations)

		quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, `"endIndex":20`, `"endIndex":12`), `"endIndex":3`, `"endIndex":4`)
		m, _ = serve(t, standin.Answer(200, "text/event-stream", stream(chunk(text("Größe. ")), grounds("citationMetadata", quoted),
			chunk(calls("a", "now", "{}")), chunk(text("Rom.")), grounds("citationMetadata", quoted))))
		reply, _ = standin.Reply(t, m, ask("How is Rome?"))
		require.Equal(t, []agent.Citation{{Start: 7, End: 9, URL: "https://a.example/q"}, {Start: 0, End: 4, URL: "https://b.example"}}, reply.Parts[0].Citations)
		require.Zero(t, reply.Parts[0].Uncited+reply.Parts[2].Uncited)
	}
}

// Far too many, false ones, and metadata of another form: the reply is one.
func TestHostileCitations(t *testing.T) {
	var list []string
	for i := range 100_000 {
		list = append(list, fmt.Sprintf(`{"segment":{"endIndex":%d},"groundingChunkIndices":[0]}`, i+1))
	}
	m, _ := serve(t, standin.Answer(200, "text/event-stream", stream(chunk(text(strings.Repeat("x", 100_000))), supports(list...))))
	reply, _ := standin.Reply(t, m, ask("How is Rome?"))
	require.Len(t, reply.Parts[0].Citations, agent.MaxCitations)
	require.Equal(t, 100_000-agent.MaxCitations, reply.Parts[0].Uncited)

	m, _ = serve(t, standin.Answer(200, "text/event-stream", stream(chunk(text("Grüße")), supports(
		`{"segment":{"startIndex":3,"endIndex":5},"groundingChunkIndices":[0]}`, `{"segment":{"startIndex":5,"endIndex":1},"groundingChunkIndices":[0]}`,
		`{"segment":{"startIndex":-1,"endIndex":1},"groundingChunkIndices":[0]}`, `{"segment":{"endIndex":99},"groundingChunkIndices":[0]}`,
		`{"segment":{"endIndex":5,"text":"of another text"},"groundingChunkIndices":[0]}`, `{"segment":{"endIndex":1},"groundingChunkIndices":[-1,2,3]}`))))
	reply, _ = standin.Reply(t, m, ask("How is Rome?"))
	require.Equal(t, agent.Part{Type: agent.PartText, Text: "Grüße", Uncited: 8}, reply.Parts[0])

	// The text is searched for a few segments only, and for none that has no source.
	sourceless := strings.Repeat(`{"segment":{"text":"Rom"},"groundingChunkIndices":[9]},{"segment":{"text":"Rom"}},`, 2000)
	last := `{"segment":{"startIndex":3,"endIndex":6,"text":"Rom"},"groundingChunkIndices":[0]}`
	for n, cited := range map[int]int{200: 1, 300: 0} {
		elsewhere := strings.Repeat(`{"segment":{"text":"Paris"},"groundingChunkIndices":[0]},`, n)
		m, _ = serve(t, standin.Answer(200, "text/event-stream", stream(chunk(text("In Rom "+strings.Repeat("x", 100_000))), supports(sourceless+elsewhere+last))))
		reply, _ = standin.Reply(t, m, ask("How is Rome?"))
		require.Len(t, reply.Parts[0].Citations, cited, "after %d that are in no place", n)
	}

	for _, metadata := range []string{`[]`, `null`, `{"groundingSupports":7}`, `{"groundingSupports":[{"segment":{"endIndex":99999999999999999999},"groundingChunkIndices":[0]}]}`} {
		m, _ = serve(t, standin.Answer(200, "text/event-stream", stream(chunk(text("x")), grounds("groundingMetadata", metadata))))
		reply, _ = standin.Reply(t, m, ask("How is Rome?"))
		require.Equal(t, []agent.Part{said("x")}, reply.Parts, metadata)
		m, _ = serve(t, standin.Answer(200, "text/event-stream", stream(chunk(text("x")), grounds("citationMetadata", metadata))))
		reply, _ = standin.Reply(t, m, ask("How is Rome?"))
		require.Equal(t, []agent.Part{said("x")}, reply.Parts, metadata)
	}
}
