package agent

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of citations. A model's reply that has more keeps the first ones, and counts the
// others in [Part.Uncited].
const (
	// MaxCitations is the most citations of one message.
	MaxCitations = 64
	// MaxCitationSize is the most bytes of all citations of one message, by [Citation.Size].
	MaxCitationSize = 64 << 10
	// MaxCitedURL is the longest URL, and MaxCitedTitle and MaxCitedText are the longest title
	// and excerpt of one citation, in bytes.
	MaxCitedURL   = 2048
	MaxCitedTitle = 256
	MaxCitedText  = 512
)

// CitedUnit says what From and To of a [Citation] count.
type CitedUnit string

// The units of places in a source.
const (
	CitedPages  CitedUnit = "page"  // pages of a PDF, from 1
	CitedChars  CitedUnit = "char"  // characters (Unicode code points) of a text, from 0
	CitedBlocks CitedUnit = "block" // the provider's own pieces of a document, from 0
)

// Citation says which source a piece of a model's text cites. The provider wrote it: nobody
// has compared the source with the text. A source has a URL, a title, or a File.
type Citation struct {
	// Start and End are the piece of the Part's Text, in bytes; End is the byte after it. They
	// are equal if the text cites the source at one point.
	Start int `json:"start"`
	End   int `json:"end"`
	// URL is the address of a page, with http or https; empty for another source.
	URL string `json:"url,omitempty"`
	// Title is the title of the page, or the name of the file; empty if it has none.
	Title string `json:"title,omitempty"`
	// File is the [File.Digest] of a file of the conversation; empty for another source.
	File string `json:"file,omitempty"`
	// From and To are the place in the source; To is the page, character or block after it.
	// Unit says what they count; it is empty if the place is not known.
	Unit CitedUnit `json:"unit,omitempty"`
	From int       `json:"from,omitempty"`
	To   int       `json:"to,omitempty"`
	// Text is what the source says there, or its beginning; empty if the provider gave none.
	Text string `json:"text,omitempty"`
}

// Size returns the length of the citation's texts in bytes.
func (c Citation) Size() int { return len(c.URL) + len(c.Title) + len(c.File) + len(c.Text) }

// Within reports whether Start and End are a piece of the text, and cut no character.
func (c Citation) Within(text string) bool {
	edge := func(i int) bool { return i == len(text) || utf8.RuneStart(text[i]) }
	return 0 <= c.Start && c.Start <= c.End && c.End <= len(text) && edge(c.Start) && edge(c.End)
}

// Check returns a [CodeInvalidInput] error, with the path of the field, for a citation that a
// part with this text can't have.
func (c Citation) Check(text string) *Error {
	wrong := func(path, message string) *Error { return Errorf(CodeInvalidInput, "%s", message).WithPath(path) }
	switch {
	case !c.Within(text):
		return wrong("start", "start and end must be a piece of the part's text, in bytes, and cut no character")
	case c.URL != "" && !citable(c.URL):
		return wrong("url", "url must be an address with http or https, without a password, and not too long")
	case c.File != "" && !isDigest(c.File):
		return wrong("file", "file must be the digest of a file, 64 digits of hex")
	case c.URL == "" && c.File == "" && strings.TrimSpace(c.Title) == "":
		return wrong("title", "the source must have a url, a file or a title")
	case len(c.Title) > MaxCitedTitle || len(c.Text) > MaxCitedText:
		return wrong("title", "title or text is too long")
	case c.Unit != "" && !c.placed():
		return wrong("unit", "unit must be page, char or block, with to after from")
	}
	return nil
}

// placed reports whether the place in the source is one.
func (c Citation) placed() bool {
	switch c.Unit {
	case CitedPages:
		return 1 <= c.From && c.From < c.To
	case CitedChars, CitedBlocks:
		return 0 <= c.From && c.From < c.To
	}
	return false
}

// Fit returns the citation with its texts cut to their limits, and without a place that is not valid.
func (c Citation) Fit() Citation {
	c.Title, c.Text = cutTo(c.Title, MaxCitedTitle), cutTo(c.Text, MaxCitedText)
	if !c.placed() {
		c.Unit, c.From, c.To = "", 0, 0
	}
	return c
}

// cutTo returns the beginning of a text, with a mark if something is missing.
func cutTo(s string, most int) string {
	const mark = "…"
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(mark)], "") + mark
}

// citable reports whether a URL is one that people may follow. A user before the host could
// look like the host.
func citable(address string) bool {
	if len(address) > MaxCitedURL || !utf8.ValidString(address) || strings.ContainsFunc(address, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// Citations returns what the texts of a message cite, with Start and End in [Message.Text]. It
// leaves out those that are not within their text.
func (m Message) Citations() []Citation {
	var list []Citation
	before := 0
	for _, p := range m.Parts {
		if p.Type != PartText {
			continue
		}
		for _, c := range p.Citations {
			if len(list) == MaxCitations {
				return list
			}
			// No more is checked: this decides within workflows, where no library may.
			if c.Within(p.Text) {
				c.Start, c.End = before+c.Start, before+c.End
				list = append(list, c)
			}
		}
		before += len(p.Text)
	}
	return list
}

// CitationsSize returns how many bytes citations count in [Message.Size].
func CitationsSize(list []Citation) (n int) {
	const frame = 64 // the numbers, and the names of the fields
	for _, c := range list {
		n += frame + c.Size()
	}
	return n
}
