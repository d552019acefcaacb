package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/devserver"
)

// composed is what is read of a service of docker-compose.yml.
type composed struct {
	Environment map[string]string
	Command     []string
	Healthcheck struct{ Test []string }
}

// The worker's container is healthy without any key, and what is run in it, as the file
// says, has the worker's store.
func TestTheContainerOfDockerCompose(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docker-compose.yml")
	require.NoError(t, err)
	var file struct{ Services map[string]composed }
	require.NoError(t, yaml.Unmarshal(text, &file))
	w := file.Services["worker"]

	b := setup(t)
	require.NoError(t, os.CopyFS(b.dir, os.DirFS("../../examples/agents")))
	bin := t.TempDir()
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(bin, "fermata")))
	inside := strings.NewReplacer("/agents/", b.dir+"/", "/data/", t.TempDir()+"/").Replace
	for _, name := range slices.Sorted(maps.Keys(w.Environment)) {
		value := inside(w.Environment[name])
		if strings.HasPrefix(value, "${") {
			value = "" // compose finds none either
		}
		b.env = append(b.env, name+"="+value)
	}
	b.env = append(b.env, "TEMPORAL_ADDRESS="+devserver.ForTest(t).Addr(), "PATH="+bin+":"+os.Getenv("PATH"))

	var command []string
	for _, word := range w.Command {
		command = append(command, inside(word))
	}
	worker := b.start(command...)
	worker.until("ready")

	require.Equal(t, "CMD-SHELL", w.Healthcheck.Test[0])
	var said bytes.Buffer
	check := exec.CommandContext(t.Context(), "sh", "-c", w.Healthcheck.Test[1])
	check.Dir, check.Env, check.Stdout, check.Stderr = b.dir, b.env, &said, &said
	require.NoError(t, check.Run(), "%s", &said)

	r := b.run("run", "greeter", "good morning")
	require.Zero(t, r.exit, r.err)
	require.NotContains(t, r.err, "warning")
	require.NotContains(t, r.out, "can't be followed")
	require.Zero(t, worker.end(syscall.SIGTERM).exit)
}
