package model

import (
	"slices"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// Citations collects what the parts of a reply cite, while it arrives. Adapters use one for each
// reply. K names a part that is not complete yet, as the adapter does. However many citations
// come, it keeps few, and it never fails: what it leaves out is counted in [agent.Part.Uncited],
// for very many parts in that of the next part.
// The zero value is empty.
type Citations[K comparable] struct {
	of      map[K]*cited
	n       int
	dropped int // of parts that have no entry
}

type cited struct {
	list    []agent.Citation
	dropped int
}

// candidates is how many citations of one reply are kept until its text is complete: only then
// is known which ones are valid.
const candidates = 4 * agent.MaxCitations

// Add adds a citation to a part. Start and End count as the provider does.
func (c *Citations[K]) Add(part K, one agent.Citation) {
	drop := c.Full() || one.URL == "" && one.File == "" && one.Title == "" || len(one.URL) > agent.MaxCitedURL
	at := c.of[part]
	if at == nil && drop && len(c.of) >= candidates { // a reply may have a part for each of its bytes
		c.dropped++
		return
	}
	if c.of == nil {
		c.of = map[K]*cited{}
	}
	if at == nil {
		at = &cited{}
		c.of[part] = at
	}
	if drop {
		at.dropped++
		return
	}
	if one = one.Fit(); !slices.Contains(at.list, one) { // some providers repeat them in each event
		at.list = append(at.list, one)
		c.n++
	}
}

// Forget drops the citations of a part, for one that comes again as a whole.
func (c *Citations[K]) Forget(part K) {
	if at := c.of[part]; at != nil {
		c.n -= len(at.list)
		delete(c.of, part)
	}
}

// Cite adds the citations of a part to it, now that its text is complete. span converts what
// the provider counted; nil means that each citation is about the whole text.
func (c *Citations[K]) Cite(part K, p *agent.Part, span Span) {
	if p.Type == agent.PartText {
		p.Uncited, c.dropped = p.Uncited+c.dropped, 0
	}
	at := c.of[part]
	if at == nil {
		return
	}
	p.Uncited += at.dropped
	for _, one := range at.list {
		start, end := 0, len(p.Text)
		if span != nil {
			start, end = span(p.Text, one.Start, one.End)
		}
		one.Start, one.End = start, end
		p.Citations = append(p.Citations, one)
	}
	if fit := FitCitations([]agent.Part{*p}); len(fit) == 1 {
		*p = fit[0]
	}
}

// CiteAll is [Citations.Cite] for a provider that counts in the joined text of a reply. It
// returns the parts with their citations. One that goes on in the next part ends with its own.
func (c *Citations[K]) CiteAll(part K, parts []agent.Part, span Span) []agent.Part {
	at := c.of[part]
	if at == nil {
		return parts
	}
	whole, out, dropped := agent.Message{Parts: parts}.Text(), slices.Clone(parts), at.dropped+c.dropped
	for _, one := range at.list {
		start, end := span(whole, one.Start, one.End)
		i, before := textAt(out, start)
		if i < 0 || end < start || end > len(whole) {
			dropped++
			continue
		}
		one.Start, one.End = start-before, min(end-before, len(out[i].Text))
		out[i].Citations = append(out[i].Citations, one)
	}
	if i, _ := textAt(out, 0); i >= 0 {
		out[i].Uncited += dropped
	}
	return FitCitations(out)
}

// textAt returns the number of the part that has a byte of the joined text, and how many bytes
// are before the part; -1 if none has it. The end of the text is in the last part.
func textAt(parts []agent.Part, at int) (i, before int) {
	i = -1
	for n, p := range parts {
		if p.Type != agent.PartText {
			continue
		}
		if i >= 0 {
			if at < before+len(parts[i].Text) {
				break
			}
			before += len(parts[i].Text)
		}
		i = n
	}
	if i < 0 || at < before || at > before+len(parts[i].Text) {
		return -1, 0
	}
	return i, before
}

// Full reports whether no more citations are kept.
func (c *Citations[K]) Full() bool { return c.n >= candidates }

// Span converts the ends of a piece of a text, as a provider counts, to bytes. Ends that are
// outside the text become -1.
type Span func(text string, start, end int) (int, int)

// ByBytes is the [Span] of a provider that counts bytes of UTF-8.
func ByBytes(_ string, start, end int) (int, int) { return start, end }

// ByCharacters is the [Span] of a provider that counts characters (Unicode code points).
func ByCharacters(text string, start, end int) (int, int) {
	return byteOf(text, start), byteOf(text, end)
}

// byteOf returns where the nth character of a text begins, or its end; -1 if it has fewer.
func byteOf(text string, n int) int {
	if n < 0 || n > len(text) {
		return -1
	}
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	if n == 0 {
		return len(text)
	}
	return -1
}

// FitCitations returns a message's parts with only valid citations, each once, and no more than
// a message may have. What it leaves out is counted. It does not change the parts themselves.
// The runtime calls it with every reply.
func FitCitations(parts []agent.Part) []agent.Part {
	out, n, size := parts, 0, 0
	for i, p := range parts {
		if len(p.Citations) == 0 && p.Uncited == 0 {
			continue
		}
		if &out[0] == &parts[0] {
			out = slices.Clone(parts)
		}
		var list []agent.Citation
		left := max(p.Uncited, 0)
		for _, one := range p.Citations {
			one = one.Fit()
			switch {
			case slices.Contains(list, one):
			case p.Type != agent.PartText || !utf8.ValidString(p.Text) || one.Check(p.Text) != nil || n == agent.MaxCitations || size+one.Size() > agent.MaxCitationSize:
				left++
			default:
				list, n, size = append(list, one), n+1, size+one.Size()
			}
		}
		out[i].Citations, out[i].Uncited = list, left
	}
	return out
}
