package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/tool/workspace"
)

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "short", lines(1, 3))
	b.put(t, "no-end", "one\ntwo")
	b.put(t, "empty", "")
	b.put(t, "long", lines(1, 5000))
	b.put(t, "crlf", "a\r\nb\r\n")
	require.Equal(t, lines(1, 3), b.ok(t, "fs_read", args{"path": "short"}))
	require.Equal(t, "one\ntwo", b.ok(t, "fs_read", args{"path": "no-end"}))
	require.Equal(t, "a\r\nb\r\n", b.ok(t, "fs_read", args{"path": "crlf"}))
	require.Equal(t, "[empty is empty]", b.ok(t, "fs_read", args{"path": "empty"}))
	require.Equal(t, "[long: lines 1 to 2000 of 48.9 kB; read on with from_line=2001]\n"+lines(1, 2000), b.ok(t, "fs_read", args{"path": "long"}))
	require.Equal(t, "[long: lines 10 to 11 of 48.9 kB; read on with from_line=12]\n"+lines(10, 11),
		b.ok(t, "fs_read", args{"path": "long", "from_line": 10, "lines": 2}))
	require.Equal(t, "[long: lines 4999 to 5000, the last]\n"+lines(4999, 5000), b.ok(t, "fs_read", args{"path": "long", "from_line": 4999}))
	require.Equal(t, "[no-end: lines 2 to 2, the last]\ntwo", b.ok(t, "fs_read", args{"path": "no-end", "from_line": 2}))
	b.refused(t, "fs_read", args{"path": "short", "from_line": 4}, "short has only 3 lines")
	b.refused(t, "fs_read", args{"path": "short", "from_line": -1}, "count from 1")
	b.refused(t, "fs_read", args{"file": "short"}, "")
}

func TestReadPagesJoinToTheFile(t *testing.T) {
	b := setup(t, nil)
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "%d %s\n", i, strings.Repeat("é", i%97))
	}
	b.put(t, "file", text.String())
	var got strings.Builder
	for from, more := 1, true; more; {
		answer := b.ok(t, "fs_read", args{"path": "file", "from_line": from})
		require.LessOrEqual(t, len(answer), 65<<10)
		note, page, _ := strings.Cut(answer, "\n")
		got.WriteString(page)
		_, next, found := strings.Cut(note, "from_line=")
		if more = found; found {
			_, err := fmt.Sscanf(next, "%d", &from)
			require.NoError(t, err)
		}
	}
	require.Equal(t, text.String(), got.String())
}

func TestReadOddFiles(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "binary", "\x7fELF\x00\x01")
	b.put(t, "latin", "caf\xe9\n")
	b.put(t, "wide", strings.Repeat("é", 50_000)+"\nnext\n")
	b.refused(t, "fs_read", args{"path": "binary"}, "binary is a binary file of 6 B")
	require.Equal(t, "[latin is not UTF-8: characters that can't be shown are replaced]\ncaf\uFFFD\n", b.ok(t, "fs_read", args{"path": "latin"}))
	wide := b.ok(t, "fs_read", args{"path": "wide"})
	require.Contains(t, wide, "[wide: the first 65536 bytes of line 1, which is too long for an answer; read on with from_line=2]")
	require.NotContains(t, wide, "\uFFFD")
	require.Equal(t, "[wide: lines 2 to 2, the last]\nnext\n", b.ok(t, "fs_read", args{"path": "wide", "from_line": 2}))
}

func TestVeryLargeFile(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "sparse", "first\n")
	require.NoError(t, os.Truncate(filepath.Join(b.root, "sparse"), 64<<30))
	b.refused(t, "fs_read", args{"path": "sparse"}, "is a binary file of 68.7 GB")
	require.Contains(t, b.ok(t, "fs_grep", args{"pattern": "first"}), "left out: 1 larger than 8.4 MB")
	b.refused(t, "fs_write", args{"path": "sparse", "old": "first", "new": "x"}, "too large to edit")

	// A text that never ends is left when nobody waits any more.
	b.put(t, "text", strings.Repeat("a", 8192))
	require.NoError(t, os.Truncate(filepath.Join(b.root, "text"), 64<<30))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.doContext(ctx, "fs_read", args{"path": "text", "from_line": 2}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestList(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "b.txt", "12345")
	b.put(t, "a/c.txt", "")
	b.put(t, "a/deep/d.txt", strings.Repeat("x", 1234))
	b.put(t, ".git/config", "")
	b.put(t, "a/node_modules/m/index.js", "")
	b.link(t, "a/c.txt", "link")
	b.put(t, "odd\nname", "")
	require.Equal(t, `[the workspace: 5 entries]
.git/
a/
b.txt  5 B
link -> a/c.txt
"odd\nname"  0 B`, b.ok(t, "fs_list", args{}))
	require.Equal(t, `[the workspace: 9 entries]
.git/  (not listed)
a/
a/c.txt  0 B
a/deep/
a/deep/d.txt  1.2 kB
a/node_modules/  (not listed)
b.txt  5 B
link -> a/c.txt
"odd\nname"  0 B`, b.ok(t, "fs_list", args{"depth": 4}))
	require.Equal(t, "[.git: 1 entry]\n.git/config  0 B  (protected)", b.ok(t, "fs_list", args{"path": ".git"}))
	require.Equal(t, "[a/node_modules: 2 entries]\na/node_modules/m/\na/node_modules/m/index.js  0 B",
		b.ok(t, "fs_list", args{"path": "a/node_modules", "depth": 2}))
	b.refused(t, "fs_list", args{"depth": 11}, "depth is 1 to 10")
}

func TestListIsBounded(t *testing.T) {
	b := setup(t, nil)
	for i := range 600 {
		b.put(t, fmt.Sprintf("many/f%04d", i), "")
	}
	text := b.ok(t, "fs_list", args{"path": "many"})
	require.Contains(t, text, "[many: the first 500 entries; more were left out")
	require.Equal(t, 501, len(strings.Split(text, "\n")))
}

func TestGrep(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "a.go", "package a\nfunc Hello() {}\r\n")
	b.put(t, "sub/b.go", "package b\n// hello there\n")
	b.put(t, "sub/c.txt", "hello\n")
	b.put(t, "bin", "hello\x00")
	b.put(t, ".git/x", "hello\n")
	b.put(t, "node_modules/x", "hello\n")
	b.link(t, "sub/c.txt", "link")
	require.Equal(t, "[2 matches in 2 files; left out: 1 binary]\nsub/b.go:2: // hello there\nsub/c.txt:1: hello", b.ok(t, "fs_grep", args{"pattern": "hello"}))
	require.Equal(t, "[2 matches in 2 files]\na.go:2: func Hello() {}\nsub/b.go:2: // hello there",
		b.ok(t, "fs_grep", args{"pattern": "hello", "ignore_case": true, "glob": "*.go"}))
	require.Equal(t, "[1 match in 1 file]\nsub/b.go:2: // hello there", b.ok(t, "fs_grep", args{"pattern": "hello$|hello t", "path": "sub/b.go"}))
	require.Equal(t, "[1 match in 1 file]\nsub/c.txt:1: hello", b.ok(t, "fs_grep", args{"pattern": "^hello$", "path": "sub", "glob": "sub/**/*.txt"}))
	require.Equal(t, "[0 matches in 0 files]", b.ok(t, "fs_grep", args{"pattern": "nothing", "path": "sub"}))
	b.refused(t, "fs_grep", args{"pattern": "("}, "missing closing )")
	b.refused(t, "fs_grep", args{"pattern": ""}, "pattern has 1 to 1000 bytes")
	b.refused(t, "fs_grep", args{"pattern": "x", "glob": "["}, "without its ]")
	b.refused(t, "fs_grep", args{"pattern": "x", "glob": "{a"}, "without its }")
}

func TestGrepIsBounded(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "many", strings.Repeat("hit\n", 1000))
	b.put(t, "wide", strings.Repeat("x", 10_000)+"needle"+strings.Repeat("é", 10_000))
	text := b.ok(t, "fs_grep", args{"pattern": "hit"})
	require.Contains(t, text, "[200 matches in 1 file; these are the first 200; narrow")
	require.Equal(t, 201, len(strings.Split(text, "\n")))
	text = b.ok(t, "fs_grep", args{"pattern": "needle"})
	require.Contains(t, text, "xneedleé")
	require.Less(t, len(text), 400)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.doContext(ctx, "fs_grep", args{"pattern": "x"}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// A pattern that takes long for each character is refused, or keeps a search no longer than it
// says: within a line nobody can stop it.
func TestGrepIsBoundedWithinALine(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "long", strings.Repeat("a", 7<<20)+"needle\nshort needle\n")
	b.refused(t, workspace.GrepTool, args{"pattern": "(?:.?.?.?.?.?.?.?.?.?.?.?){1000}$"}, "repeats too much")
	out := b.ok(t, workspace.GrepTool, args{"pattern": "(?:a?b?c?d?e?){1000}needle"})
	require.Contains(t, out, "left out: 1 ends of long lines")
	require.Contains(t, out, "long:2: short needle")
	require.Contains(t, b.ok(t, workspace.GrepTool, args{"pattern": "needle"}), "long:1: ")
}

func TestWriteWhole(t *testing.T) {
	b := setup(t, nil)
	require.Equal(t, "a/b/c.txt: created, 2 lines, 7 B", b.ok(t, "fs_write", args{"path": "a/b/c.txt", "content": "one\ntwo"}))
	require.Equal(t, "a/b/c.txt: written, 1 line, 4 B (it had 7 B)", b.ok(t, "fs_write", args{"path": "a/b/c.txt", "content": "new\n"}))
	require.Equal(t, "new\n", b.get(t, "a/b/c.txt"))
	require.Equal(t, "empty: created, 0 lines, 0 B", b.ok(t, "fs_write", args{"path": "empty", "content": ""}))
	entries, err := os.ReadDir(filepath.Join(b.root, "a/b"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "a temporary file was left")
	for _, in := range []args{
		{"path": "x"}, {"path": "x", "old": "a"}, {"path": "x", "new": "a"}, {"path": "x", "content": "a", "old": "b", "new": "c"},
		{"path": "x", "content": "a", "new": "c"},
	} {
		b.refused(t, "fs_write", in, "give either content, or both old and new")
	}
	require.NoFileExists(t, filepath.Join(b.root, "x"))
}

func TestWritePart(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "f", "one\ntwo\nthree\ntwo and a half\n")
	require.Equal(t, "f: replaced 1 line by 2 lines at line 3, now 29 B", b.ok(t, "fs_write", args{"path": "f", "old": "three", "new": "3\n3.1"}))
	require.Equal(t, "one\ntwo\n3\n3.1\ntwo and a half\n", b.get(t, "f"))
	b.ok(t, "fs_write", args{"path": "f", "old": "one\n", "new": ""})
	require.Equal(t, "two\n3\n3.1\ntwo and a half\n", b.get(t, "f"))

	b.put(t, "crlf", "a\r\nb\r\n")
	b.put(t, "overlap", "aaa")
	b.refused(t, "fs_write", args{"path": "f", "old": "two", "new": "2"}, "old occurs in f more than once (lines 1, 4)")
	b.refused(t, "fs_write", args{"path": "overlap", "old": "aa", "new": "2"}, "more than once (lines 1, 1)")
	b.refused(t, "fs_write", args{"path": "f", "old": "four", "new": "4"}, "old is not in f")
	b.refused(t, "fs_write", args{"path": "crlf", "old": "a\nb", "new": "c"}, "CR LF")
	b.refused(t, "fs_write", args{"path": "f", "old": "", "new": "x"}, "old is empty")
	b.refused(t, "fs_write", args{"path": "f", "old": "3", "new": "3"}, "the same")
	b.refused(t, "fs_write", args{"path": "nowhere", "old": "a", "new": "b"}, "does not exist")
	require.Equal(t, "two\n3\n3.1\ntwo and a half\n", b.get(t, "f"))
}

func TestWriteKeepsModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	b := setup(t, nil)
	b.put(t, "run.sh", "#!/bin/sh\n")
	b.put(t, "fixed", "text")
	require.NoError(t, os.Chmod(filepath.Join(b.root, "run.sh"), 0o750))
	require.NoError(t, os.Chmod(filepath.Join(b.root, "fixed"), 0o444))
	b.ok(t, "fs_write", args{"path": "run.sh", "content": "#!/bin/sh\necho\n"})
	b.ok(t, "fs_write", args{"path": "run.sh", "old": "echo", "new": "true"})
	info, err := os.Stat(filepath.Join(b.root, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode())
	b.refused(t, "fs_write", args{"path": "fixed", "content": "x"}, "fixed is read-only")
}

// A reader never sees half a file.
func TestWriteIsAtomic(t *testing.T) {
	b := setup(t, nil)
	one, two := strings.Repeat("1", 100_000), strings.Repeat("2", 100_000)
	b.put(t, "f", one)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			b.do("fs_write", args{"path": "f", "content": []string{one, two}[i%2]})
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		text := b.get(t, "f")
		require.True(t, text == one || text == two, "half a file of %d bytes", len(text))
	}
}
