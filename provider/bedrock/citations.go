package bedrock

import (
	"cmp"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

type citationsConfig struct {
	Enabled bool `json:"enabled"`
}

// source is a citation as Bedrock writes it.
type source struct {
	Title   string `json:"title"`
	Source  string `json:"source"`
	Content []struct {
		Text string `json:"text"`
	} `json:"sourceContent"`
	Location location `json:"location"`
}

// location is where a source says it: one of its fields is set.
type location struct {
	Web    *web   `json:"web"`
	Char   *place `json:"documentChar"`
	Page   *place `json:"documentPage"`
	Chunk  *place `json:"documentChunk"`
	Search *place `json:"searchResultLocation"`
}

type web struct {
	URL    string `json:"url"`
	Domain string `json:"domain"`
}

type place struct {
	Document int `json:"documentIndex"`
	Start    int `json:"start"`
	End      int `json:"end"`
}

// cite adds a citation to a block of text. One that can't be read counts as one that is not
// valid, and is no fault of the reply.
func (r *reply) cite(p *piece, raw json.RawMessage) {
	var s source
	if json.Unmarshal(raw, &s) != nil {
		s = source{}
	}
	r.cites.Add(p, s.citation(r.documents))
}

// citation returns the citation in the runtime's form. Its span is the whole text of its block.
func (s source) citation(documents []document) agent.Citation {
	c := agent.Citation{Title: cmp.Or(s.Title, s.Source)}
	for _, t := range s.Content {
		if c.Text += t.Text; len(c.Text) > agent.MaxCitedText { // the rest would be cut
			break
		}
	}
	l := s.Location
	switch {
	case l.Page != nil:
		c = at(c, agent.CitedPages, *l.Page)
	case l.Char != nil:
		c = at(c, agent.CitedChars, *l.Char)
	case l.Chunk != nil:
		c = at(c, agent.CitedBlocks, *l.Chunk)
	case l.Search != nil:
		return at(c, agent.CitedBlocks, *l.Search)
	case l.Web != nil && l.Web.URL != "":
		c.URL, c.Title = l.Web.URL, cmp.Or(c.Title, l.Web.Domain)
		return c
	}
	// By its name, which is unique in a request: Bedrock has sent places of documents without
	// saying in which, see aws-sdk-js-v3#7497.
	for i, d := range documents {
		if s.Title == d.name || s.Title == "" && cmp.Or(l.Page, l.Char, l.Chunk) != nil && cmp.Or(l.Page, l.Char, l.Chunk).Document == i {
			c.File, c.Title = d.file.Digest, cmp.Or(d.file.Name, c.Title)
			break
		}
	}
	return c
}

// at sets the place in the source. The end is exclusive, as in Anthropic's own API; one that is
// not after the start counts as the same page, character or block.
func at(c agent.Citation, unit agent.CitedUnit, p place) agent.Citation {
	c.Unit, c.From, c.To = unit, p.Start, max(p.End, p.Start+1)
	return c
}
