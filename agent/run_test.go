package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The set of statuses is closed: eight, the last four of which are ends. A crash
// is none of them (HX-49).
func TestStatuses(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "run.go", nil, 0)
	require.NoError(t, err)
	var all, ends []Status
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := c.Type.(*ast.Ident); ok && kind.Name == "Status" {
			text, err := strconv.Unquote(c.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			s := Status(text)
			require.True(t, s.Known(), s)
			if all = append(all, s); s.Ended() {
				ends = append(ends, s)
			}
		}
		return false
	})
	require.Equal(t, []Status{"pending", "running", "suspending", "suspended", "completed", "failed", "cancelled", "stopped"}, all)
	require.Equal(t, all[4:], ends)
	for _, s := range []Status{"", "crashed", "interrupted", "paused"} {
		require.False(t, s.Known(), s)
	}
}
