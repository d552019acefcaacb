package render

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Table is output in columns. No cell can add a column or a line.
type Table struct{ w *tabwriter.Writer }

// Table starts output in columns.
func (s *Streams) Table(titles ...any) *Table {
	t := &Table{tabwriter.NewWriter(s.Out, 0, 8, 2, ' ', 0)}
	if len(titles) > 0 {
		t.Row(titles...)
	}
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...any) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		// Folded, so a cell's tab or newline can't add a cell or a row.
		shown[i] = strings.TrimRight(untrusted.Sprintf("%v", cell), " ")
	}
	fmt.Fprintln(t.w, strings.Join(shown, "\t"))
}

// Field adds a row of a name and its value.
func (t *Table) Field(name, format string, args ...any) {
	t.Row(name, untrusted.Sprintf(format, args...))
}

// Flush writes the rows.
func (t *Table) Flush() { _ = t.w.Flush() } // the output remembers write errors
