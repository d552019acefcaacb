package e2e

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/testenv"
)

// worded returns the folders of the packages whose sentences a run may read or keep: all of ours that a
// workflow uses, and the library whose errors it tells.
func worded(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}} {{.Dir}}`, "../workflows")
	out, err := list.Output()
	require.NoError(t, err)
	var dirs []string
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(path, "github.com/fermata-agents/") || path == "encoding/json" {
			dirs = append(dirs, dir)
		}
	}
	require.Greater(t, len(dirs), 20)
	return dirs
}

// more makes every sentence longer than any threshold would forgive.
var more = " (" + strings.Repeat("said in other words, ", 50) + "and at length)"

// No wording decides anything: a build that has other words for every sentence and error of
// the runtime, and of the JSON library, replays all recorded histories, and decides in every story
// of the machine by the same sizes.
func TestAnotherWordingReplaysAllHistories(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	texts, sentences := map[string][]byte{}, 0
	for _, dir := range worded(t) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, n := reword(t, path)
			texts[path] = text
			sentences += n
		}
	}
	require.Greater(t, sentences, 1_500)
	other := overlay(t, texts)
	said, err := replaysOver(t, other)
	require.NoError(t, err, said)
	require.Contains(t, said, "ok")
	numbers := numbersOver(t, overlay(t, nil))
	require.Equal(t, numbers, numbersOver(t, other))

	// A machine that counts its own questions is found.
	weights, err := filepath.Abs("../internal/loop/weight.go")
	require.NoError(t, err)
	guard := " || ownContext(r) > 0 || handsOver(r)"
	require.Equal(t, 1, strings.Count(string(texts[weights]), guard))
	texts[weights] = []byte(strings.Replace(string(texts[weights]), guard, "", 1))
	require.NotEqual(t, numbers, numbersOver(t, overlay(t, texts)))
}

// numbersOver returns what the machine's stories decide on other texts, and by which sizes.
func numbersOver(t *testing.T, overlay string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "numbers")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-run", "^TestStories$", "-count=1", "../internal/loop", "-numbers", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	numbers, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(numbers)
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
