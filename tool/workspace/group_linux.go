package workspace

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// await waits for the end of a command and leaves it to be reaped, so that its
// group's number can't be another's yet.
func await(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

func reap(cmd *exec.Cmd) { cmd.Wait() }

// killStrays ends what has left the group of a command but still has its cookie.
func killStrays(mark string) {
	want := []byte(cookie + "=" + mark)
	// What is killed may just have started another one. Against a program that
	// does nothing else there is no end, hence the bound.
	for range 50 {
		if !killMarked(want) {
			return
		}
	}
}

func killMarked(want []byte) (found bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !marked(pid, want) {
			continue
		}
		// The handle holds the process while it is looked at again.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if marked(pid, want) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			found = true
		}
		unix.Close(fd)
	}
	return found
}

// marked reports whether a process has the cookie. One that has ended has no environment.
func marked(pid int, want []byte) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for pair := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(pair, want) {
			return true
		}
	}
	return false
}
