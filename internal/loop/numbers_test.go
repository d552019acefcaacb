package loop

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// writeNumbers writes what stories decide, and the sizes that they decide by: builds that differ only in
// the runtime's own words write the same.
func writeNumbers(t *testing.T, stories []string) {
	t.Helper()
	var out bytes.Buffer
	for _, path := range stories {
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		fmt.Fprintf(&out, "%s\n", path)
		p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		p.watch = func(_ State, _ Moment, in Input, done *step) {
			printNumbers(&out, in, done)
			if p.moved.Session == "" { // an imported request is measured by its text, which the file has
				fmt.Fprintf(&out, "  room for %d\n", done.State.space())
			}
		}
		for line := range strings.Lines(string(archive.Files[0].Data)) {
			if input, ok := strings.CutPrefix(line, "> "); ok {
				p.line(strings.TrimSpace(input))
			}
		}
	}
	require.NoError(t, os.WriteFile(*numbers, out.Bytes(), 0o600))
}

func printNumbers(out io.Writer, in Input, done *step) {
	s := done.State
	fmt.Fprintf(out, "%T: %s %s, turn %d, log %d %d %d, estimate %d", in, s.Phase, s.Turn.Phase, s.Turn.N, s.Log.Seq, s.Log.Bytes, s.Log.SealingSeq, s.Budget.BytesSince)
	for _, c := range s.Calls.List {
		fmt.Fprintf(out, ", %s %s %d %d %d", c.ID, c.State, c.Bytes, c.Size, c.ResultSize)
	}
	for _, c := range s.Children.List {
		fmt.Fprintf(out, ", %s %d", c.Session, c.jsonLen())
	}
	for _, e := range done.effects {
		fmt.Fprintf(out, " %T", e)
		if timer, ok := e.(SetTimer); ok {
			fmt.Fprintf(out, " %s", timer.At)
		}
	}
	fmt.Fprintln(out)
}
