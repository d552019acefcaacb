package loop

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
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
	for name, body := range map[string]string{"parts": partsTable(t), "machines": machines(t), "rules": ruleTable(t), "obstacles": obstacleTable(), "policies": policyTable(t)} {
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

// The page says of each phase in which a run can be cancelled what a cancel does there.
func TestThePageSaysWhatACancelDoesInEachPhase(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(raw), "### A cancel meets each phase")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n### ")
	var named []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z_, ]+?)(?: in progress)? \|`).FindAllStringSubmatch(section, -1) {
		named = append(named, strings.Split(strings.ReplaceAll(row[1], ", or a stop", ""), ", ")...)
	}
	phases := []string{"phase", "ready"} // the table's head, and the first phase of a turn
	for p := range runTransitions {
		if p != RunNew && p != RunActive {
			phases = append(phases, string(p))
		}
	}
	for p := range turnTransitions {
		if p != TurnReady {
			phases = append(phases, string(p))
		}
	}
	require.ElementsMatch(t, phases, named)
}

// ruleTable lists the rules with their conditions in words. Prose that names a rule (rule
// "…") names one of these.
func ruleTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| | rule | when | in |\n|---|---|---|---|\n")
	known := map[string]bool{}
	for i, r := range rules {
		require.NotEmpty(t, r.cond, r.name)
		known[r.name] = true
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", i+1, r.name, r.cond, carriedOut(r))
	}
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`rule "([^"]+)"`).FindAllSubmatch(raw, -1) {
		require.True(t, known[string(m[1])], "the page names a rule that there is not: %s", m[1])
	}
	return b.String()
}

// carriedOut says which function carries a rule out, and where that is.
func carriedOut(r rule) string {
	f := runtime.FuncForPC(reflect.ValueOf(r.then).Pointer())
	file, _ := f.FileLine(f.Entry())
	file = "`" + filepath.Base(file) + "`"
	if _, method, ok := strings.Cut(f.Name(), "(*step)."); ok {
		return file + " `" + method + "`"
	}
	return file
}

// obstacleTable lists what prevents a call from beginning.
func obstacleTable() string {
	var b strings.Builder
	b.WriteString("| what prevents it | until |\n|---|---|\n")
	for _, o := range obstacles {
		fmt.Fprintf(&b, "| %s | %s |\n", o.what, o.until)
	}
	return b.String()
}

func machines(t *testing.T) string {
	code := typed(t)
	return machine(code, "A run", runTransitions, RunNew) + "\n" + machine(code, "A turn", turnTransitions, TurnReady) + "\n" + machine(code, "A call", callTransitions, CallPending)
}

// machine draws a table of transitions, and writes it out with what each phase means.
func machine[P ~string](code source, title string, moves transitions[P], first P) string {
	name := func(p P) string {
		return cmp.Or(string(p), map[string]string{"A run": "new", "A turn": "ready"}[title])
	}
	means := code.remarks(strings.TrimPrefix(fmt.Sprintf("%T", first), "loop."))
	var drawn, rows strings.Builder
	fmt.Fprintf(&drawn, "**%s**\n\n```mermaid\nstateDiagram-v2\n    [*] --> %s\n", title, name(first))
	rows.WriteString("| phase | what it means | next |\n|---|---|---|\n")
	order := inOrder(moves, first)
	ends := func(p P) bool { return len(moves[p]) == 0 }
	order = slices.Concat(slices.DeleteFunc(slices.Clone(order), ends), slices.DeleteFunc(order, func(p P) bool { return !ends(p) }))
	for _, from := range order {
		var names []string
		for _, to := range moves[from] {
			names = append(names, name(to))
			fmt.Fprintf(&drawn, "    %s --> %s\n", name(from), name(to))
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", name(from), means[string(from)], cmp.Or(strings.Join(names, ", "), "nothing"))
	}
	return drawn.String() + "```\n\n" + rows.String()
}

// remarks are the comments behind the constants of a type, by the constants' values.
func (s source) remarks(typeName string) map[string]string {
	all := map[string]string{}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typeName {
				return true
			}
			value, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			if text, err := strconv.Unquote(value.Value); err == nil {
				all[text] = strings.TrimSpace(spec.Comment.Text())
			}
			return true
		})
	}
	return all
}

// inOrder lists the phases of a machine, as a run meets them.
func inOrder[P ~string](moves transitions[P], first P) (order []P) {
	for queue := []P{first}; len(queue) > 0; queue = queue[1:] {
		if p := queue[0]; !slices.Contains(order, p) {
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
	b.WriteString("| part | file | what it does |\n|---|---|---|\n")
	for _, name := range stateParts(code) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", name, strings.Join(parts[name], "`, `"), said(code, name))
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

// said is what the first sentence of a part's comment says it does.
func said(code source, name string) string {
	for _, f := range code.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Doc == nil || len(g.Specs) != 1 {
				continue
			}
			if spec, ok := g.Specs[0].(*ast.TypeSpec); ok && spec.Name.Name == name {
				sentence := new(doc.Package).Synopsis(g.Doc.Text())
				return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(sentence, name+" is "), "the part that "), ".")
			}
		}
	}
	return ""
}
