package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every command has a line in the help of the root, in a group, and an example of its own.
func TestHelp(t *testing.T) {
	names := append(everyCommand(), append(groups(), "")...)
	for _, name := range names {
		t.Run("fermata "+name, func(t *testing.T) {
			args, file := append(strings.Fields(name), "--help"), cmp.Or(strings.ReplaceAll(name, " ", "_"), "fermata")
			r := inProcess(t, args...)
			require.Zero(t, r.exit)
			require.Empty(t, r.err)
			require.Contains(t, r.out, "Examples:")
			path := filepath.Join("testdata", "help", file+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(r.out), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), r.out, "go test -update writes it anew")
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "help", "*.txt"))
	require.NoError(t, err)
	require.Len(t, files, len(names), "a command that is gone has no help")
	require.NotContains(t, inProcess(t, "--help").out, "Additional Commands:", "every command is in a group")
}

func TestVersion(t *testing.T) {
	r := inProcess(t, "version")
	require.Zero(t, r.exit)
	require.Contains(t, r.out, "fermata ")
	require.Contains(t, r.out, "Temporal SDK v")
	short := inProcess(t, "--version")
	require.Zero(t, short.exit)
	require.Equal(t, version.Program()+"\n", short.out)
}
