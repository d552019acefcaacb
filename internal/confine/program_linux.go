package confine

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Await waits for the end of the program itself. [Program.End] reaps it, so until then no
// other process can get the number of its group.
func (p *Program) Await() {
	for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

func reap(cmd *exec.Cmd) { cmd.Wait() }

// bounds are a program's limits, besides this process's own. There is none on memory:
// race detectors and runtimes reserve far more than they use.
var bounds = []struct {
	resource int
	most     uint64
}{
	{unix.RLIMIT_CORE, 0}, // a core file may contain secrets of the workspace
	{unix.RLIMIT_NPROC, 8192},
	{unix.RLIMIT_FSIZE, 16 << 30},
}

// firstTaken makes the kernel end a program that takes all memory, and not this process.
const firstTaken = "800"

// niceness is the priority of programs. When processors are short, a process without it
// gets nine times as much time.
const niceness = 10

// bound sets a program's limits and its mark. It returns the mark, or zero if it could
// not set it. A program that forks in its first moment has children without limits. So
// the keeper waits until the program is bounded.
func bound(pid int) (mark uint64) {
	for _, b := range bounds {
		var own unix.Rlimit
		if unix.Prlimit(pid, b.resource, nil, &own) == nil {
			_ = unix.Prlimit(pid, b.resource, &unix.Rlimit{Cur: min(own.Cur, b.most), Max: min(own.Max, b.most)}, nil) // else it stays as it was
		}
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(firstTaken), 0) // else it stays as it was
	// The worker comes first: it must be able to end the program.
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness) // else it stays as it was
	mark = newMark()
	if unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark}, nil) != nil {
		return 0 // this process has such a limit itself, or is confined itself
	}
	return mark
}

// Sweep ends all that has the program's mark, whatever it did with its group, session and
// environment. It returns what still runs.
func (p *Program) Sweep() []Survivor {
	if p.mark == 0 {
		return nil
	}
	marked := func(pid int) bool { return markOf(pid) == p.mark }
	left := sweep(marked, p.cmd.Process.Pid, sweepTime)
	if len(left) > 0 {
		// Some hang in the kernel, or get no time. Nobody waits for these.
		go sweep(marked, p.cmd.Process.Pid, sweepOn)
	}
	return left
}

// processes returns the numbers of all processes.
func processes() (list []int) {
	entries, _ := os.ReadDir("/proc") // what was read so far
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// freeze stops marked processes until none is left that could start another one, or its
// time is up. Killing alone would only make room for those that they start.
func freeze(marked func(pid int) bool) {
	until, stopped := time.Now().Add(sweepTime), map[int]bool{}
	for more := true; more && time.Now().Before(until); {
		more = false
		for _, pid := range processes() {
			if !stopped[pid] && marked(pid) && signal(pid, marked, unix.SIGSTOP) == nil {
				stopped[pid], more = true, true
			}
		}
	}
}

// signal signals a process if it is marked.
func signal(pid int, marked func(pid int) bool, s unix.Signal) error {
	// The handle keeps the number from being used again between the check and the signal.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !marked(pid) {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, s, nil, 0)
}

// killMarked kills marked processes, and returns those that were still running. It does
// not reap program: its caller does.
func killMarked(marked func(pid int) bool, program int) (left []Survivor) {
	for _, pid := range processes() {
		if !marked(pid) {
			continue
		}
		name, runs := state(pid)
		switch {
		case runs && signal(pid, marked, unix.SIGKILL) != unix.EPERM: // else another user must end it
			left = append(left, Survivor{pid, name})
		case !runs && pid != program:
			// An orphan of which this process, being the first of its container, is the parent.
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // else another process must reap it
		}
	}
	return left
}

// state returns the name of a process, and whether it still runs.
func state(pid int) (name string, runs bool) {
	name, fields := stat(pid)
	return name, len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// terminateMarked asks all that has the program's mark to end, except for its first
// process.
func (p *Program) terminateMarked() {
	for _, pid := range p.marked() {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// Checked again now that the handle keeps the number.
		if pid != p.cmd.Process.Pid && markOf(pid) == p.mark {
			_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0) // it may have ended
		}
		unix.Close(fd)
	}
}

// marked returns the processes that have the program's mark.
func (p *Program) marked() (list []int) {
	entries, _ := os.ReadDir("/proc") // what was read until then
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && p.mark != 0 && markOf(pid) == p.mark {
			list = append(list, pid)
		}
	}
	return list
}
