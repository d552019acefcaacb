package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/fermata-agents/fermata"

// packages lists every folder with Go code and which packages it may import. A new
// folder needs a row here and a reason in docs/decisions.
var packages = map[string][]string{
	// Below agent: what knows no type of ours.
	"internal/amount":     {},
	"internal/glob":       {},
	"internal/rawjson":    {},
	"internal/excerpt":    {},
	"internal/inner":      {},
	"internal/w3ctrace":   {},
	"internal/schemacost": {},
	"internal/value":      {},
	"internal/picture":    {},
	"internal/filebody":   {},
	"internal/partial":    {"internal/rawjson"},

	// Just above agent: what the runtime's own parts share and no user reads or writes.
	"internal/remembered": {"agent"},
	"internal/wire":       {"agent"},

	"agent":              {"internal/rawjson", "internal/amount", "internal/glob", "internal/w3ctrace"},
	"keyring":            {"agent"},
	"roles":              {"agent"},
	"internal/match":     {},
	"internal/confine":   {"agent", "tool"},
	"internal/worktree":  {"agent"},
	"internal/play":      {"agent", "tool", "internal/wire"},
	"flow":               {"agent", "model", "tool", "internal/play", "internal/value", "internal/wire"},
	"internal/flowfile":  {"agent", "model", "tool", "flow", "internal/match"},
	"internal/loop":      {"agent", "internal/match", "internal/rawjson", "internal/amount", "internal/glob", "internal/excerpt", "internal/w3ctrace", "internal/remembered", "internal/wire"},
	"internal/durable":   {"agent", "keyring", "internal/rawjson"},
	"model":              {"agent", "internal/rawjson", "internal/schemacost", "internal/excerpt"},
	"internal/toolcall":  {"agent"},
	"tool":               {"agent", "internal/toolcall"},
	"store":              {"agent", "keyring", "internal/remembered"},
	"observe":            {"agent", "model", "tool"},
	"internal/observers": {"agent", "model", "tool", "observe"},
	"audit":              {"agent"},
	"live":               {"agent"},
	"internal/journal":   {"agent", "store", "internal/remembered", "internal/wire"},
	"internal/window":    {"agent", "store"},
	"internal/memory":    {"agent", "store"},
	"internal/export":    {"agent", "store", "signals", "internal/loop", "internal/remembered"},
	"signals":            {"agent", "keyring", "internal/durable", "internal/match", "internal/schemacost", "internal/remembered", "internal/wire"},
	"agents":             {"agent", "signals", "internal/durable", "internal/value"},
	"handoff":            {"agent", "signals", "internal/durable", "internal/excerpt"},
	"activities":         {"agent", "model", "tool", "skill", "store", "keyring", "live", "internal/observers", "signals", "handoff", "internal/durable", "internal/loop", "internal/play", "internal/journal", "internal/window", "internal/export", "internal/toolcall", "internal/rawjson", "internal/schemacost", "internal/amount", "internal/glob", "internal/excerpt", "internal/remembered", "internal/wire", "internal/picture", "internal/memory"},
	"workflows":          {"agent", "agents", "internal/match", "internal/loop", "internal/durable", "observe", "internal/observers", "signals", "handoff", "activities", "internal/w3ctrace", "internal/wire"},
	"client":             {"agent", "keyring", "store", "internal/journal", "internal/export", "internal/partial", "live", "signals", "handoff", "internal/durable", "internal/w3ctrace", "internal/remembered", "internal/wire"},
	"callback":           {"agent", "client"},
	"worker":             {"agent", "model", "tool", "skill", "flow", "internal/play", "store", "live", "observe", "internal/observers", "signals", "internal/durable", "internal/loop", "internal/match", "internal/window", "internal/memory", "handoff", "activities", "workflows", "roles", "internal/wire"},
	"testsuite":          {"agent", "flow", "internal/play", "internal/value", "internal/toolcall", "model", "tool", "store", "signals", "internal/durable", "internal/loop", "handoff", "activities", "workflows", "client", "worker", "internal/wire"},
	"skill":              {"agent"},
	"tool/lock":          {"agent", "tool"},
	"tool/workspace":     {"agent", "tool", "internal/confine", "internal/worktree", "internal/schemacost"},
	"tool/web":           {"agent", "tool", "internal/inner"},
	"tool/mcp":           {"agent", "tool", "skill", "internal/confine", "internal/inner", "internal/rawjson", "internal/schemacost"},
	"provider/anthropic": {"agent", "model", "internal/filebody"},
	"provider/azure":     {"agent", "model", "provider/openai"},
	"provider/bedrock":   {"agent", "model"},
	"provider/gemini":    {"agent", "model"},
	"provider/openai":    {"agent", "model", "internal/filebody", "internal/rawjson"},
	"provider/vertex":    {"agent", "model", "provider/anthropic", "provider/gemini"},
	"store/postgres":     {"agent", "store"},
	"store/bucket":       {"agent", "store"},
	"live/nats":          {"agent", "keyring", "live"},
	"telemetry":          {"agent", "model", "tool", "observe", "internal/w3ctrace"},
	"devserver":          {"agent"},
	"cmd/fermata":        anything,
	"examples":           anything,
	"e2e":                anything,
	"bench":              anything,
	"tools":              anything,
	"internal/archtest":  {},
	"internal/standin":   {"agent", "model"},
	"internal/testenv":   {},

	"store/postgres/pgtest": {},
	"testsuite/conformance": {"agent", "internal/toolcall", "model", "tool", "store"},

	"testsuite/eval":         {"agent", "internal/durable", "model", "testsuite", "testsuite/eval/grade"},
	"testsuite/eval/grade":   {"agent", "internal/confine", "internal/excerpt", "internal/glob", "model", "tool"},
	"testsuite/eval/report":  {"agent", "testsuite/eval", "testsuite/eval/grade", "testsuite/eval/stats"},
	"testsuite/eval/evalrun": {"agent", "client", "internal/durable", "internal/excerpt", "model", "signals", "testsuite/eval", "testsuite/eval/grade"},
	"testsuite/eval/stats":   {},
}

var anything = []string{"*"}

// testOnly lists what a folder's tests may import beyond the folder's own row:
// tests look down from above.
var testOnly = map[string][]string{
	"workflows": {"testsuite", "tool", "skill", "store", "model", "flow", "worker", "internal/play", "internal/window"},
	"client":    {"worker", "testsuite", "tool", "model"},
	"callback":  {"signals"},
	"worker":    {"client", "testsuite", "tool/workspace"},
	"flow":      {"worker", "testsuite", "client"},

	"internal/flowfile": {"testsuite"},
	"store":             {"testsuite/conformance"},
	"agent":             {"model"},
	"testsuite":         {"testsuite/conformance", "internal/testenv", "skill", "observe"},

	"internal/journal": {"internal/play"},
	"internal/loop":    {"internal/testenv"},
	"store/postgres":   {"testsuite/conformance", "store/postgres/pgtest", "internal/testenv"},
	"store/bucket":     {"testsuite/conformance"},

	"provider/anthropic": {"testsuite/conformance", "internal/standin"},
	"provider/azure":     {"internal/standin"},
	"provider/bedrock":   {"testsuite/conformance", "internal/standin"},
	"provider/gemini":    {"testsuite/conformance", "internal/standin"},
	"provider/openai":    {"testsuite/conformance", "internal/standin"},
	"provider/vertex":    {"internal/standin"},
	"tool/mcp":           {"testsuite", "testsuite/conformance", "worker", "internal/testenv", "internal/toolcall"},
	"tool/workspace":     {"testsuite/conformance", "internal/testenv", "internal/toolcall"},
	"tool/web":           {"testsuite/conformance", "internal/toolcall"},
	"internal/confine":   {"internal/testenv"},

	"internal/archtest": {"agent"},

	"testsuite/conformance": {"internal/testenv"},
}

// Sizes that make a reader stop (counted in lines).
const (
	maxFile     = 400
	maxFunction = 60
)

// source is one parsed file.
type source struct {
	path   string // from the top of the tree
	folder string // its folder
	test   bool
	file   *ast.File
	fset   *token.FileSet
}

func tree(t *testing.T) []source {
	t.Helper()
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	var out []source
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != top || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{filepath.ToSlash(rel), filepath.ToSlash(filepath.Dir(rel)), strings.HasSuffix(path, "_test.go"), file, fset})
		return nil
	})
	require.NoError(t, err)
	return out
}

// row finds the row of a folder: its own, or that of the module above it.
func row(folder string) (string, []string, bool) {
	for r := folder; r != "."; r = filepath.ToSlash(filepath.Dir(r)) {
		if may, ok := packages[r]; ok && (r == folder || slices.Equal(may, anything)) {
			return r, may, true
		}
	}
	return "", nil, false
}

func TestEveryFolderHasItsRow(t *testing.T) {
	for _, s := range tree(t) {
		if _, _, ok := row(s.folder); !ok {
			t.Errorf("%s: %q is no package of ours: give it a row in internal/archtest and a reason in docs/decisions", s.path, s.folder)
		}
	}
}

func TestPackagesImportOnlyWhatTheirRowAllows(t *testing.T) {
	for _, s := range tree(t) {
		home, may, ok := row(s.folder)
		if !ok || slices.Equal(may, anything) {
			continue
		}
		if s.test {
			may = slices.Concat(may, testOnly[home], []string{home})
		}
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			other, ours := strings.CutPrefix(path, module+"/")
			if ours && !slices.Contains(may, other) {
				t.Errorf("%s imports %s; its row allows %s", s.fset.Position(spec.Pos()), other, strings.Join(may, ", "))
			}
		}
	}
}

func TestEveryPackageHasItsComment(t *testing.T) {
	has := map[string]bool{}
	for _, s := range tree(t) {
		if !s.test {
			has[s.folder] = has[s.folder] || strings.HasSuffix(s.path, "/doc.go") && s.file.Doc != nil
		}
	}
	for folder, ok := range has {
		if !ok {
			t.Errorf("%s has no doc.go with a package comment", folder)
		}
	}
}

func TestNothingGrowsTooLarge(t *testing.T) {
	for _, s := range tree(t) {
		if s.test {
			continue
		}
		if n := s.fset.Position(s.file.End()).Line; n > maxFile {
			t.Errorf("%s has %d lines; a file has at most %d", s.path, n, maxFile)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines; a function has at most %d", s.fset.Position(f.Pos()), f.Name.Name, n, maxFunction)
			}
		}
	}
}

// The workflows write no text that a model reads: internal/loop does.
func TestTheWorkflowsWriteNoText(t *testing.T) {
	literal := func(e ast.Expr) (has bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			has = has || ok && l.Kind == token.STRING
			return true
		})
		return has
	}
	for _, s := range tree(t) {
		if s.folder != "workflows" || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var to, value ast.Expr
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				to, value = n.Key, n.Value
			case *ast.AssignStmt: // several values at once are compared by what is last
				to, value = n.Lhs[len(n.Lhs)-1], n.Rhs[len(n.Rhs)-1]
			default:
				return true
			}
			if field, ok := to.(*ast.SelectorExpr); ok {
				to = field.Sel
			}
			if name, ok := to.(*ast.Ident); ok && name.Name == "Text" && literal(value) {
				t.Errorf("%s: a text that a model reads is written in internal/loop", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
}

func TestTheRootHasNoCode(t *testing.T) {
	for _, s := range tree(t) {
		if s.folder == "." {
			t.Errorf("%s: no Go file stands at the top", s.path)
		}
	}
}

// Leaf modules find the others by path until the first release, and the root
// needs none of them: whoever imports it gets nothing heavy.
func TestTheRootModuleIsLight(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	for _, heavy := range []string{"replace ", module + "/", "go.temporal.io/server", "anthropic-sdk-go", "openai-go", "google.golang.org/genai", "aws-sdk-go", "azure-sdk-for-go", "golang.org/x/oauth2", "modelcontextprotocol", "modernc.org", "go.opentelemetry.io"} {
		if strings.Contains(strings.TrimPrefix(string(data), "module "+module), heavy) {
			t.Errorf("the root's go.mod mentions %q", heavy)
		}
	}
}

// The README's program is the one that examples/hello tests.
func TestTheReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	program, err := os.ReadFile("../../examples/hello/main.go")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+string(program)+"```")
}

// The page about testing shows what examples/travel runs.
func TestThePageOnTestingShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	var program strings.Builder
	files, err := filepath.Glob("../../examples/travel/*.go")
	require.NoError(t, err)
	for _, f := range files {
		code, err := os.ReadFile(f)
		require.NoError(t, err)
		program.Write(code)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		require.Contains(t, program.String(), code)
	}
}
