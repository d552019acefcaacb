package main

import (
	"os"
	"os/exec"
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
	b := setup(t)
	b.write("fermata.yaml", "agents: {a: {model: \"script:s.yaml\"}}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	_, command := b.asNobody()
	dev := command("dev", "--addr", b.addr)
	p := b.started(nil, dev)
	p.until("ready")
	environ := "/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/environ"
	cat := func(path string) error {
		cmd := exec.Command("cat", path)
		cmd.SysProcAttr = dev.SysProcAttr
		return cmd.Run()
	}
	require.NoError(t, cat("/proc/self/environ"))
	require.Error(t, cat(environ))
	p.end(syscall.SIGTERM)
}
