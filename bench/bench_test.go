package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test binary is its own worker, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workCommand {
		main()
		return
	}
	m.Run()
}

// A small tree is measured on both sides, goes on after one interrupt and is
// stopped after the next. What it takes is not looked at.
func TestTree(t *testing.T) {
	o := &treeOptions{sizes: []int{7}, workers: []int{2}, reps: 2, progress: io.Discard}
	r, err := o.run(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.verdict(false))
	for _, side := range []string{sideBare, sideOurs} {
		require.Len(t, r.Cells[0].Samples[side], 2)
		for _, s := range r.Cells[0].Samples[side] {
			for _, m := range measures {
				require.Positive(t, m.of(s), "%s: %s: %s", side, m.name, s)
			}
		}
	}
	var table bytes.Buffer
	require.NoError(t, r.show(&table, false))
	require.Contains(t, table.String(), "root suspended")
}
