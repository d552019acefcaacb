package partial

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/internal/rawjson"
)

// maxText limits what is read of one answer, in bytes. A worker takes no longer reply.
const maxText = 3 << 19

// Parser reads one answer. One goroutine uses it.
type Parser struct {
	root    *node
	place   place
	ticks   int    // backticks before the answer
	text    []byte // the answer, from its first character on
	open    []level
	token   int   // where the string, number or literal begins in text
	node    *node // its place in the schema
	visible bool  // the string is shown while it is not complete
	escape  int   // in a string: 0, or how many characters its escape still has

	// text[:cut], a quote if the cut is inside a string, and the brackets of all open
	// levels are the value so far. text[:settled] is the same without the open string.
	cut, settled int
	inside       bool
}

// level is an open object or list.
type level struct {
	object bool
	node   *node
	name   string
	names  map[string]struct{}
	index  int
}

// place says what may come next.
type place int

const (
	before    place = iota // the answer, or a fence
	fence                  // the rest of the fence's line
	value                  // a value
	valueOrUp              // a value, or the end of an empty list
	nameOrUp               // a name, or the end of an empty object
	name                   // a name
	inName                 // the rest of a name
	colon                  // a colon
	inString               // the rest of a string
	inScalar               // the rest of a number, true, false or null
	after                  // a comma, or the end of a list or object
	done                   // nothing: the value is complete
	failed                 // nothing: the text is no JSON, or does not fit the schema
)

// NewParser returns a parser for an answer with this schema. If it is nil, any JSON fits.
func NewParser(s *Schema) *Parser {
	p := &Parser{}
	if s != nil {
		p.root = s.root
	}
	return p
}

// Write reads the next piece of the answer.
func (p *Parser) Write(piece string) {
	for i := 0; i < len(piece) && p.place < done; i++ {
		if len(p.text) == maxText {
			p.place = failed
			return
		}
		p.read(piece[i])
	}
}

// End says that the whole text has come. It reports whether that is a complete value.
func (p *Parser) End() bool {
	if p.place == inScalar && len(p.open) == 0 {
		p.endScalar(p.text[p.token:])
	}
	return p.place == done
}

// Fits reports whether all that has come fits the schema so far. If not, the value stays as
// it was.
func (p *Parser) Fits() bool { return p.place != failed }

// Size returns how many bytes the value so far has, without what closes it; zero for no
// value.
func (p *Parser) Size() int { return p.cut }

// Value returns the value so far. settled leaves out a string that is not complete. It is
// nil if there is no value.
func (p *Parser) Value(settled bool) json.RawMessage {
	cut, inside := p.cut, p.inside
	if settled && inside {
		cut, inside = p.settled, false
	}
	if cut == 0 {
		return nil
	}
	out := append(make([]byte, 0, cut+len(p.open)+1), p.text[:cut]...)
	if inside {
		out = append(out, '"')
	}
	for _, l := range slices.Backward(p.open) {
		if l.object {
			out = append(out, '}')
		} else {
			out = append(out, ']')
		}
	}
	return out
}

func (p *Parser) read(c byte) {
	space := strings.IndexByte(" \t\r\n", c) >= 0
	if p.place > fence {
		p.text = append(p.text, c)
	}
	switch p.place {
	case inString, inName:
		p.quoted(c)
		return
	case inScalar:
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || strings.IndexByte("+-.E", c) >= 0 {
			return
		}
		p.endScalar(p.text[p.token : len(p.text)-1])
	}
	switch {
	case p.place >= done:
	case p.place == before && !space:
		p.begin(c)
	case p.place == fence && c == '\n':
		p.place = before
	case space, p.place == fence:
	case p.place == value, p.place == valueOrUp && c != ']':
		p.value(c)
	case p.place == valueOrUp, p.place == nameOrUp && c == '}':
		p.up(c)
	case (p.place == nameOrUp || p.place == name) && c == '"':
		p.token, p.place = len(p.text)-1, inName
	case p.place == colon && c == ':':
		p.place = value
	case p.place == after:
		p.next(c)
	default:
		p.place = failed
	}
}

// begin reads the first character. Models like to put a Markdown fence around JSON.
func (p *Parser) begin(c byte) {
	const ticks = len("```")
	switch {
	case c == '`' && p.ticks < ticks:
		if p.ticks++; p.ticks == ticks {
			p.place = fence
		}
	case p.ticks > 0 && p.ticks < ticks:
		p.place = failed
	default:
		p.text = append(p.text, c)
		p.value(c)
	}
}

// value reads the first character of a value.
func (p *Parser) value(c byte) {
	p.node = p.root
	if inner := len(p.open) - 1; inner >= 0 {
		p.node = p.open[inner].part()
	}
	kind := kindOf(c)
	if kind == "" || !p.node.takes(kind) || len(p.open) == rawjson.MaxWrittenDepth && (c == '{' || c == '[') {
		p.place = failed
		return
	}
	p.token = len(p.text) - 1
	switch c {
	case '{':
		p.open, p.cut, p.place = append(p.open, level{object: true, node: p.node.only(kind)}), len(p.text), nameOrUp
	case '[':
		p.open, p.cut, p.place = append(p.open, level{node: p.node.only(kind)}), len(p.text), valueOrUp
	case '"':
		p.place, p.visible, p.settled = inString, p.node.takesStart(), p.cut
		p.shown()
	default:
		p.place = inScalar
	}
}

// part returns the place of the value that comes next in a list or an object.
func (l *level) part() *node {
	if l.object {
		return l.node.property(l.name)
	}
	return l.node.item(l.index)
}

// shown moves the cut to the end of what has come of a string.
func (p *Parser) shown() {
	if p.place == inString && p.visible {
		p.cut, p.inside = len(p.text), true
	}
}

// quoted reads the next character of a string. The cut is where no character, escape or
// surrogate pair is incomplete.
func (p *Parser) quoted(c byte) {
	switch {
	case c < ' ':
		p.place = failed
	case p.escape == 1 && c == 'u':
		p.escape = len("u0000")
	case p.escape == 1 && strings.IndexByte(`"\/bfnrt`, c) >= 0:
		p.escape = 0
		p.shown()
	case p.escape > 1 && strings.IndexByte("0123456789abcdefABCDEF", c) >= 0:
		if p.escape--; p.escape > 1 {
			return
		}
		if p.escape = 0; !isHigh(p.text[len(p.text)-4:]) {
			p.shown()
		}
	case p.escape > 0:
		p.place = failed
	case c == '\\':
		p.escape = 1
	case c == '"':
		p.endString()
	case endsRune(p.text[p.token+1:]):
		p.shown()
	}
}

// endsRune reports whether the last character of a text is complete.
func endsRune(text []byte) bool {
	for n := 1; n <= min(len(text), utf8.UTFMax); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			return utf8.FullRune(last)
		}
	}
	return true
}

// isHigh reports whether four hexadecimal digits are the first half of a surrogate pair.
func isHigh(hex []byte) bool {
	return (hex[0] == 'd' || hex[0] == 'D') && strings.IndexByte("89abAB", hex[1]) >= 0
}

func (p *Parser) endString() {
	text := p.text[p.token:]
	if p.place == inString {
		p.ended(p.node.fits(text), len(p.text))
		return
	}
	l := &p.open[len(p.open)-1]
	_ = json.Unmarshal(text, &l.name) // it was checked character by character
	// Of a name that comes twice, readers take one value or the other.
	if _, twice := l.names[l.name]; twice {
		p.place = failed
		return
	}
	if l.names == nil {
		l.names = map[string]struct{}{}
	}
	l.names[l.name] = struct{}{}
	p.place = colon
}

func (p *Parser) endScalar(text []byte) {
	p.ended(json.Valid(text) && p.node.fits(text), p.token+len(text))
}

// ended ends a value.
func (p *Parser) ended(fits bool, end int) {
	switch {
	case !fits:
		p.place = failed
		return
	case len(p.open) == 0:
		p.place = done
	default:
		p.place = after
	}
	p.cut, p.inside = end, false
}

func (p *Parser) next(c byte) {
	l := &p.open[len(p.open)-1]
	switch {
	case c == ',' && l.object:
		p.place = name
	case c == ',':
		l.index++
		p.place = value
	default:
		p.up(c)
	}
}

// up ends a list or an object.
func (p *Parser) up(c byte) {
	last := len(p.open) - 1
	if (c == '}') != p.open[last].object || c != '}' && c != ']' {
		p.place = failed
		return
	}
	p.open[last] = level{} // lets its names be freed
	p.open = p.open[:last]
	p.ended(true, len(p.text))
}
