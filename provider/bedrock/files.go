package bedrock

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// maxDocuments is how many documents Bedrock takes in a request.
const maxDocuments = 5

// imageBlock and documentBlock are files. Their bytes are written in base64.
type imageBlock struct {
	Format string     `json:"format"`
	Source fileSource `json:"source"`
}

type documentBlock struct {
	Format    string           `json:"format"`
	Name      string           `json:"name"`
	Source    fileSource       `json:"source"`
	Citations *citationsConfig `json:"citations,omitempty"`
}

type fileSource struct {
	Bytes []byte `json:"bytes"`
}

// shownFiles makes the blocks of a request's files, in their order.
type shownFiles struct {
	bytes map[string][]byte
	seen  int // documents so far
	skip  int // the oldest documents, for which there is no room
	cites bool
	shown []document // if the model may cite them
}

// document is a file that the model may cite, with its name in the request.
type document struct {
	name string
	file *agent.File
}

func filesOf(messages []agent.Message, bytes map[string][]byte, cites bool) *shownFiles {
	s := &shownFiles{bytes: bytes, skip: -maxDocuments, cites: cites}
	for _, m := range messages {
		for _, f := range m.Files() {
			if !f.IsImage() {
				s.skip++
			}
		}
	}
	return s
}

func (s *shownFiles) block(f *agent.File) block {
	_, format, _ := strings.Cut(f.MediaType, "/")
	source := fileSource{s.bytes[f.Digest]}
	if f.IsImage() {
		return block{Image: &imageBlock{format, source}}
	}
	if s.seen++; s.seen <= s.skip {
		text := fmt.Sprintf("[%s: it is left out, since newer files need the room]", f)
		return block{Text: &text}
	}
	d := &documentBlock{Format: format, Name: documentName(f, s.seen), Source: source}
	if s.cites {
		d.Citations = &citationsConfig{true}
		s.shown = append(s.shown, document{d.Name, f})
	}
	return block{Document: d}
}

// unnameable matches what Bedrock refuses in the name of a document.
var unnameable = regexp.MustCompile(`[^A-Za-z0-9]+`)

// documentName returns a name for the nth document of a request. Bedrock refuses two with the same.
func documentName(f *agent.File, n int) string {
	name := strings.TrimSuffix(f.Name, path.Ext(f.Name))
	name = strings.Trim(unnameable.ReplaceAllString(name, "-"), "-")
	if name == "" {
		name = "document"
	}
	return fmt.Sprintf("%.150s-%d", name, n)
}

// withWords adds a text to a message that has a document and none, which Bedrock refuses.
func withWords(m message) message {
	document, text := false, false
	for _, b := range m.Content {
		document, text = document || b.Document != nil, text || b.Text != nil
	}
	if document && !text {
		words := "See the document."
		m.Content = append(m.Content, block{Text: &words})
	}
	return m
}
