package loop

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = "../../docs/loop.md"

// The page on the machine shows the tables, rules and parts as the code has them; -update
// writes them anew.
func TestThePageOnTheMachine(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(raw)
	for name, body := range map[string]string{"parts": partsTable(t), "machines": machines(), "rules": ruleList()} {
		block := regexp.MustCompile(`(?s)(<!-- generated: ` + name + ` -->\n).*?(<!-- end -->)`)
		require.Regexp(t, block, text)
		text = block.ReplaceAllStringFunc(text, func(string) string {
			return "<!-- generated: " + name + " -->\n" + body + "<!-- end -->"
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
		return
	}
	require.Equal(t, text, string(raw), "run with -update and look at the difference")
}

func ruleList() string {
	var b strings.Builder
	for i, r := range rules {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r.name)
	}
	return b.String()
}

func machines() string {
	return machine("A run's life", lifeMoves, New) + "\n" + machine("A turn", turnMoves, Ready) + "\n" + machine("A call", callMoves, Waiting)
}

// machine draws a table of transitions, and writes it out.
func machine[P ~string](title string, moves transitions[P], first P) string {
	name := func(p P) string {
		return cmp.Or(string(p), map[string]string{"A run's life": "new", "A turn": "ready"}[title])
	}
	var drawn, rows strings.Builder
	fmt.Fprintf(&drawn, "**%s**\n\n```mermaid\nstateDiagram-v2\n    [*] --> %s\n", title, name(first))
	rows.WriteString("| from | to |\n|---|---|\n")
	for _, from := range inOrder(moves, first) {
		var names []string
		for _, to := range moves[from] {
			names = append(names, name(to))
			fmt.Fprintf(&drawn, "    %s --> %s\n", name(from), name(to))
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", name(from), strings.Join(names, ", "))
	}
	return drawn.String() + "```\n\n" + rows.String()
}

// inOrder lists the phases that lead somewhere, as a run meets them.
func inOrder[P ~string](moves transitions[P], first P) (order []P) {
	for queue := []P{first}; len(queue) > 0; queue = queue[1:] {
		if p := queue[0]; len(moves[p]) > 0 && !slices.Contains(order, p) {
			order = append(order, p)
			queue = slices.Concat(queue, moves[p])
		}
	}
	return order
}

// partsTable lists the parts of the state in its order, with the first sentence of each.
func partsTable(t *testing.T) string {
	code := typed(t)
	var b strings.Builder
	b.WriteString("| part | file | what it is |\n|---|---|---|\n")
	for _, name := range stateParts(code) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", name, parts[name][0], said(code, name))
	}
	return b.String()
}

func stateParts(code source) (names []string) {
	for _, f := range code.files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != "State" {
				return true
			}
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				e := field.Type
				if star, ok := e.(*ast.StarExpr); ok {
					e = star.X
				}
				if id, ok := e.(*ast.Ident); ok && parts[id.Name] != nil {
					names = append(names, id.Name)
				}
			}
			return false
		})
	}
	return names
}

// said is the first sentence of a type's comment, from "is" on.
func said(code source, name string) string {
	for _, f := range code.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Doc == nil || len(g.Specs) != 1 {
				continue
			}
			if spec, ok := g.Specs[0].(*ast.TypeSpec); ok && spec.Name.Name == name {
				sentence := new(doc.Package).Synopsis(g.Doc.Text())
				return strings.TrimSuffix(strings.TrimPrefix(sentence, name+" is "), ".")
			}
		}
	}
	return ""
}
