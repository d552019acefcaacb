package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// word is how a comment names something of the code: camelCase, or a file.
	word = regexp.MustCompile(`\b(?:[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[a-z0-9_]+\.go)\b`)
	// begins is how a comment on a field names the field.
	begins = regexp.MustCompile(`^([A-Z][a-zA-Z0-9]*) (?:is|are|was|means|says|counts|holds|names|reports|lists|has|have)\b`)
)

// general are words that begin a comment on a field and name none.
var general = []string{"A", "An", "Each", "Empty", "It", "Nil", "None", "Nobody", "Nothing", "One", "That", "There", "They", "This", "What", "Which", "Who", "Whoever", "Zero"}

// foreign are names of other systems that comments cite.
var foreign = []string{"amountEUR", "macOS", "namespaceMinRetentionLocal", "vX"}

// TestCommentsNameWhatExists finds what a rename has left behind: who reads a comment
// searches for the names that it cites.
func TestCommentsNameWhatExists(t *testing.T) {
	sources := tree(t)
	known := map[string]bool{}
	for _, s := range sources {
		known[path.Base(s.path)] = true
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known[n.Name] = true
			case *ast.BasicLit: // names of other systems: wire fields, settings, tools
				for _, w := range word.FindAllString(n.Value, -1) {
					known[w] = true
				}
			}
			return true
		})
	}
	for _, w := range foreign {
		known[w] = true
	}
	for _, s := range sources {
		if s.test {
			continue
		}
		for _, c := range s.file.Comments {
			for _, w := range word.FindAllString(c.Text(), -1) {
				if !known[w] {
					t.Errorf("%s: %q names nothing", s.fset.Position(c.Pos()), w)
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if st, ok := n.(*ast.StructType); ok {
				for _, fault := range strangers(st) {
					t.Errorf("%s: %s", s.fset.Position(st.Pos()), fault)
				}
			}
			return true
		})
	}
	require.False(t, t.Failed(), "a comment cites a name that is not in the code: was it renamed?")
}

// strangers finds comments on fields that begin with the name of something else.
func strangers(st *ast.StructType) (faults []string) {
	var names []string
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
	}
	for _, f := range st.Fields.List {
		for _, c := range []*ast.CommentGroup{f.Doc, f.Comment} {
			m := begins.FindStringSubmatch(strings.TrimSpace(c.Text()))
			if m != nil && len(f.Names) > 0 && !slices.Contains(names, m[1]) && !slices.Contains(general, m[1]) {
				faults = append(faults, fmt.Sprintf("the comment on %s begins with %s", f.Names[0].Name, m[1]))
			}
		}
	}
	return faults
}
