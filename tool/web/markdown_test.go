package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/stretchr/testify/require"
)

func md(t testing.TB, page string) string {
	text, _, err := convert(t.Context(), page, mustURL(t, "https://docs.example.com/guide/tea?x=1"))
	require.NoError(t, err)
	return text
}

func TestMarkdown(t *testing.T) {
	for page, want := range map[string]string{
		"<!doctype html><html><head><title>T\n t</title><link rel=x><meta a=b></head><body><p>a</body></html>": "Title: T t\n\na",
		"<p>a<p>b<div>c<p>d</div>e":                                                                    "a\n\nb\n\nc\n\nd\n\ne",
		"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>":                                                       "- a\n- b\n  \n  - c\n- d",
		"<ol start=3><li>a</li><li>b</ol>":                                                             "3. a\n4. b",
		"<table><thead><tr><th>a<th>b<tbody><tr><td>1<td>2<tr><td>3</table>x":                          "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |  |\n\nx",
		"<pre><code class='x language-go'>a &lt; b\n  c</code></pre>":                                  "```go\na < b\n  c\n```",
		"<h2>a</h2><blockquote>b</blockquote><hr>c<br>d":                                               "## a\n\n> b\n\n* * *\n\nc  \nd",
		"a <b>b <i>c</b> d</i> e":                                                                      "a **b *c*** d e",
		"<b>a<p>b</p></b>c":                                                                            "**a**\n\n**b**\n\nc",
		"<a href=b>x</a> <a href=/c>y</a>":                                                             "[x](https://docs.example.com/guide/b) [y](https://docs.example.com/c)",
		"<a href=//e.org/z>x</a><a href=#f>y</a>":                                                      "[x](https://e.org/z)y",
		"<base href=https://e.org/d/><a href=z>x":                                                      "[x](https://e.org/d/z)",
		"<base href=d/><base href=e/><a href=z>x":                                                      "[x](https://docs.example.com/guide/d/z)",
		"<base target=x><base href=/d/><a href=z>x":                                                    "[x](https://docs.example.com/d/z)",
		"<div hidden><base href=/d/></div><base href=/e/><a href=z>x":                                  "[x](https://docs.example.com/e/z)",
		"<base hidden href=/d/><a href=z>x":                                                            "[x](https://docs.example.com/guide/z)",
		"<base href=/d" + strings.Repeat("é", 1000) + "/><a href=z>x":                                  "[x](https://docs.example.com/guide/z)",
		"<base href=javascript:x><a href=z>x":                                                          "[x](https://docs.example.com/guide/z)",
		"<a href='javascript:x()'>x</a> <a href='data:text/html,x'>y</a> <a href='mailto:a@b.c'>z</a>": "x y [z](mailto:a@b.c)",
		"<img src=a.png alt=Chart><img src=b.png alt=''><img src='data:image/png;base64,x' alt=D>":     "![Chart](https://docs.example.com/guide/a.png)",
		"a<script>b</script><style>c</style><!-- d --><template>e<td></template><svg><title>f</title><text>g</text></svg><noscript>h</noscript><iframe src=i></iframe><textarea>j</textarea>k": "ak",
		"a<div hidden>b<div>c</div></div><p style='color: red; DISPLAY : none !important'>d</p><i aria-hidden=true>e</i><span style='display:none-x'>f</span><b style=font-size:0>g</b>":       "af",
		"<div hidden><b>x</div>y<p hidden>z<p>w":                               "y\n\nw",
		"<table><tr><td><table><tr><td>x</td><td>y</table></td></tr></table>z": "| x | y |\n|---|---|\n\nz",
		"<table><td>x<td>y<tr><div><td>z</div></table>":                        "| x | y |\n|---|---|\n| z |  |",
		"<custom-tag>a</custom-tag><unknown>b":                                 "ab",
		"<p>1 &lt; 2 [a_b] &amp;lt; *c*</p><code>&amp;lt; &lt;</code>":         "1 < 2 [a_b] &lt; *c*\n\n`&lt; <`",
		"</p></div></table></li>a":                                             "a",
		"a &#0; &nbsp;c":                                                       "a \ufffd \u00a0c",
	} {
		require.Equal(t, want, md(t, page), page)
	}
}

// hostile are pages that cost much in a browser's tree or in Markdown.
func hostile(n int) map[string]string {
	attrs := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	many := func(s string) string { return strings.Repeat(s, n/len(s)) }
	return map[string]string{
		"divs":       many("<div>"),
		"closed":     many("<div>") + many("</div>"),
		"formats":    strings.Repeat("<b>", 600) + many("<p>x"),
		"formats 2":  attrs("<font a=%d>")[:min(n, 8000)] + many("<p>x"),
		"links":      many("<a href=x>y"),
		"long base":  "<base href=https://e.org/" + strings.Repeat("a", 1900) + "/>" + many("<a href=x>y</a>"),
		"bases":      many("<base href=a/>"),
		"lists":      many("<ul><li>"),
		"lists 2":    strings.Repeat("<ol><li>", 90) + many("<li>x"),
		"quotes":     strings.Repeat("<blockquote>", 99) + many("<p>x"),
		"tables":     many("<table><tr><td>x"),
		"tables 2":   many("<table><tr><td>x</td></tr></table>"),
		"cells":      "<table><tr>" + many("<td>x") + "</table>",
		"wide":       "<table><tr>" + strings.Repeat("<td>x", 1000) + many("<tr><td>y") + "</table>",
		"spans":      "<table>" + many("<tr><td colspan=10000 rowspan=10000>x") + "</table>",
		"big cell":   "<table><tr><td>" + strings.Repeat("x", n/2) + strings.Repeat("<tr><td>y", n/20) + "</table>",
		"comments":   many("a<!---->"),
		"hidden":     many("a<i hidden></i>"),
		"attributes": "<p " + attrs("a%d=b ") + ">x",
		"text":       many("x"),
		"words":      many("x "),
		"lines":      many("x\n"),
		"breaks":     many("<br>"),
		"pre":        "<pre>" + many("\n`"),
		"ticks":      "<code>" + many("`") + "</code>" + "<pre>" + many("`"),
		"stars":      many("*_[]#+-=|~"),
		"brackets":   many("["),
		"hashes":     many("#"),
		"numbers":    many("1. "),
		"entities":   many("&#x27;&amp;"),
		"lt":         many("<"),
		"ends":       many("</b></p></td>"),
		"emphasis":   many("<b><i><em>x</em></i></b>"),
		"nested b":   many("<b>x"),
		"nested i":   many("<i>x<b>"),
		"codes":      many("<code><b>"),
		"headings":   many("<h1>x<h2>"),
		"images":     many("<img src=x alt='y z'>"),
		"spaces":     many(" <b> </b> "),
		"blank":      "<p>x" + many(" \n\t") + "y",
		"defs":       many("<dl><dt>a<dd>b"),
		"rtl":        many("\u202e\u200b"),
		"bad":        many("\xff\xfe"),
		"quoted":     many("<li><blockquote><pre><code>"),
		"open":       "<" + many("a "),
		"cdata":      many("<![CDATA["),
		"doctype":    many("<!doctype "),
		"script":     many("<script>"),
		"title":      many("<title>"),
	}
}

// No page costs much, however it is built: what grows as the square of the page takes minutes.
func TestHostilePages(t *testing.T) {
	const n = maxHTML
	for name, page := range hostile(n) {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			text := md(t, page)
			took := time.Since(begun)
			t.Logf("%s: %d bytes became %d in %s", name, len(page), len(text), took)
			require.Less(t, len(text), 10*n)
			require.Less(t, took, time.Minute)
		})
	}
}

// Deep pages keep their text.
func TestDeepPage(t *testing.T) {
	text, cut, err := convert(t.Context(), strings.Repeat("<div><span>", 10_000)+"deep"+strings.Repeat("</span></div>", 10_000)+"<p>after", mustURL(t, "https://e.org/"))
	require.NoError(t, err)
	require.False(t, cut)
	require.Equal(t, "deep\n\nafter", text)
	text, cut, err = convert(t.Context(), strings.Repeat("<p>x</p>", maxNodes), mustURL(t, "https://e.org/"))
	require.NoError(t, err)
	require.True(t, cut)
	require.Contains(t, text, "x\n\nx")
}

// Whatever stands in a page, its text is bounded and can be shown.
func FuzzConvert(f *testing.F) {
	for _, page := range hostile(200) {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if len(page) > 1<<16 {
			return
		}
		at := mustURL(t, "https://e.org/")
		tree, err := parse(t.Context(), page, at)
		require.NoError(t, err)
		require.LessOrEqual(t, tree.nodes, len(page)+1)
		text, _, err := convert(t.Context(), page, at)
		require.NoError(t, err)
		require.Less(t, len(text), 100*len(page)+1000)
		p := shownPage(text)
		shown, err := p.show(1, defaultLines)
		require.NoError(t, err)
		for i, line := range strings.Split(shown, "\n") {
			require.True(t, i < 2 || strings.HasPrefix(line, ">"), "%q", line)
		}
	})
}

func shownPage(text string) *page {
	return &page{url: "https://e.org/", about: "text/html", text: clean(text), shown: true}
}

// A row that is too wide goes on in the next one.
func TestWideRow(t *testing.T) {
	page := "<table><tr>"
	for i := range 3*maxCells - 1 {
		page += fmt.Sprintf("<td>c%d", i)
	}
	text := md(t, page)
	require.Len(t, strings.Split(text, "\n"), 4)
	require.Contains(t, text, " c118 |")
}

// A tag beyond the bound ends the page, with a note; a long text goes on, and a long script is
// passed over.
func TestLongTokens(t *testing.T) {
	long := strings.Repeat("x ", maxToken)
	for page, want := range map[string]struct {
		text string
		cut  bool
	}{
		"<p>a<p title='" + long + "'>b<p>c":                                 {"a", true},
		"<p>a<!--" + long + "--><p>c":                                       {"a", true},
		"<p>a<script>" + long + "</p></div><p>b</scripts></SCRIPT><p>c":     {"a\n\nc", false},
		"<div>a<style>" + long + "</div>b":                                  {"a", false},
		"<title>" + long + "</title>a":                                      {"a", false},
		"<pre>" + strings.Repeat("é\n", maxToken) + "</pre><p>c":            {"```\n" + strings.Repeat("é\n", maxToken) + "```\n\nc", false},
		"<div hidden>" + long + "<b>" + long + "</b>" + long + "</div><p>c": {"c", false},
	} {
		text, cut, err := convert(t.Context(), page, mustURL(t, "https://e.org/"))
		require.NoError(t, err)
		if _, body, ok := strings.Cut(text, "\n\n"); ok && strings.HasPrefix(text, "Title: ") {
			text = body
		}
		require.Equal(t, want.cut, cut, page[:20])
		require.True(t, want.text == text, "%s: %d bytes became %d", page[:20], len(page), len(text))
	}
}

// A page is not turned into text any more once its call is over.
func TestConversionEnds(t *testing.T) {
	over := errors.New("the call is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	at := mustURL(t, "https://e.org/")
	tree, err := parse(ctx, strings.Repeat("<p>x", 1000), at)
	require.NoError(t, err)
	cancel(over)
	_, err = parse(ctx, strings.Repeat("<p>x", 1000), at)
	require.ErrorIs(t, err, over)
	text, err := toMarkdown().ConvertNode(tree.root, converter.WithContext(ctx))
	require.NoError(t, err)
	require.Empty(t, text)
	_, _, err = convert(ctx, "<p>x", at)
	require.ErrorIs(t, err, over)
}

// A page is decoded once it has a place, and no more of it than is read.
func TestHTMLIsDecodedInItsPlace(t *testing.T) {
	body := []byte("<p>" + strings.Repeat("\xff", maxBody-3))
	page, cut := decodeHTML(body, "text/html; charset=utf-8")
	require.True(t, cut)
	require.LessOrEqual(t, len(page), maxHTML)
	require.Greater(t, len(page), maxHTML-4)
	require.True(t, utf8.ValidString(page))
	wide := []byte("\xff\xfe" + strings.Repeat("a\x00", maxHTML-1))
	page, cut = decodeHTML(wide, "text/html")
	require.False(t, cut)
	require.Len(t, page, maxHTML-1)

	f := fetcher(t, Options{Hosts: []string{"e.org"}}, nil)
	a := &answer{url: mustURL(t, "https://e.org/"), header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body: body}
	p, err := f.read(t.Context(), a)
	require.NoError(t, err)
	require.Contains(t, p.about, "its end is left out: it is too long")
	for range maxConversions {
		f.convert <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Less(t, allocated(func() { _, err = f.read(ctx, a) }), 1<<20, "it waits and is not decoded yet")
	require.ErrorIs(t, err, context.Canceled)
}

// allocated returns how many bytes a function allocates.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// A part of a page costs as much as the part, and not as the page.
func TestPartsAreCheap(t *testing.T) {
	p := shownPage(strings.Repeat("\n", maxBody))
	var text string
	var err error
	require.Less(t, allocated(func() { text, err = p.show(maxBody-1, 1<<40) }), 1<<20)
	require.NoError(t, err)
	require.Contains(t, text, "; lines 5242879 to 5242880, the last]")
	require.Less(t, allocated(func() { text, err = p.show(1, 1<<40) }), 1<<20)
	require.NoError(t, err)
	require.Contains(t, text, "; lines 1 to 32768 of 5242880, read on with from_line=32769]")
}
