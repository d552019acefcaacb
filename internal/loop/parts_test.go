package loop

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parts are the types of which the state is made, each with the files that may change its
// fields. A field's rules are found there and nowhere else.
var parts = map[string][]string{
	"Origin": {"origin.go"}, "Log": {"log.go"}, "Turn": {"turn.go"}, "Repeat": {"turn.go"}, "Calls": {"calls.go"}, "Call": {"calls.go"}, "Checks": {"checks.go"}, "Proposal": {"checks.go"}, "CurrentCheck": {"checks.go"}, "Flow": {"flow.go"},
	"Budget": {"budget.go"}, "Ledger": {"ledger.go"}, "TaskLoad": {"taskload.go"}, "ParentAccount": {"ledger.go"}, "Account": {"ledger.go"}, "Messages": {"messages.go"}, "Artifacts": {"artifacts.go"}, "Skills": {"skills.go"}, "ActiveSkill": {"skills.go"}, "Notebook": {"notebook.go"}, "PendingMessage": {"messages.go"}, "Daemon": {"daemon.go"}, "Holds": {"holds.go"},
	"Requests": {"requests.go"}, "Request": {"requests.go"}, "Decided": {"requests.go"}, "Park": {"park.go"}, "MetCondition": {"park.go"},
	"Suspensions": {"suspensions.go"}, "OpenSuspension": {"suspensions.go"}, "Parent": {"parent.go"}, "LastReport": {"parent.go"}, "Children": {"children.go"}, "Child": {"children.go"},
	"Verbs": {"verbs.go"}, "ProcessedVerb": {"verbs.go"}, "End": {"end.go", "stop.go"}, "RunReport": {"runreport.go"}, "Grace": {"end.go"}, "Stopping": {"stop.go"},
	"Recovery": {"recovery.go"}, "FailureCount": {"recovery.go"}, "Failure": {"recovery.go"}, "Lessons": {"lessons.go"}, "Loops": {"loops.go"}, "ResultCount": {"loops.go"}, "Adaptive": {"adaptive.go"},
}

func TestOnlyAPartsOwnFileChangesIt(t *testing.T) {
	code := typed(t)
	owners := map[types.Object]string{}
	for name := range parts {
		s, ok := code.pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		require.True(t, ok, name)
		for f := range s.Fields() {
			owners[f] = name
		}
	}
	for _, w := range code.writes() {
		if owner, ok := owners[w.field]; ok {
			require.Contains(t, parts[owner], w.file, "%s changes %s.%s", w.at, owner, w.field.Name())
		}
	}
}

// Each part of the state is one of parts, so that the test above knows it.
func TestThePartsAreAllOfTheState(t *testing.T) {
	code := typed(t)
	state := code.pkg.Scope().Lookup("State").Type().Underlying().(*types.Struct)
	for f := range state.Fields() {
		named, ok := f.Type().(*types.Named)
		if p, isPointer := f.Type().(*types.Pointer); isPointer {
			named, ok = p.Elem().(*types.Named)
		}
		if !ok || named.Obj().Pkg() != code.pkg {
			continue
		}
		if _, isStruct := named.Underlying().(*types.Struct); isStruct {
			require.Contains(t, parts, named.Obj().Name())
		}
	}
}

// A phase is never assigned: enter changes it, by its table.
func TestOnlyEnterChangesAPhase(t *testing.T) {
	for _, w := range typed(t).writes() {
		name := w.field.Type().String()
		if w.assigned && (name == "loop.RunPhase" || name == "loop.TurnPhase" || name == "loop.CallState") {
			require.Fail(t, "a phase is assigned", "%s: %s", w.at, w.field.Name())
		}
	}
}

// source is the package's code, without its tests.
type source struct {
	fset  *token.FileSet
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
}

func typed(t *testing.T) source {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	s := source{fset: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(s.fset, name, raw, parser.ParseComments)
		require.NoError(t, err)
		s.files = append(s.files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(s.fset, "source", nil)}
	s.pkg, err = config.Check("loop", s.fset, s.files, s.info)
	require.NoError(t, err)
	return s
}

// write is a place where a field is changed, or handed out to be changed.
type write struct {
	field    types.Object
	file     string
	at       string
	assigned bool // and not handed out
}

func (s source) writes() (all []write) {
	add := func(e ast.Expr, assigned bool) {
		for i, field := range s.fieldsIn(e) {
			at := s.fset.Position(e.Pos())
			all = append(all, write{field, at.Filename, fmt.Sprintf("%s:%d", at.Filename, at.Line), assigned && i == 0})
		}
	}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						add(e, true)
					}
				}
			case *ast.IncDecStmt:
				add(n.X, true)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					add(n.X, false)
				}
			}
			return true
		})
	}
	return all
}

// fieldsIn are the fields on the way to what an expression names: a.B.C[i].D is a write to
// B, C and D.
func (s source) fieldsIn(e ast.Expr) (fields []types.Object) {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if v, ok := s.info.Uses[e.Sel].(*types.Var); ok && v.IsField() {
			fields = append(fields, v)
		}
		return slices.Concat(fields, s.fieldsIn(e.X))
	case *ast.IndexExpr:
		return s.fieldsIn(e.X)
	case *ast.StarExpr:
		return s.fieldsIn(e.X)
	case *ast.ParenExpr:
		return s.fieldsIn(e.X)
	}
	return nil
}
