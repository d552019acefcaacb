package confine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Await waits for the end of the program itself. It leaves it to be reaped by
// [Program.End], so that its group's number can't be another's yet.
func (p *Program) Await() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

func reap(cmd *exec.Cmd) { cmd.Wait() }

// bounds are what a program may take, beside what this process' own limits allow. There is
// none on memory: race detectors and runtimes reserve far more than they use.
var bounds = []struct {
	resource int
	most     uint64
}{
	{unix.RLIMIT_CORE, 0}, // memory may hold secrets of the workspace
	{unix.RLIMIT_NPROC, 8192},
	{unix.RLIMIT_FSIZE, 16 << 30},
}

// firstTaken makes the kernel end a program that takes all memory, and not this process.
const firstTaken = "800"

// Marks are times of real-time scheduling, in microseconds: at least 36,000 years.
const leastMark = 1 << 60

// bound sets a program's limits, and its mark, which it returns; zero where it has none.
// A program that forks in its first moment has children without: whoever lets others write
// a program keeps it waiting until it is bounded.
func bound(pid int) (mark uint64) {
	for _, b := range bounds {
		var own unix.Rlimit
		if unix.Prlimit(pid, b.resource, nil, &own) == nil {
			_ = unix.Prlimit(pid, b.resource, &unix.Rlimit{Cur: min(own.Cur, b.most), Max: min(own.Max, b.most)}, nil) // else as it was
		}
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(firstTaken), 0) // else as it was
	mark = leastMark + rand.Uint64N(leastMark)
	if unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark}, nil) != nil {
		return 0 // this process has a limit of its own, or is held itself
	}
	return mark
}

// sweepTime is how long ends may take that nothing hinders.
const sweepTime = 5 * time.Second

// Sweep ends what has the program's mark, whatever it did with its group, its session and
// its environment. It returns what still runs.
func (p *Program) Sweep() []Left {
	// What is killed may just have started another one, and takes a moment to end.
	until := time.Now().Add(sweepTime)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left := p.signalMarked(unix.SIGKILL, 0)
		if len(left) == 0 || time.Now().After(until) {
			return left
		}
		time.Sleep(pause)
	}
}

// signalMarked sends a signal to what has the program's mark and has not ended, but for one
// process, and returns all that has it.
func (p *Program) signalMarked(s unix.Signal, but int) (left []Left) {
	entries, err := os.ReadDir("/proc")
	if err != nil || p.mark == 0 {
		return nil
	}
	want := strconv.FormatUint(p.mark, 10)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == but || !marked(pid, want) {
			continue
		}
		// The handle holds the process while it is looked at again.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if marked(pid, want) {
			if name, runs := state(pid); runs {
				_ = unix.PidfdSendSignal(fd, s, nil, 0) // looked at again
				left = append(left, Left{pid, name})
			} else if pid != p.cmd.Process.Pid {
				// An orphan of which this process, being the first of its container, is the parent.
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // else it is another's to reap
			}
		}
		unix.Close(fd)
	}
	return left
}

// marked reports whether a process has a mark.
func marked(pid int, want string) bool {
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return false
	}
	_, line, _ := bytes.Cut(limits, []byte("Max realtime timeout"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	fields := strings.Fields(string(line))
	return len(fields) > 1 && fields[1] == want // the hard limit
}

// state is the name of a process, and whether it has not ended yet.
func state(pid int) (name string, runs bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	_, rest, _ := strings.Cut(string(stat), " (")
	at := strings.LastIndex(rest, ") ")
	if at < 0 || at+2 >= len(rest) {
		return "", false
	}
	return rest[:at], rest[at+2] != 'Z' && rest[at+2] != 'X'
}
