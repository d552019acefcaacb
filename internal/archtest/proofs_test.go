package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// proof is a comment that names rows, and the test that it belongs to.
type proof struct {
	name  string   // of the test
	path  string   // of its file, from the top of the tree
	where string   // the comment's place
	ids   []string // of rows
	fault string   // what is wrong with the comment, instead of ids
}

var (
	rowIDs = regexp.MustCompile(`\b(HL|OA|HX|HA|PA)-(\d+)(?: to (HL|OA|HX|HA|PA)-(\d+))?`)
	short  = regexp.MustCompile(`\b((?:HL|OA|HX|HA|PA)-\d+)(?: ?(?:to|and|,|–|/|-) ?)\d`)
	isTest = regexp.MustCompile(`^(Test|Example|Fuzz)`)
)

// named reads the rows that a comment names: each in full, several in a row as
// "A-08 to A-12", where both ends are whole ids.
func named(comment string) (ids []string, fault string) {
	comment = strings.Join(strings.Fields(comment), " ")
	if cut := short.FindStringSubmatch(comment); cut != nil {
		return nil, fmt.Sprintf("what follows on %s is cut short: write every id in full, a range as %[1]s to %s…", cut[1], cut[1][:3])
	}
	for _, m := range rowIDs.FindAllStringSubmatch(comment, -1) {
		first, last := number(m[2]), number(m[2])
		if m[3] != "" {
			last = number(m[4])
		}
		if m[3] != "" && m[3] != m[1] || first > last {
			return nil, fmt.Sprintf("%s is no range", m[0])
		}
		for n := first; n <= last; n++ {
			ids = append(ids, fmt.Sprintf("%s-%02d", m[1], n))
		}
	}
	return ids, ""
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the pattern has digits only
	return n
}

// proofs reads the comments of all tests, and the prose of the machine's
// scenarios, each of which is a test.
func proofs(t *testing.T) (out []proof) {
	t.Helper()
	for _, s := range tree(t) {
		if s.test {
			out = append(out, inSource(s)...)
		}
	}
	stories, err := filepath.Glob("../../internal/loop/testdata/*.txtar")
	require.NoError(t, err)
	for _, path := range stories {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if ids, fault := named(string(txtar.Parse(data).Comment)); ids != nil || fault != "" {
			rel := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			out = append(out, proof{strings.TrimSuffix(filepath.Base(path), ".txtar"), rel, rel, ids, fault})
		}
	}
	return out
}

// inSource finds the comments of a file that name rows: above a test or in it.
// Anywhere else they prove nothing.
func inSource(s source) (out []proof) {
	for _, group := range s.file.Comments {
		ids, fault := named(group.Text())
		if ids == nil && fault == "" {
			continue
		}
		p := proof{path: s.path, where: fmt.Sprintf("%s:%d", s.path, s.fset.Position(group.Pos()).Line), ids: ids, fault: fault}
		if p.name = testAt(s.file, group); p.name == "" && fault == "" {
			p.fault = ids[0] + " stands in no test: name it in the comment of the test that proves it"
		}
		out = append(out, p)
	}
	return out
}

// testAt is the test that a comment stands above or in.
func testAt(file *ast.File, group *ast.CommentGroup) string {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !isTest.MatchString(f.Name.Name) {
			continue
		}
		if f.Doc == group || f.Pos() <= group.Pos() && group.End() <= f.End() {
			return f.Name.Name
		}
	}
	return ""
}

// Ids are read from a test's comments, and from nowhere else.
func TestConformanceComments(t *testing.T) {
	const code = `package a

// A helper (HL-01).
func help() {}

// It holds (HL-02, HL-04 to HL-06), over
// lines too: HA-100 to
// HA-101. X-03 and UTF-8 are no rows.
func TestHold(t *testing.T) {
	// OA-07
}

// Cut short: HL-08 to 10.
func TestShort(t *testing.T) {}

// Wrong: HL-09 to HL-08.
func TestWrong(t *testing.T) {}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a_test.go", code, parser.ParseComments)
	require.NoError(t, err)
	require.Equal(t, []proof{
		{"", "a_test.go", "a_test.go:3", []string{"HL-01"}, "HL-01 stands in no test: name it in the comment of the test that proves it"},
		{"TestHold", "a_test.go", "a_test.go:6", []string{"HL-02", "HL-04", "HL-05", "HL-06", "HA-100", "HA-101"}, ""},
		{"TestHold", "a_test.go", "a_test.go:10", []string{"OA-07"}, ""},
		{"TestShort", "a_test.go", "a_test.go:13", nil, "what follows on HL-08 is cut short: write every id in full, a range as HL-08 to HL-…"},
		{"TestWrong", "a_test.go", "a_test.go:16", nil, "HL-09 to HL-08 is no range"},
	}, inSource(source{path: "a_test.go", file: file, fset: fset}))
}
