package anthropic

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/filebody"
	"github.com/fermata-agents/fermata/model"
)

// textTypes are the files of text that are sent as documents, so that they can be cited. Others,
// and all without [Options.Citations], are sent as text.
var textTypes = []string{"text/plain", "text/markdown", "text/csv", "text/html", "application/json", "application/yaml"}

// maxTextDocument is the most bytes of a file of text.
const maxTextDocument = 256 << 10

// withText returns a model's info with the files of text that it can cite.
func withText(info model.Info) model.Info {
	if _, known := info.Files[pdf]; !known {
		return info
	}
	info.Files, info.ResultFiles = maps.Clone(info.Files), slices.Clone(info.ResultFiles)
	for _, kind := range textTypes {
		info.Files[kind] = maxTextDocument
		if slices.Contains(info.ResultFiles, pdf) {
			info.ResultFiles = append(info.ResultFiles, kind)
		}
	}
	return info
}

const pdf = "application/pdf"

// shownFiles makes the blocks of a request's files.
type shownFiles struct {
	*filebody.Files
	bytes map[string][]byte
	cites bool // the model may cite the documents
	of    map[*sdk.DocumentBlockParam]*agent.File
}

// block returns a file that the model takes: an image, a PDF, or a text.
func (s *shownFiles) block(f *agent.File) sdk.ContentBlockParamUnion {
	if f.IsImage() {
		return sdk.NewImageBlockBase64(f.MediaType, s.Base64(f.Digest))
	}
	var block sdk.ContentBlockParamUnion
	if slices.Contains(textTypes, f.MediaType) {
		block = sdk.NewDocumentBlock(sdk.PlainTextSourceParam{Data: string(s.bytes[f.Digest])})
	} else {
		block = sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: s.Base64(f.Digest)})
	}
	// Not the name alone: a tool may have chosen it, with words as if they were the runtime's.
	block.OfDocument.Title = param.NewOpt(f.Handle())
	// The provider demands it of all documents of a request or of none.
	if s.cites {
		block.OfDocument.Citations.Enabled = param.NewOpt(true)
		if s.of == nil {
			s.of = map[*sdk.DocumentBlockParam]*agent.File{}
		}
		s.of[block.OfDocument] = f
	}
	return block
}

// documents returns the files of a request's documents, in the order in which the provider
// numbers them; nil if the model may not cite them.
func (s *shownFiles) documents(messages []sdk.MessageParam) []*agent.File {
	if len(s.of) == 0 {
		return nil
	}
	var list []*agent.File
	for _, msg := range messages {
		for _, b := range msg.Content {
			if b.OfDocument != nil {
				list = append(list, s.of[b.OfDocument])
			}
			if b.OfToolResult == nil {
				continue
			}
			for _, c := range b.OfToolResult.Content {
				if c.OfDocument != nil {
					list = append(list, s.of[c.OfDocument])
				}
			}
		}
	}
	return list
}

// source is a citation as the provider writes it, of any type.
type source struct {
	Type      string `json:"type"`
	CitedText string `json:"cited_text"`
	Title     string `json:"title"`
	URL       string `json:"url"`
	Source    string `json:"source"`
	Document  int    `json:"document_index"`
	Name      string `json:"document_title"`
	FromChar  int    `json:"start_char_index"`
	ToChar    int    `json:"end_char_index"`
	FromPage  int    `json:"start_page_number"`
	ToPage    int    `json:"end_page_number"`
	FromBlock int    `json:"start_block_index"`
	ToBlock   int    `json:"end_block_index"`
}

const webResult = "web_search_result_location"

// maxSources limits the citations of a reply that are kept as the provider wrote them, in bytes.
// The runtime stores 256 KiB, together with the steps of the provider's tools.
const maxSources = 128 << 10

// cite adds a citation to a block. One from a web search is also kept as it came, because the
// provider demands it back.
func (r *reply) cite(b *block, raw string) {
	var s source
	if json.Unmarshal([]byte(raw), &s) != nil {
		s = source{} // it counts as one that is not valid
	}
	if s.Type == webResult && r.sources+len(raw) <= maxSources {
		r.sources += len(raw)
		b.citations = append(b.citations, raw)
	}
	r.cites.Add(b, s.citation(r.documents))
}

// citation returns the citation in the runtime's form. Its span is the whole text: the provider
// begins a new block where another source is cited.
func (s source) citation(documents []*agent.File) agent.Citation {
	c := agent.Citation{URL: s.URL, Title: cmp.Or(s.Title, s.Name), Text: s.CitedText}
	switch s.Type {
	case "char_location":
		c.Unit, c.From, c.To = agent.CitedChars, s.FromChar, s.ToChar
	case "page_location":
		c.Unit, c.From, c.To = agent.CitedPages, s.FromPage, s.ToPage
	case "content_block_location":
		c.Unit, c.From, c.To = agent.CitedBlocks, s.FromBlock, s.ToBlock
	case "search_result_location": // of results that a request shows
		c.Unit, c.From, c.To = agent.CitedBlocks, s.FromBlock, s.ToBlock
		if c.Title = cmp.Or(c.Title, s.Source); strings.HasPrefix(s.Source, "https://") || strings.HasPrefix(s.Source, "http://") {
			c.URL = s.Source
		}
		return c
	default:
		return c
	}
	if 0 <= s.Document && s.Document < len(documents) && documents[s.Document] != nil {
		f := documents[s.Document]
		c.File, c.Title = f.Digest, f.Name // the title that was sent is the handle
	}
	return c
}
