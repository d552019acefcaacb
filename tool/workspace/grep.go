package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/internal/schemacost"
	"github.com/fermata-agents/fermata/tool"
)

const (
	maxPattern  = 1000
	maxMatches  = 200
	maxGrep     = 48 << 10 // bytes of one answer
	maxGrepFile = 8 << 20  // larger files are skipped
	maxLine     = 300      // bytes of a line in the answer
	maxWeight   = 20_000   // of a pattern, see [schemacost.PatternWeight]
	// maxWork bounds the work for one line, in weight times bytes: a second or two. A
	// search can't be stopped within a line.
	maxWork  = 100_000_000
	grepTime = 30 * time.Second
)

const grepHelp = "Searches the text files of the workspace for a regular expression (RE2), line by line. The answer has lines such as \"file:line: text\". " +
	"Binary files, files that usually hold secrets, symlinks, .git and node_modules are left out."

type grepArgs struct {
	Pattern    string `json:"pattern" jsonschema:"a regular expression in RE2 syntax"`
	Path       string `json:"path,omitempty" jsonschema:"a directory or file, relative to the workspace; the workspace itself if left out"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that match, such as *.go or src/**/*.ts"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"whether to ignore the case of letters"`
}

func (w *Workspace) grep(ctx context.Context, call *tool.Call, in grepArgs) (string, error) {
	w = w.at(in.Path)
	s, err := newSearch(w, call, in)
	if err != nil {
		return "", err
	}
	path := in.Path
	if path == "" {
		path = "."
	}
	place, err := w.place(GrepTool, path)
	if err != nil {
		return "", err
	}
	info, err := w.root.Lstat(place)
	if err != nil {
		return "", explain(GrepTool, path, err)
	}
	// A context of its own: if only grepTime is over, the matches so far are the answer.
	short, stop := context.WithTimeout(ctx, grepTime)
	defer stop()
	if info.IsDir() {
		err = s.dir(short, place)
	} else {
		err = s.file(short, place, info)
	}
	switch {
	case ctx.Err() != nil:
		return "", ended(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		s.stopped = fmt.Sprintf("stopped after %s", grepTime)
	case err != nil && !errors.Is(err, errEnough):
		return "", explain(GrepTool, path, err)
	}
	return s.text(), nil
}

var errEnough = errors.New("enough")

// search is a search in progress.
type search struct {
	w       *Workspace
	call    *tool.Call
	pattern *regexp.Regexp
	glob    *regexp.Regexp // nil for every file
	longest int            // how many bytes of a line are searched

	found   strings.Builder
	matches int
	files   int // files with a match
	stopped string
	// how many files or lines were left out, and why
	binary, large, secret, unread, long int
	told                                time.Time
}

func newSearch(w *Workspace, call *tool.Call, in grepArgs) (*search, error) {
	if in.Pattern == "" || len(in.Pattern) > maxPattern {
		return nil, refuse(GrepTool, "pattern has 1 to %d bytes", maxPattern)
	}
	weight := schemacost.PatternWeight(in.Pattern)
	if weight > maxWeight {
		return nil, refuse(GrepTool, "pattern repeats too much")
	}
	flags := "(?m)"
	if in.IgnoreCase {
		flags = "(?mi)"
	}
	pattern, err := regexp.Compile(flags + in.Pattern)
	if err != nil {
		return nil, refuse(GrepTool, "pattern: %v", err)
	}
	s := &search{w: w, call: call, pattern: pattern, longest: maxWork / max(weight, 1), told: time.Now()}
	if in.Glob != "" {
		if s.glob, err = compileGlob(in.Glob); err != nil {
			return nil, refuse(GrepTool, "glob %s: %v", shown(in.Glob), err)
		}
	}
	return s, nil
}

func (s *search) dir(ctx context.Context, dir string) error {
	names, _, err := s.w.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		place := filepath.Join(dir, name)
		info, err := s.w.root.Lstat(place)
		switch {
		case err != nil:
			s.unread++
			continue
		// Counted but not named: the model sees that something was left out.
		// Before the kind: a protected directory is not entered at all.
		case s.w.protected(place):
			s.secret++
			continue
		case info.IsDir() && slices.Contains(skipped, name):
			continue
		case info.IsDir():
			err = s.dir(ctx, place)
		case info.Mode().IsRegular():
			err = s.file(ctx, place, info)
		}
		switch {
		case errors.Is(err, errEnough) || ctx.Err() != nil:
			return err
		case err != nil:
			s.unread++
		}
	}
	return nil
}

func (s *search) file(ctx context.Context, place string, info fs.FileInfo) error {
	if s.glob != nil && !s.glob.MatchString(slashed(place)) {
		return nil
	}
	if info.Size() > maxGrepFile {
		s.large++
		return nil
	}
	f, _, err := s.w.open(GrepTool, place, place)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxGrepFile))
	if err != nil {
		return err
	}
	// A NUL near the beginning marks a binary file; git does it the same way.
	if bytes.IndexByte(text[:min(len(text), sniff)], 0) >= 0 {
		s.binary++
		return nil
	}
	if s.call != nil && time.Since(s.told) > progressEvery {
		s.told = time.Now()
		s.call.Progress("searching %s: %s", slashed(place), count(s.matches, "match", "matches"))
	}
	return s.lines(ctx, slashed(place), text)
}

// lines adds the lines of a file that match.
func (s *search) lines(ctx context.Context, name string, text []byte) error {
	any, searched := false, 0 // since it was last asked whether to stop
	for number := 1; len(text) > 0; number++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > s.longest {
			line, s.long = line[:s.longest], s.long+1
		}
		// Ask the context after so much work, not after so many lines: lines differ in
		// length.
		if searched += len(line) + 1; searched > s.longest/16 {
			if searched = 0; ctx.Err() != nil {
				return ctx.Err()
			}
		}
		at := s.pattern.FindIndex(line)
		if at == nil {
			continue
		}
		if s.matches == maxMatches || s.found.Len() > maxGrep {
			s.stopped = fmt.Sprintf("these are the first %d; narrow the pattern, the path or the glob", s.matches)
			return errEnough
		}
		if !any {
			any, s.files = true, s.files+1
		}
		s.matches++
		fmt.Fprintf(&s.found, "\n%s:%d: %s", name, number, around(line, at[0]))
	}
	return nil
}

// around returns the part of a line around the beginning of a match.
func around(line []byte, at int) string {
	if len(line) <= maxLine {
		return clean(line)
	}
	from := max(0, min(at-maxLine/3, len(line)-maxLine))
	return "…" + clean(line[from:from+maxLine]) + "…"
}

// text returns the answer. It begins with what was left out: a result that is cut keeps
// its beginning.
func (s *search) text() string {
	notes := []string{count(s.matches, "match", "matches") + " in " + count(s.files, "file", "files")}
	if s.stopped != "" {
		notes = append(notes, s.stopped)
	}
	for _, n := range []struct {
		count int
		what  string
	}{
		{s.binary, "binary"}, {s.secret, "protected"}, {s.unread, "unreadable"}, {s.large, "larger than " + size(maxGrepFile)},
		{s.long, "ends of long lines"},
	} {
		if n.count > 0 {
			notes = append(notes, fmt.Sprintf("left out: %d %s", n.count, n.what))
		}
	}
	return "[" + strings.Join(notes, "; ") + "]" + s.found.String()
}
