package loop

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// parts are the types of which the state is made, each with the files that may change its
// fields. A field's rules are found there and nowhere else.
var parts = map[string][]string{
	"Origin": {"origin.go"}, "Log": {"log.go"}, "Turn": {"turn.go"}, "Repeat": {"turn.go"}, "Calls": {"calls.go"}, "Call": {"calls.go"}, "Checks": {"checks.go"}, "Proposal": {"checks.go"}, "CurrentCheck": {"checks.go"}, "Hooks": {"hooks.go"}, "HookedCalls": {"hooks.go"}, "Flow": {"flow.go"},
	"Budget": {"budget.go"}, "Ledger": {"ledger.go"}, "TaskLoad": {"taskload.go"}, "ParentAccount": {"ledger.go"}, "Account": {"ledger.go"}, "Messages": {"messages.go"}, "Artifacts": {"artifacts.go"}, "Skills": {"skills.go"}, "ActiveSkill": {"skills.go"}, "Notebook": {"notebook.go"}, "Progress": {"progress.go"}, "PendingMessage": {"messages.go"}, "Daemon": {"daemon.go"}, "Watch": {"watch.go"}, "Holds": {"holds.go"},
	"Requests": {"requests.go"}, "Request": {"requests.go"}, "Decided": {"requests.go"}, "Late": {"late.go"}, "ExpiredRequest": {"late.go"}, "Park": {"park.go"}, "MetCondition": {"park.go"},
	"Suspensions": {"suspensions.go"}, "OpenSuspension": {"suspensions.go"}, "SuspensionEnd": {"suspensions.go"}, "Refreshing": {"refreshpolicy.go"}, "SuspensionHooks": {"suspensionhooks.go"}, "PendingResume": {"suspensionhooks.go"}, "ToldResume": {"suspensionhooks.go"}, "Parent": {"parent.go"}, "LastReport": {"parent.go"}, "Children": {"children.go"}, "Child": {"children.go"},
	"Verbs": {"verbs.go"}, "ProcessedVerb": {"verbs.go"}, "UnansweredInterrupt": {"holds.go"}, "End": {"end.go", "stop.go"}, "RunReport": {"runreport.go"}, "Workspace": {"workspace.go"}, "Grace": {"end.go"}, "Stopping": {"stop.go"},
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
	wholes := wholeParts(code)
	for _, w := range code.writes() {
		if owner, ok := owners[w.field]; ok {
			require.Contains(t, parts[owner], w.file, "%s changes %s.%s", w.at, owner, w.field.Name())
		}
		if owner, ok := wholes[w.field]; ok && w.whole {
			require.Contains(t, slices.Concat(parts[owner], []string{"state.go", "import.go"}), w.file, "%s changes all of %s", w.at, owner)
		}
	}
}

// wholeParts are the fields of the state that are parts, with the part's name. state.go copies them, and
// import.go takes them from another cluster's state.
func wholeParts(code source) map[types.Object]string {
	wholes := map[types.Object]string{}
	for f := range code.pkg.Scope().Lookup("State").Type().Underlying().(*types.Struct).Fields() {
		name := f.Type().String()
		if name = name[strings.LastIndexByte(name, '.')+1:]; parts[name] != nil {
			wholes[f] = name
		}
	}
	return wholes
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
		if w.assigned && isPhase(w.field) {
			require.Fail(t, "a phase is assigned", "%s: %s", w.at, w.field.Name())
		}
	}
	code := typed(t)
	first := []string{"RunNew", "TurnReady", "CallPending"} // where a machine begins
	for _, f := range code.files {
		ast.Inspect(f, func(n ast.Node) bool {
			set, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			if key, ok := set.Key.(*ast.Ident); ok {
				if v, ok := code.info.Uses[key].(*types.Var); ok && v.IsField() && isPhase(v) {
					value, _ := set.Value.(*ast.Ident)
					require.True(t, value != nil && slices.Contains(first, value.Name), "%s begins in the middle of a machine", code.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// isPhase reports whether a field is the phase of a machine.
func isPhase(field types.Object) bool {
	return slices.Contains([]string{"loop.RunPhase", "loop.TurnPhase", "loop.CallState"}, field.Type().String())
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
	s, err := typedOnce()
	require.NoError(t, err)
	return s
}

// typedOnce reads the code once for all tests: it checks the types of all that the package imports.
var typedOnce = sync.OnceValues(func() (s source, err error) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		return s, err
	}
	s = source{fset: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.fset, name, nil, parser.ParseComments)
		if err != nil {
			return s, err
		}
		s.files = append(s.files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(s.fset, "source", nil)}
	s.pkg, err = config.Check("loop", s.fset, s.files, s.info)
	return s, err
})

// write is a place where a field is changed, or handed out to be changed.
type write struct {
	field    types.Object
	file     string
	at       string
	assigned bool // and not handed out
	whole    bool // the field itself, and not a field or element of it
}

// inPlace are the functions that change their first argument.
var inPlace = []string{
	"clear", "copy", "delete", "slices.Sort", "slices.SortFunc", "slices.SortStableFunc", "slices.Reverse", "slices.Delete", "slices.DeleteFunc", "slices.Insert", "slices.Replace",
	"slices.Compact", "slices.CompactFunc", "maps.Copy", "maps.DeleteFunc",
}

func (s source) writes() (all []write) {
	add := func(e ast.Expr, assigned bool) {
		for i, field := range s.fieldsIn(e) {
			at := s.fset.Position(e.Pos())
			all = append(all, write{field, at.Filename, fmt.Sprintf("%s:%d", at.Filename, at.Line), assigned && i == 0, i == 0})
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
			case *ast.CallExpr:
				if len(n.Args) > 0 && slices.Contains(inPlace, types.ExprString(n.Fun)) {
					add(n.Args[0], false)
				}
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
	case *ast.SliceExpr:
		return s.fieldsIn(e.X)
	}
	return nil
}
