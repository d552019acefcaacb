package web

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// maxConversions bounds how many pages become Markdown at once: each takes a processor and
// some 100 MB.
const maxConversions = 2

var toMarkdown = sync.OnceValue(func() *converter.Converter {
	// Escapes are noise for a model, and finding where they are needed costs minutes for a
	// page of brackets.
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithHeaderPromotion(true), table.WithSkipEmptyRows(true)),
	))
	// Once nobody waits for the text, no element is written any more.
	c.Register.Renderer(func(ctx converter.Context, _ converter.Writer, _ *html.Node) converter.RenderStatus {
		if ctx.Err() != nil {
			return converter.RenderSuccess
		}
		return converter.RenderTryNext
	}, converter.PriorityEarly-1)
	return c
})

// markdown returns a page of HTML as Markdown. cut reports whether its end is left out.
func (f *Fetcher) markdown(ctx context.Context, body []byte, declared string, at *url.URL) (text string, cut bool, err error) {
	// Before decoding: that takes memory too.
	if err := enter(ctx, f.convert); err != nil {
		return "", false, err
	}
	type converted struct {
		text string
		cut  bool
		err  error
	}
	done := make(chan converted, 1)
	go func() {
		defer func() { <-f.convert }()
		var c converted
		defer func() {
			// A panic here would end the worker.
			if p := recover(); p != nil {
				c.err = fmt.Errorf("%s can't be turned into text: %v", at.Host, p)
			}
			done <- c
		}()
		page, cut := decodeHTML(body, declared)
		c.text, c.cut, c.err = convert(ctx, page, at)
		c.cut = c.cut || cut
	}()
	select {
	case c := <-done:
		return c.text, c.cut, c.err
	case <-ctx.Done(): // the conversion ends soon, and keeps its place until then
		return "", false, context.Cause(ctx)
	}
}

// decodeHTML returns a page as UTF-8, and at most maxHTML of it.
func decodeHTML(body []byte, declared string) (page string, cut bool) {
	const most = 2 * maxHTML // of UTF-16, a character takes two bytes
	page = decode(body[:min(len(body), most)], declared)
	if len(page) <= maxHTML {
		return page, len(body) > most
	}
	return string(trimRune([]byte(page[:maxHTML]))), true
}

// convert returns a page of HTML as Markdown.
func convert(ctx context.Context, page string, at *url.URL) (text string, cut bool, err error) {
	t, err := parse(ctx, page, at)
	if err != nil {
		return "", false, err
	}
	md, err := toMarkdown().ConvertNode(t.root, converter.WithContext(ctx))
	if ctx.Err() != nil {
		return "", false, context.Cause(ctx)
	}
	if err != nil {
		return "", false, fmt.Errorf("%s can't be turned into text: %w", at.Host, err)
	}
	text = showAngles.Replace(string(md))
	if t.title != "" {
		text = "Title: " + t.title + "\n\n" + text
	}
	return text, t.cut, nil
}
