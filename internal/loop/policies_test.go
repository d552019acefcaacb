package loop

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A policy decides only where the agent's definition names it. Its code has files of its own.
type policy struct {
	key   string   // what names it in the definition
	page  string   // in docs
	files []string // the first one has its part, if it has a state
}

var policies = []policy{
	{"`verify`", "verification.md", []string{"checks.go", "verify.go", "verdict.go", "cadence.go"}},
	{"`hooks.before_run`, `before_calls`, `after_turn`", "hooks.md", []string{"hooks.go", "hooktask.go", "hookskips.go", "turnhooks.go"}},
	{"`hooks` around a suspension and a resume", "holding.md#hooks", []string{"suspensionhooks.go", "hooksuspension.go", "hookresume.go"}},
	{"`refresh_on_resume`", "holding.md#new-instructions", []string{"refreshpolicy.go"}},
	{"`recovery`, `return_unable`", "recovery.md", []string{"recovery.go", "failures.go"}},
	{"`lessons`", "recovery.md", []string{"lessons.go"}},
	{"`loop_detection`", "recovery.md", []string{"loops.go"}},
	{"`limits.adaptive`", "limits.md#a-limit-that-adapts", []string{"adaptive.go"}},
	{"`skills`", "skills.md", []string{"skills.go"}},
	{"`notebook`", "memory.md", []string{"notebook.go"}},
	{"the tool `memory`", "memory.md", []string{"memory.go"}},
	{"`tool_search`", "tools.md#many-tools", []string{"toolsearch.go"}},
	{"`turn_policy`, `stop_after`, `text_calls`, `done_sentinel`", "agents.md#turns", []string{"turnform.go"}},
	{"the tool `report_progress`", "built-in-tools.md#progress", []string{"progress.go"}},
	{"the tool `wait_for_user`", "built-in-tools.md", []string{"waitforuser.go"}},
	{"a sub-agent's `workspace`", "delegation.md", []string{"workspace.go"}},
	{"`daemon.watch`", "daemons.md#files", []string{"watch.go"}},
	{"`stateless`", "sessions.md#agents-without-sessions", []string{"stateless.go"}},
	{"`report`", "agents.md#turns", []string{"runreport.go"}},
}

// calledBy names, by its first file, which policies may use a policy's code. Others know nothing of it.
var calledBy = map[string][]string{
	"checks.go":          {"hooks.go", "suspensionhooks.go"}, // a hook is a check at another point
	"hooks.go":           {"checks.go", "turnform.go"},
	"suspensionhooks.go": {"checks.go"},
	"recovery.go":        {"checks.go", "hooks.go", "lessons.go", "loops.go", "turnform.go"}, // what has failed, and what is done about it
	"loops.go":           {"turnform.go"},
	"lessons.go":         {"hooks.go", "recovery.go"},
	"adaptive.go":        {"hooks.go"}, // a hook may move the limit
	"turnform.go":        {"recovery.go", "runreport.go"},
	"runreport.go":       {"turnform.go"},
}

func TestAPolicyKnowsNoOther(t *testing.T) {
	for _, u := range policyUses(typed(t)) {
		by := policyOf(u.in)
		assert.True(t, by == "" || slices.Contains(calledBy[policyOf(u.of)], by), "%s uses %s, which is another policy's (%s)", u.in, u.name, u.of)
	}
}

// use is a place outside of a policy's files that uses what they declare.
type use struct{ of, in, name string }

func policyUses(code source) (all []use) {
	file := func(n interface{ Pos() token.Pos }) string {
		return filepath.Base(code.fset.Position(n.Pos()).Filename)
	}
	for _, f := range code.files {
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			declared := code.info.Uses[id]
			if declared == nil || declared.Pkg() != code.pkg {
				return true
			}
			of := file(declared)
			if v, ok := declared.(*types.Var); ok && v.IsField() {
				if part, ok := v.Type().(*types.Named); ok && part.Obj().Pkg() == code.pkg { // a policy's part in the state
					of = file(part.Obj())
				}
			}
			if policyOf(of) != "" && policyOf(of) != policyOf(file(f)) {
				all = append(all, use{of, file(f), id.Name})
			}
			return true
		})
	}
	return all
}

// policyOf returns the first file of the policy that a file belongs to; empty for the rest of the machine.
func policyOf(file string) string {
	for _, p := range policies {
		if slices.Contains(p.files, file) {
			return p.files[0]
		}
	}
	return ""
}

// policyTable lists the policies, and which other files of the machine use each.
func policyTable(t *testing.T) string {
	code := typed(t)
	users := map[string][]string{}
	for _, u := range policyUses(code) {
		if name := "`" + u.in + "`"; !slices.Contains(users[policyOf(u.of)], name) {
			users[policyOf(u.of)] = append(users[policyOf(u.of)], name)
		}
	}
	var b strings.Builder
	b.WriteString("| policy | its files | lines | used in |\n|---|---|---|---|\n")
	for _, p := range policies {
		lines := 0
		for _, f := range p.files {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			lines += strings.Count(string(raw), "\n")
		}
		used := users[p.files[0]]
		slices.Sort(used)
		fmt.Fprintf(&b, "| [%s](%s) | `%s` | %d | %s |\n", p.key, p.page, strings.Join(p.files, "`, `"), lines, strings.Join(used, ", "))
	}
	return b.String()
}
