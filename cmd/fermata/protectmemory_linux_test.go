package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What else runs as the worker's user can't read its environment, where keys may be.
func TestOthersOfTheUserReadNoKeys(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("it takes root to be two processes of another user; sudo go test -run TestOthersOfTheUserReadNoKeys ./cmd/fermata")
	}
	const nobody = 65534
	b := setup(t)
	root := filepath.Dir(b.dir)
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	b.write("fermata.yaml", "agents: {a: {model: \"script:s.yaml\"}}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	program := filepath.Join(root, "fermata") // where nobody may go
	if err := os.Link(os.Args[0], program); err != nil {
		t.Skip("the test's program can't be linked to where others may run it:", err)
	}
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	}))
	asNobody := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	dev := b.command("dev", "--addr", b.addr)
	dev.Path, dev.Args[0] = program, program
	p := b.started(nil, asNobody(dev))
	p.until("ready")
	environ := "/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/environ"
	require.NoError(t, asNobody(exec.Command("cat", "/proc/self/environ")).Run())
	require.Error(t, asNobody(exec.Command("cat", environ)).Run())
	p.end(syscall.SIGTERM)
}
