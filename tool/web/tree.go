package web

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of a page's tree. What turns a tree into Markdown takes time and space by all of
// them, so without bounds a small page could cost minutes and gigabytes.
const (
	maxHTML   = 2 << 20   // bytes of a page, decoded
	maxToken  = 256 << 10 // bytes of a tag: each attribute becomes several times as large
	maxNodes  = 100_000
	maxDepth  = 100
	maxNested = 8       // lists and quotations within one another: each indents all that is in it
	maxCells  = 40      // of a row: a table has as many in each row
	maxLinks  = 2 << 20 // bytes of all links: a short one becomes absolute
)

// tree builds the part of a page that a person sees. [html.Parse] builds it as browsers
// do, and there 5 bytes of a page can become hundreds of nodes; here a tag is one at most.
type tree struct {
	root  *html.Node
	open  []element
	text  strings.Builder // of the innermost open element, not in the tree yet
	title string
	base  *url.URL
	nodes int
	links int
	deep  int  // open elements beyond maxDepth
	based bool // the page has named its base
	cut   bool // the rest is left out
}

// element is an open element.
type element struct {
	tag   atom.Atom
	name  string
	node  *html.Node // nil if it is hidden
	cells int        // of a row
}

// The elements by how they are treated.
var (
	void    = atoms("area base br col embed hr img input link meta param source track wbr")
	dropped = atoms("script style template svg math iframe object canvas noscript textarea select audio video applet noembed noframes datalist dialog")
	ignored = atoms("html head body form tbody thead tfoot")
	blocks  = atoms("address article aside blockquote center details dd div dl dt fieldset figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre section summary table ul tr td th caption")
	nested  = atoms("ul ol menu dl blockquote")
)

func atoms(names string) map[atom.Atom]bool {
	set := map[atom.Atom]bool{}
	for name := range strings.FieldsSeq(names) {
		set[atom.Lookup([]byte(name))] = true
	}
	return set
}

// parse builds the tree of a page. base is the page's URL. It fails only if ctx ends.
func parse(ctx context.Context, page string, base *url.URL) (*tree, error) {
	t := &tree{root: &html.Node{Type: html.DocumentNode}, base: base}
	t.open = []element{{node: t.root}}
	defer t.finish()
	for tokens := 0; page != ""; {
		z := html.NewTokenizer(strings.NewReader(page))
		z.SetMaxBuf(maxToken)
		read, kind, tag := 0, html.ErrorToken, atom.Atom(0)
		for next := z.Next(); next != html.ErrorToken; next = z.Next() {
			if tokens++; tokens%1000 == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if t.nodes >= maxNodes {
				t.cut = true
				return t, nil
			}
			read, kind = read+len(z.Raw()), next
			if started := t.take(z, kind); kind != html.TextToken {
				tag = started
			}
		}
		if !errors.Is(z.Err(), html.ErrBufferExceeded) {
			t.cut = z.Err() != io.EOF
			return t, nil
		}
		if kind != html.TextToken { // the rest of a tag would look like text
			t.cut = true
			return t, nil
		}
		page = page[read:]
		if dropped[tag] || tag == atom.Title { // the rest of a script would look like tags
			page = page[endOf(page, tag.String()):]
		}
	}
	return t, nil
}

// finish puts text before a hidden element into the tree, though that one has no end.
func (t *tree) finish() {
	for t.top().node == nil {
		t.open = t.open[:len(t.open)-1]
	}
	t.flush()
}

// take puts a token into the tree. It returns the element that the token starts.
func (t *tree) take(z *html.Tokenizer, kind html.TokenType) (started atom.Atom) {
	switch kind {
	case html.TextToken:
		if t.top().node != nil {
			t.text.WriteString(hideAngles.Replace(string(z.Text())))
		} else if t.top().tag == atom.Title && t.title == "" && t.open[len(t.open)-2].node != nil {
			t.title = strings.Join(strings.Fields(string(z.Text())), " ")
		}
	case html.StartTagToken, html.SelfClosingTagToken:
		token := z.Token()
		t.start(token)
		return token.DataAtom
	case html.EndTagToken:
		name, _ := z.TagName()
		t.end(atom.Lookup(name), string(name))
	}
	return 0
}

// endOf returns where the end tag of an element begins, or the end of the page.
func endOf(page, name string) int {
	for at := 0; ; at += len("</") {
		next := strings.Index(page[at:], "</")
		if next < 0 {
			return len(page)
		}
		at += next
		if after := page[at+len("</"):]; len(after) >= len(name) && strings.EqualFold(after[:len(name)], name) {
			return at
		}
	}
}

// The converter writes "&lt;" for "<" in prose. A model need not read it so: private
// characters stand for these two meanwhile.
var (
	hideAngles = strings.NewReplacer("<", "\uE3C0", ">", "\uE3C1")
	showAngles = strings.NewReplacer("\uE3C0", "<", "\uE3C1", ">")
)

func (t *tree) top() *element { return &t.open[len(t.open)-1] }

// flush puts the collected text into the tree.
func (t *tree) flush() {
	if top := t.top(); top.node != nil && t.text.Len() > 0 {
		top.node.AppendChild(&html.Node{Type: html.TextNode, Data: t.text.String()})
		t.nodes++
		t.text.Reset()
	}
}

// start opens an element.
func (t *tree) start(token html.Token) {
	tag := token.DataAtom
	if tag == atom.Base && !t.based && has(token.Attr, "href") && t.top().node != nil && !hidden(token) {
		t.rebase(attr(token.Attr, "href"))
	}
	if ignored[tag] || void[tag] && tag != atom.Br && tag != atom.Hr && tag != atom.Img {
		return
	}
	t.endImplied(tag)
	// A cell without a row gets one, and a row that is too wide is continued in the next.
	if row := t.top(); isCell(tag) && t.within(tables) > 0 && (row.tag != atom.Tr || row.cells == maxCells) {
		t.start(html.Token{DataAtom: atom.Tr, Data: "tr"})
	}
	switch {
	case void[tag]:
		if node := t.node(token); node != nil && t.top().node != nil {
			t.flush()
			t.top().node.AppendChild(node)
			t.nodes++
		}
		return
	case len(t.open) > maxDepth:
		t.deep++
		return
	}
	e := element{tag: tag, name: token.Data}
	if t.top().node != nil && !hidden(token) {
		t.flush()
		e.node = t.node(token)
		t.top().node.AppendChild(e.node)
		t.nodes++
	}
	t.open = append(t.open, e)
}

// end closes an element, with those in it that are still open.
func (t *tree) end(tag atom.Atom, name string) {
	if ignored[tag] || void[tag] {
		return
	}
	if t.deep > 0 {
		t.deep--
		return
	}
	for i := len(t.open) - 1; i > 0; i-- {
		e := t.open[i]
		if e.tag == tag && e.name == name {
			t.closeTo(i)
			return
		}
		// A forgotten </b> ends nothing outside of its paragraph, and a </div> no table.
		if e.node != nil && (blocks[e.tag] && !blocks[tag] || isCell(e.tag) && tag != atom.Tr && tag != atom.Table) {
			return
		}
	}
}

func isCell(tag atom.Atom) bool { return tag == atom.Td || tag == atom.Th }

// closeTo closes the open elements from one on.
func (t *tree) closeTo(i int) {
	t.flush()
	t.open = t.open[:i]
}

// endImplied closes what a start tag ends without an end tag.
func (t *tree) endImplied(tag atom.Atom) {
	switch {
	case tag == atom.Li:
		t.endNearest([]atom.Atom{atom.Li}, atom.Ul, atom.Ol, atom.Menu)
	case tag == atom.Dd || tag == atom.Dt:
		t.endNearest([]atom.Atom{atom.Dd, atom.Dt}, atom.Dl)
	case isCell(tag):
		t.endNearest([]atom.Atom{atom.Td, atom.Th}, atom.Tr, atom.Table)
	case tag == atom.Tr:
		t.endNearest([]atom.Atom{atom.Tr}, atom.Table)
	case tag == atom.A:
		t.endNearest([]atom.Atom{atom.A}, atom.Td, atom.Th, atom.Table)
	}
	if blocks[tag] {
		t.endNearest([]atom.Atom{atom.P}, atom.Td, atom.Th, atom.Table, atom.Li, atom.Div, atom.Blockquote)
	}
}

func (t *tree) endNearest(tags []atom.Atom, within ...atom.Atom) {
	for i := len(t.open) - 1; i > 0; i-- {
		if slices.Contains(tags, t.open[i].tag) {
			t.closeTo(i)
			return
		}
		if slices.Contains(within, t.open[i].tag) {
			return
		}
	}
}

// within counts the open elements of some kinds.
func (t *tree) within(tags map[atom.Atom]bool) (n int) {
	for _, e := range t.open {
		if tags[e.tag] {
			n++
		}
	}
	return n
}

// node returns an element's node with the attributes that become part of the text, or nil
// for an image that says nothing.
func (t *tree) node(token html.Token) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: token.Data, DataAtom: token.DataAtom}
	keep := func(key, value string) {
		if value != "" {
			n.Attr = append(n.Attr, html.Attribute{Key: key, Val: value})
		}
	}
	switch token.DataAtom {
	case atom.A:
		if link := t.link(attr(token.Attr, "href")); link != "" {
			keep("href", link)
		} else {
			rename(n, atom.Span)
		}
	case atom.Img:
		keep("alt", attr(token.Attr, "alt"))
		keep("src", t.link(attr(token.Attr, "src")))
		if len(n.Attr) == 0 || has(token.Attr, "alt") && attr(token.Attr, "alt") == "" {
			return nil
		}
	case atom.Pre, atom.Code:
		keep("class", language(attr(token.Attr, "class")))
	case atom.Ol:
		if start, err := strconv.Atoi(attr(token.Attr, "start")); err == nil && start > 0 && start < 10_000 {
			keep("start", strconv.Itoa(start))
		}
	}
	t.flatten(n)
	return n
}

var tables = map[atom.Atom]bool{atom.Table: true}

// flatten makes a plain element of one that is nested too deeply, or of a cell without a
// table.
func (t *tree) flatten(n *html.Node) {
	switch tag := n.DataAtom; {
	case (nested[tag] || tag == atom.Li) && t.within(nested) > maxNested:
		rename(n, atom.Div)
	case isCell(tag):
		if t.top().cells++; t.top().tag != atom.Tr {
			rename(n, atom.Div)
		}
	}
}

func rename(n *html.Node, tag atom.Atom) { n.DataAtom, n.Data, n.Attr = tag, tag.String(), nil }

// link returns a link as an absolute URL; empty if it leads to no page.
func (t *tree) link(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > maxURL {
		return ""
	}
	u, err := t.base.Parse(href)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" && u.Scheme != "tel" {
		return ""
	}
	text := u.String()
	if t.links += len(text); t.links > maxLinks {
		return ""
	}
	return text
}

// rebase heeds a page's own base of links. Only the first one counts, as in browsers: each
// may be relative to the one before, and so a chain of them would grow.
func (t *tree) rebase(href string) {
	t.based = true
	if u, err := t.base.Parse(strings.TrimSpace(href)); href != "" && len(href) <= maxURL && err == nil && (u.Scheme == "https" || u.Scheme == "http") && len(u.String()) <= maxURL {
		t.base = u
	}
}

// language returns the class that names a language of code.
func language(class string) string {
	for name := range strings.FieldsSeq(class) {
		if lang := strings.TrimPrefix(strings.TrimPrefix(name, "language-"), "lang-"); lang != name && len(lang) < 20 && strings.Trim(strings.ToLower(lang), "abcdefghijklmnopqrstuvwxyz0123456789+#-") == "" {
			return "language-" + lang
		}
	}
	return ""
}

// hidden reports whether a person does not see an element. Rules of style sheets are not
// known here.
func hidden(token html.Token) bool {
	if dropped[token.DataAtom] || token.DataAtom == atom.Title || has(token.Attr, "hidden") || attr(token.Attr, "aria-hidden") == "true" {
		return true
	}
	style := strings.ToLower(strings.Join(strings.Fields(attr(token.Attr, "style")), ""))
	for rule := range strings.SplitSeq(style, ";") {
		if slices.Contains([]string{"display:none", "visibility:hidden", "visibility:collapse", "opacity:0", "font-size:0", "font-size:0px"}, strings.TrimSuffix(rule, "!important")) {
			return true
		}
	}
	return false
}

func attr(list []html.Attribute, key string) string {
	for _, a := range list {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(list []html.Attribute, key string) bool {
	return slices.ContainsFunc(list, func(a html.Attribute) bool { return a.Key == key })
}
