package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// table is output in columns. No cell can add a column or a line.
type table struct{ w *tabwriter.Writer }

func (c *cli) table(titles ...any) *table {
	t := &table{tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)}
	if len(titles) > 0 {
		t.row(titles...)
	}
	return t
}

// row adds a row.
func (t *table) row(cells ...any) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		shown[i] = strings.TrimRight(untrusted.Sprintf("%v", cell), " ")
	}
	fmt.Fprintln(t.w, strings.Join(shown, "\t"))
}

// field adds a row of a name and what it has.
func (t *table) field(name, format string, args ...any) {
	t.row(name, untrusted.Sprintf(format, args...))
}

// flush writes the rows.
func (t *table) flush() { _ = t.w.Flush() } // the outlet knows what can't be written
