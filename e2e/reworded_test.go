package e2e

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/testenv"
)

// worded are the packages whose sentences a run may read or keep, with the library whose
// errors it tells.
var worded = []string{"../agent", "../internal/durable", "../internal/loop", "../internal/excerpt", "../internal/match", "../internal/toolcall", "../internal/window", "../handoff", "../signals", "../workflows", "encoding/json"}

// more makes every sentence longer than any threshold would forgive.
var more = " (" + strings.Repeat("said in other words, ", 50) + "and at length)"

// No wording decides anything: a build that has other words for every sentence and error of
// the runtime, and of the JSON library, replays all recorded histories.
func TestAnotherWordingReplaysAllHistories(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	texts, sentences := map[string][]byte{}, 0
	for _, pkg := range worded {
		if !strings.HasPrefix(pkg, "..") {
			root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
			require.NoError(t, err)
			pkg = filepath.Join(strings.TrimSpace(string(root)), "src", pkg)
		}
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		require.NoError(t, err)
		before := sentences
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, n := reword(t, path)
			texts[path] = text
			sentences += n
		}
		require.Greater(t, sentences, before, "%s has no sentence: has it moved?", pkg)
	}
	require.Greater(t, sentences, 500)
	said, err := replaysOver(t, overlay(t, texts))
	require.NoError(t, err, said)
	require.Contains(t, said, "ok")
}

// reword returns a file with longer sentences: texts with a space that are no tags, no
// JSON and no layouts of times.
func reword(t *testing.T, path string) (text []byte, sentences int) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			return n.Tag == nil
		case *ast.BasicLit:
			said, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil || !sentence(said) {
				return true
			}
			n.Value = strconv.Quote(said + more)
			sentences++
		}
		return true
	})
	var b strings.Builder
	require.NoError(t, format.Node(&b, fset, file))
	return []byte(b.String()), sentences
}

func sentence(s string) bool {
	return strings.Contains(strings.TrimSpace(s), " ") && !strings.ContainsAny(s, "{}<>`\"")
}
