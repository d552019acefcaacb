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
)

// maxConversions bounds how many pages become Markdown at once: each takes a processor and
// some 100 MB.
const maxConversions = 2

var toMarkdown = sync.OnceValue(func() *converter.Converter {
	// Escapes are noise for a model, and finding where they are needed costs minutes for a
	// page of brackets.
	return converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithHeaderPromotion(true), table.WithSkipEmptyRows(true)),
	))
})

// markdown returns a page of HTML as Markdown. cut reports whether its end is left out.
func (f *Fetcher) markdown(ctx context.Context, page string, at *url.URL) (text string, cut bool, err error) {
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
		c.text, c.cut, c.err = convert(page, at)
		done <- c
	}()
	select {
	case c := <-done:
		return c.text, c.cut, c.err
	case <-ctx.Done(): // the conversion keeps its place until it ends
		return "", false, context.Cause(ctx)
	}
}

// convert returns a page of HTML as Markdown.
func convert(page string, at *url.URL) (text string, cut bool, err error) {
	// A panic here would end the worker.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s can't be turned into text: %v", at, p)
		}
	}()
	t := parse(page, at)
	md, err := toMarkdown().ConvertNode(t.root)
	if err != nil {
		return "", false, fmt.Errorf("%s can't be turned into text: %w", at, err)
	}
	text = showAngles.Replace(string(md))
	if t.title != "" {
		text = "Title: " + t.title + "\n\n" + text
	}
	return text, t.cut, nil
}
