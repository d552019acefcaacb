package render

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// table is output in columns. No cell can add a column or a line.
type table struct{ w *tabwriter.Writer }

// Table begins output in columns.
func (s *Streams) Table(titles ...any) *table {
	t := &table{tabwriter.NewWriter(s.Out, 0, 8, 2, ' ', 0)}
	if len(titles) > 0 {
		t.Row(titles...)
	}
	return t
}

// Row adds a row.
func (t *table) Row(cells ...any) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		shown[i] = strings.TrimRight(untrusted.Sprintf("%v", cell), " ")
	}
	fmt.Fprintln(t.w, strings.Join(shown, "\t"))
}

// Field adds a row of a name and what it has.
func (t *table) Field(name, format string, args ...any) {
	t.Row(name, untrusted.Sprintf(format, args...))
}

// Flush writes the rows.
func (t *table) Flush() { _ = t.w.Flush() } // the outlet knows what can't be written
