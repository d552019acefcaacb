package openai

import (
	"cmp"
	"encoding/json"
	"unicode/utf8"

	"github.com/openai/openai-go/v3/responses"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// annotation is what a text cites, as Responses write it. Chat Completions have the fields of an
// URL in an object of their own.
type annotation struct {
	Type     string  `json:"type"`
	URL      string  `json:"url"`
	Title    string  `json:"title"`
	Content  string  `json:"content"` // OpenRouter: what the page says
	Filename string  `json:"filename"`
	FileID   string  `json:"file_id"`
	Start    int     `json:"start_index"`
	End      int     `json:"end_index"`
	Index    int     `json:"index"`
	Nested   *nested `json:"url_citation"`
}

type nested struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Content string `json:"content"`
	Start   int    `json:"start_index"`
	End     int    `json:"end_index"`
}

// Places in a text that are none: a citation that is about the whole text, and one that is
// outside it.
const (
	whole   = -1
	nowhere = -2
)

// annotations returns the elements of a list of annotations. One that can't be read has no
// source, so that it counts as one that is not valid.
func annotations(raw string) []annotation {
	if raw == "" || raw == "[]" || raw == "null" { // as in nearly all chunks
		return nil
	}
	var items []json.RawMessage
	_ = json.Unmarshal([]byte(raw), &items) // another form has none
	var list []annotation
	for _, item := range items {
		list = append(list, annotationOf(string(item)))
	}
	return list
}

func annotationOf(raw string) annotation {
	var a annotation
	if json.Unmarshal([]byte(raw), &a) != nil {
		return annotation{}
	}
	if n := a.Nested; n != nil {
		a.URL, a.Title, a.Content, a.Start, a.End = n.URL, n.Title, n.Content, n.Start, n.End
	}
	return a
}

// citation returns the annotation in the runtime's form; false if it cites nothing. shift is how
// many characters come before its piece of the text. The end is the character after the
// citation, whatever the reference says: the examples are so.
func (a annotation) citation(shift int) (agent.Citation, bool) {
	c := agent.Citation{URL: a.URL, Title: cmp.Or(a.Title, a.Filename), Text: a.Content, Start: shift + a.Start, End: shift + a.End}
	switch a.Type {
	case "file_path": // a file that the model has made
		return c, false
	case "file_citation":
		c.Title = cmp.Or(c.Title, a.FileID)
		c.Start, c.End = shift+a.Index, shift+a.Index
	case "container_file_citation":
		c.Title = cmp.Or(c.Title, a.FileID)
	}
	switch {
	case min(a.Start, a.End, a.Index) < 0:
		c.Start, c.End = nowhere, nowhere
	case c.Start == shift && c.End == shift: // some servers don't say where
		c.Start, c.End = whole, whole
	}
	return c, true
}

// span is the [model.Span] of the API: it counts characters.
func span(text string, start, end int) (int, int) {
	if start == whole && end == whole {
		return 0, len(text)
	}
	return model.ByCharacters(text, start, end)
}

// citeItem adds what an item of Responses cites to its text. Positions count within one piece
// of its content.
func (r *responseReply) citeItem(item responses.ResponseOutputItemUnion, at spot, said string, p *agent.Part) {
	shift, first := 0, true
	for _, c := range item.Content {
		for _, a := range annotations(c.JSON.Annotations.Raw()) {
			if first { // the events may have had them, and the item has all
				r.cites.Forget(at)
				first = false
			}
			if one, ok := a.citation(shift); ok {
				r.cites.Add(at, one)
			}
		}
		shift += utf8.RuneCountInString(c.Text + c.Refusal)
	}
	place := model.Span(span)
	if p.Text != said { // a server that imitates the API: the places are those of another text
		place = nil
	}
	r.cites.Cite(at, p, place)
}

// cite adds what Chat Completions cite, of a piece of the reply or of the whole.
func (r *chatReply) cite(list string) {
	for _, a := range annotations(list) {
		if one, ok := a.citation(0); ok {
			r.cites.Add(struct{}{}, one)
		}
	}
}

// span is the [model.Span] of the reply. Where thinking stood in the text, the places may count
// it: then each citation is about the whole text.
func (r *chatReply) span() model.Span {
	if r.thought {
		return nil
	}
	return span
}
