package mcp

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// await waits for the end of a process and leaves it to be reaped, so that its
// group's number can't be another's yet.
func await(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

func reap(cmd *exec.Cmd) { cmd.Wait() }
