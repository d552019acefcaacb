package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestHelp(t *testing.T) {
	for _, name := range []string{
		"", "demo", "dev", "worker", "run", "attach", "wait", "transcript", "events", "ls", "show", "tree", "setup", "doctor", "preflight", "version",
		"pause", "interrupt", "stop", "cancel", "resume", "send", "emit", "inbox", "answer", "approve", "reject", "token", "token key", "handoff", "runs", "checkpoints", "diff", "fork", "retry", "chat", "delete", "export", "import", "store", "store gc", "store check", "store rekey", "codec", "codec key", "schedule", "schedule create", "schedule ls", "schedule delete",
	} {
		t.Run("fermata "+name, func(t *testing.T) {
			args, file := []string{"--help"}, "fermata"
			if name != "" {
				args, file = append(strings.Fields(name), args...), strings.ReplaceAll(name, " ", "_")
			}
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
