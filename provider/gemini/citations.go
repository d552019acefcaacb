package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// grounding says which sources support which segments of a text.
type grounding struct {
	Chunks   []chunk   `json:"groundingChunks"`
	Supports []support `json:"groundingSupports"`
}

// chunk is a source: one of its fields is set.
type chunk struct {
	Web     found `json:"web"`
	Context found `json:"retrievedContext"`
	Maps    found `json:"maps"`
}

type found struct {
	URI   string `json:"uri"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Page  int    `json:"pageNumber"`
}

type support struct {
	Segment segment `json:"segment"`
	Indices []int   `json:"groundingChunkIndices"`
}

// segment is a piece of the reply, in bytes.
type segment struct {
	Part  int    `json:"partIndex"`
	Start int    `json:"startIndex"`
	End   int    `json:"endIndex"`
	Text  string `json:"text"`
}

// quotations says which sources the model repeats at length. Gemini and Vertex name the list
// differently.
type quotations struct {
	Citations []quotation `json:"citations"`
	Sources   []quotation `json:"citationSources"`
}

type quotation struct {
	Start int    `json:"startIndex"`
	End   int    `json:"endIndex"`
	URI   string `json:"uri"`
	Title string `json:"title"`
}

// cite takes what an event says of sources. A later event repeats what the earlier ones said.
// What is not of the expected form is no fault of the reply.
func (r *reply) cite(c candidate) {
	if len(c.Grounding) > 0 {
		var g grounding
		if json.Unmarshal(c.Grounding, &g) == nil && len(g.Supports) > 0 {
			r.grounds = g
		}
	}
	if len(c.Quotations) == 0 {
		return
	}
	var of quotations
	_ = json.Unmarshal(c.Quotations, &of) // what was read before the fault counts
	for _, q := range append(of.Citations, of.Sources...) {
		one := found{URI: q.URI, Title: q.Title}.citation()
		one.Start, one.End = q.Start, q.End
		r.cites.Add(wholeText, one)
	}
}

// wholeText names the text of a reply: all places are in it.
const wholeText = "text"

// citation returns a source in the runtime's form, without a span.
func (f found) citation() agent.Citation {
	c := agent.Citation{URL: f.URI, Title: f.Title, Text: f.Text}
	if !strings.HasPrefix(f.URI, "https://") && !strings.HasPrefix(f.URI, "http://") { // a document of a store
		c.URL, c.Title = "", cmp.Or(f.Title, f.URI)
	}
	if f.Page > 0 {
		c.Unit, c.From, c.To = agent.CitedPages, f.Page, f.Page+1
	}
	return c
}

// maxSupports is how many sources of segments are looked at. Each costs a search in the whole text,
// also if it turns out to be in no place.
const maxSupports = 4 * agent.MaxCitations

// cited adds to the texts of the reply what they cite, now that they are complete.
func (r *reply) cited() {
	whole := ""
	if len(r.grounds.Supports) > 0 {
		whole = agent.Message{Parts: r.parts}.Text()
	}
	left := maxSupports
	for _, s := range r.grounds.Supports {
		start, end, placed := 0, 0, false
		for _, i := range s.Indices {
			one := agent.Citation{} // has no source, so that it counts as one that is not valid
			if 0 <= i && i < len(r.grounds.Chunks) && left > 0 && !r.cites.Full() {
				one = r.grounds.Chunks[i].citation()
			}
			if one != (agent.Citation{}) {
				left--
				if !placed { // looking for a text takes long
					start, end = s.Segment.place(whole)
					placed = true
				}
				one.Start, one.End = start, end
			}
			r.cites.Add(wholeText, one)
		}
	}
	r.parts = r.cites.CiteAll(wholeText, r.parts, model.ByBytes)
}

// place returns where the segment is in the reply's text. Places count from the beginning of a
// part, and what a part is differs between a stream and its end: so the segment's own text
// decides.
func (s segment) place(whole string) (start, end int) {
	fits := 0 <= s.Start && s.Start <= s.End && s.End <= len(whole)
	if s.Text == "" && s.Part == 0 || fits && whole[s.Start:s.End] == s.Text {
		return s.Start, s.End
	}
	if at := strings.Index(whole, s.Text); s.Text != "" && at >= 0 && !strings.Contains(whole[at+1:], s.Text) {
		return at, at + len(s.Text)
	}
	return -1, -1
}

func (c chunk) citation() agent.Citation {
	return found{
		URI: cmp.Or(c.Web.URI, c.Context.URI, c.Maps.URI), Title: cmp.Or(c.Web.Title, c.Context.Title, c.Maps.Title),
		Text: c.Context.Text, Page: c.Context.Page,
	}.citation()
}
