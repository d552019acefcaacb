package confine

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

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
	mark = newMark()
	if unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark}, nil) != nil {
		return 0 // this process has a limit of its own, or is held itself
	}
	return mark
}

// Sweep ends what has the program's mark, whatever it did with its group, its session and
// its environment. It returns what still runs.
func (p *Program) Sweep() []Left {
	if p.mark == 0 {
		return nil
	}
	return sweep(func() []Left {
		return killMarked(func(pid int) bool { return markOf(pid) == p.mark }, p.cmd.Process.Pid)
	})
}

// killMarked kills the processes that are marked, and returns those that still ran. program
// is not reaped: who awaits it does that.
func killMarked(marked func(pid int) bool, program int) (left []Left) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !marked(pid) {
			continue
		}
		// The handle holds the process while it is looked at again.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if marked(pid) {
			if name, runs := state(pid); runs {
				if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != unix.EPERM { // another user's to end
					left = append(left, Left{pid, name})
				}
			} else if pid != program {
				// An orphan of which this process, being the first of its container, is the parent.
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // else it is another's to reap
			}
		}
		unix.Close(fd)
	}
	return left
}

// state is the name of a process, and whether it has not ended yet.
func state(pid int) (name string, runs bool) {
	name, fields := stat(pid)
	return name, len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// terminateMarked asks what has the program's mark to end, but for its head.
func (p *Program) terminateMarked() {
	for _, pid := range p.marked() {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if pid != p.cmd.Process.Pid && markOf(pid) == p.mark { // looked at again, while the handle holds it
			_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0) // it may have ended
		}
		unix.Close(fd)
	}
}

// marked are the processes that have the program's mark.
func (p *Program) marked() (list []int) {
	entries, _ := os.ReadDir("/proc") // what was read until then
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && p.mark != 0 && markOf(pid) == p.mark {
			list = append(list, pid)
		}
	}
	return list
}
