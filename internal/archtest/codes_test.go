package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

const pages = "../../docs/errors"

// codes reads the constants of type Code from their source, by their Go names.
func codes(t *testing.T) map[string]agent.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../agent/code.go", nil, 0)
	require.NoError(t, err)
	all := map[string]agent.Code{}
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, s := range block.Specs {
			c := s.(*ast.ValueSpec)
			if kind, ok := c.Type.(*ast.Ident); !ok || kind.Name != "Code" {
				continue
			}
			text, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			all[c.Names[0].Name] = agent.Code(text)
		}
	}
	require.Equal(t, agent.Codes(), slices.Sorted(maps.Values(all)), "the constants and the table of classes")
	return all
}

// figures are how a code leaves the process, as the pages show it.
func figures(c agent.Code) string {
	again := "no"
	if c.Retryable() {
		again = "yes"
	}
	return fmt.Sprintf("| %d | %d | %s |", c.ExitStatus(), c.HTTPStatus(), again)
}

// Every code has a page and a row in the table of all, which tell its exit status
// and its HTTP status as they are; and no page is about what is no code (HL-113,
// HX-88, OA-66, OA-117).
func TestEveryCodeHasItsPage(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(pages, "README.md"))
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(pages, "*.md"))
	require.NoError(t, err)
	rows := 0
	for _, c := range codes(t) {
		path := filepath.Join(pages, string(c)+".md")
		page, err := os.ReadFile(path)
		require.NoError(t, err, "code %s has no page", c)
		require.True(t, strings.HasPrefix(string(page), "# "+string(c)+"\n"), "%s does not begin with the code", path)
		require.Contains(t, string(page), "\n"+figures(c)+"\n", path)
		lines := strings.Count(string(page), "\n")
		require.True(t, lines >= 10 && lines <= 25, "%s has %d lines; a page has 10 to 25", path, lines)
		require.Contains(t, string(table), fmt.Sprintf("\n| [%s](%s.md) %s ", c, c, figures(c)), "docs/errors/README.md")
		left = slices.DeleteFunc(left, func(l string) bool { return l == path })
		rows++
	}
	require.Equal(t, []string{filepath.Join(pages, "README.md")}, left, "pages without a code")
	require.Equal(t, rows, strings.Count(string(table), "\n| ["), "rows of docs/errors/README.md")
}

// Names of other systems stand beside codes that exist; the four categories of suspensions and
// the five kinds of failures of a graph are among them (OA-12, OA-66, OA-109).
func TestNamesElsewhere(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(pages, "README.md"))
	require.NoError(t, err)
	_, rows, found := strings.Cut(string(table), "\n| there | here |\n|---|---|\n")
	require.True(t, found)
	here := map[string][]agent.Code{}
	for row := range strings.Lines(rows) {
		cells := strings.Split(row, " | ")
		require.Len(t, cells, 2, row)
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			for _, code := range regexp.MustCompile(`\[(\w+)\]\((\w+)\.md\)`).FindAllStringSubmatch(cells[1], -1) {
				require.Equal(t, code[1], code[2], row)
				require.Contains(t, agent.Codes(), agent.Code(code[1]), row)
				here[name[1]] = append(here[name[1]], agent.Code(code[1]))
			}
			require.NotEmpty(t, here[name[1]], row)
		}
	}
	for name, code := range map[string]agent.Code{
		"suspension_persistence_failed":     agent.CodeStoreUnavailable,
		"suspension_record_invalid":         agent.CodeNotSuspended,
		"suspension_resume_payload_invalid": agent.CodeInvalidInput,
		"suspension_in_unsupported_context": agent.CodeInvalidInput,
		"node_exception":                    agent.CodeStepFailed,
		"edge_exception":                    agent.CodeFlowFailed,
		"reducer_error":                     agent.CodeJoinFailed,

		"harness_session_id_unresolved":         agent.CodeNotFound,
		"harness_path_classification_ambiguous": agent.CodeAmbiguous,
	} {
		require.Equal(t, []agent.Code{code}, here[name], name)
	}
	require.Equal(t, []agent.Code{agent.CodeUnknownTool, agent.CodeUnknownAgent, agent.CodeUnknownModel}, here["routing_error"])
	require.Equal(t, []agent.Code{agent.CodeBadOutput, agent.CodeInvalidInput}, here["state_validation_error"])
	require.Equal(t, []agent.Code{agent.CodeInvalidInput, agent.CodeStoreUnavailable}, here["harness_signal_subscription_failed"])
	require.Equal(t, []agent.Code{agent.CodeStale, agent.CodeNotSuspended}, here["harness_signal_correlation_failed"])
}

// Every code is met by a test. Those that none meets yet are listed, and only those
// (HL-113).
func TestEveryCodeIsMetByATest(t *testing.T) {
	all := codes(t)
	met := map[agent.Code]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "../.." || d.Name() == "archtest") {
			return filepath.SkipDir
		}
		test, story := strings.HasSuffix(path, "_test.go"), strings.Contains(filepath.ToSlash(path), "/testdata/")
		if d.IsDir() || !test && !story {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for name, c := range all {
			if met[c] || !bytes.Contains(data, []byte(c)) && !bytes.Contains(data, []byte("agent."+name)) {
				continue // most files say nothing of most codes
			}
			met[c] = test && mentions(string(data), name, c) || story && tells(string(data), c)
		}
		return nil
	})
	require.NoError(t, err)
	for _, c := range all {
		require.True(t, met[c], "no test meets %s", c)
	}
}

// mentions reports whether a test speaks of a code, by its Go name or as a string.
func mentions(source, name string, c agent.Code) bool {
	return regexp.MustCompile(`\bagent\.` + name + `\b|"` + string(c) + `"`).MatchString(source)
}

// tells reports whether a story, a history or a golden file has a code in a place
// where codes stand: many are words that are said of other things too.
func tells(data string, c agent.Code) bool {
	return regexp.MustCompile(`"(code|reason|type)": ?"` + string(c) + `"|\b(refused|failed|fails|error|: )\[? ?` + string(c) + `\b`).MatchString(data)
}

// The example on a code's page is a message that the source can make (HL-113).
func TestEveryExampleIsAMessage(t *testing.T) {
	forms := messages(t)
	for name, c := range codes(t) {
		page, err := os.ReadFile(filepath.Join(pages, string(c)+".md"))
		require.NoError(t, err)
		example := regexp.MustCompile("(?s)```text\n(.*?)\n```").FindStringSubmatch(string(page))
		require.NotNil(t, example, "docs/errors/%s.md has no example", c)
		require.True(t, slices.ContainsFunc(forms[name], func(form *regexp.Regexp) bool { return form.MatchString(example[1]) }),
			"docs/errors/%s.md: nothing in the source says %q", c, example[1])
	}
}

var formatVerb = regexp.MustCompile(`%[+#]?[vwsdqTx]`)

// messages collects the formats of errors, by the Go name of their code, as
// patterns. A format that is little more than its verbs tells nothing.
func messages(t *testing.T) map[string][]*regexp.Regexp {
	t.Helper()
	const least = 10 // bytes
	forms := map[string][]*regexp.Regexp{}
	for _, s := range tree(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			name, text := message(n)
			if len(formatVerb.ReplaceAllString(text, "")) >= least {
				var parts []string
				for _, plain := range formatVerb.Split(text, -1) {
					parts = append(parts, regexp.QuoteMeta(plain))
				}
				forms[name] = append(forms[name], regexp.MustCompile(`(?s)`+strings.Join(parts, ".*")))
			}
			return true
		})
	}
	return forms
}

// message reads a code's name and a format, the longest text, from a call such as
// Errorf(agent.CodeStale, "…") or from the literal of an Error.
func message(n ast.Node) (name, text string) {
	var fields []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		fields = n.Args
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				fields = append(fields, kv.Value)
			}
		}
	}
	for _, f := range fields {
		if sum, ok := f.(*ast.BinaryExpr); ok {
			f = sum.X
		}
		switch f := f.(type) {
		case *ast.SelectorExpr:
			if of, ok := f.X.(*ast.Ident); ok && of.Name == "agent" && name == "" {
				name = f.Sel.Name
			}
		case *ast.BasicLit:
			if said, err := strconv.Unquote(f.Value); err == nil && f.Kind == token.STRING && len(said) > len(text) {
				text = said
			}
		}
	}
	if strings.HasPrefix(name, "Fault") {
		name = "CodeProviderError" // model.Fault makes it one
	}
	return name, text
}
