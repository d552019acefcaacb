package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/tool"
)

const (
	maxRead      = 64 << 10 // bytes of text in one answer
	defaultLines = 2000
	sniff        = 8000 // a NUL in the first bytes marks a binary file, as in git
)

const readHelp = "Reads a text file of the workspace. A long file comes in pages: the first line of the answer says how to read on. " +
	"Images (PNG, JPEG, GIF, WebP) and PDFs are shown to you. Other binary files, and files that usually hold secrets, are refused."

type readArgs struct {
	Path  string `json:"path" jsonschema:"the file, relative to the workspace"`
	From  int    `json:"from_line,omitempty" jsonschema:"the first line to read, counted from 1"`
	Lines int    `json:"lines,omitempty" jsonschema:"how many lines to read; 2000 if left out"`
}

func (w *Workspace) read(ctx context.Context, c *tool.Call, in readArgs) (string, error) {
	w = w.at(in.Path)
	if in.From < 0 || in.Lines < 0 {
		return "", refuse(ReadTool, "from_line and lines count from 1")
	}
	place, err := w.place(ReadTool, in.Path)
	if err != nil {
		return "", err
	}
	f, info, err := w.open(ReadTool, in.Path, place)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if text, isMedia, err := show(ctx, c, f, in.Path, slashed(place), info.Size()); isMedia {
		return text, err
	}
	from, most := max(in.From, 1), in.Lines
	if most == 0 {
		most = defaultLines
	}
	p, err := readPage(ctx, f, from, most)
	switch {
	case errors.Is(err, errBinary):
		return "", refuse(ReadTool, "%s is a binary file of %s", shown(in.Path), size(info.Size()))
	case err != nil && ctx.Err() != nil:
		return "", ended(ctx)
	case err != nil:
		return "", explain(ReadTool, in.Path, err)
	case p.lines == 0 && from > 1:
		return "", refuse(ReadTool, "%s has only %s", shown(in.Path), count(p.skipped, "line", "lines"))
	}
	return p.page(from, slashed(place), info.Size()), nil
}

var errBinary = errors.New("binary")

// page is a part of a text file.
type page struct {
	text    []byte
	skipped int  // lines before the page
	lines   int  // lines in the page
	more    bool // lines follow
	cut     bool // its only line is longer than an answer
}

// readPage reads most lines from a line on, or as many as fit into an answer.
func readPage(ctx context.Context, f *os.File, from, most int) (p page, err error) {
	r := bufio.NewReaderSize(f, maxRead)
	head, err := r.Peek(sniff)
	if err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	// Binary data would fill the model's window and mean nothing to it.
	if bytes.IndexByte(head, 0) >= 0 {
		return p, errBinary
	}
	for p.skipped < from-1 {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if ctx.Err() != nil {
				return p, ctx.Err()
			}
			continue // the line continues
		case errors.Is(err, io.EOF):
			if len(line) > 0 {
				p.skipped++
			}
			return p, nil
		case err != nil:
			return p, err
		}
		if p.skipped++; p.skipped%1024 == 0 && ctx.Err() != nil {
			return p, ctx.Err()
		}
	}
	return p, p.fill(r, most)
}

func (p *page) fill(r *bufio.Reader, most int) error {
	for p.lines < most {
		line, err := r.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !long && !errors.Is(err, io.EOF) {
			return err
		}
		switch {
		case len(line) == 0:
			return nil
		// A line longer than an answer can't be paged by lines; without this the model
		// could not get past it.
		case long && p.lines == 0:
			p.text, p.lines, p.cut, p.more = whole(line), 1, true, true
			return nil
		case len(p.text)+len(line) > maxRead:
			p.more = true
			return nil
		}
		p.text = append(p.text, line...)
		p.lines++
	}
	// The page may end exactly at the end of the file.
	_, err := r.Peek(1)
	p.more = err == nil
	return nil
}

// whole copies bytes without an incomplete last character.
func whole(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				b = b[:len(b)-i]
			}
			break
		}
	}
	return bytes.Clone(b)
}

// page returns the answer. It begins with what is missing: a result that is cut keeps its
// beginning.
func (p page) page(from int, place string, bytes int64) string {
	var b strings.Builder
	last := from + p.lines - 1
	switch {
	case p.cut:
		fmt.Fprintf(&b, "[%s: the first %d bytes of line %d, which is too long for an answer; read on with from_line=%d]\n", place, len(p.text), from, from+1)
	case p.more:
		fmt.Fprintf(&b, "[%s: lines %d to %d of %s; read on with from_line=%d]\n", place, from, last, size(bytes), last+1)
	case from > 1:
		fmt.Fprintf(&b, "[%s: lines %d to %d, the last]\n", place, from, last)
	case p.lines == 0:
		return fmt.Sprintf("[%s is empty]", place)
	}
	if !utf8.Valid(p.text) {
		fmt.Fprintf(&b, "[%s is not UTF-8: characters that can't be shown are replaced]\n", place)
	}
	b.WriteString(clean(p.text))
	return b.String()
}

// clean makes valid UTF-8 without NUL from the bytes of a program or file.
func clean(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}

// count returns a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size returns a number of bytes with its unit.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1000_000_000)
}
