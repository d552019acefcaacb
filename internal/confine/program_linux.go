package confine

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
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

// niceness is the priority of programs: when the processors are short, a process of none has
// nine times the time of one of theirs.
const niceness = 10

// bound sets a program's limits, and its mark, which it returns; zero if it has none.
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
	// The worker goes first: it has to end the program, too.
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness) // else as it was
	mark = newMark()
	if unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark}, nil) != nil {
		return 0 // this process has a limit of its own, or is held itself
	}
	return mark
}

// Sweep ends what has the program's mark, whatever it did with its group, its session and
// its environment. It returns what still runs.
func (p *Program) Sweep() []Survivor {
	if p.mark == 0 {
		return nil
	}
	marked := func(pid int) bool { return markOf(pid) == p.mark }
	left := sweep(marked, p.cmd.Process.Pid, sweepTime)
	if len(left) > 0 {
		go sweep(marked, p.cmd.Process.Pid, sweepOn) // what hangs within the kernel, or finds no time
	}
	return left
}

// processes are the numbers of all processes.
func processes() (list []int) {
	entries, _ := os.ReadDir("/proc") // what was read until then
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// freeze stops the processes that are marked, until none is left that could start another
// one, or some time is up. Who only kills them makes room for those that they start.
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
	fd, err := unix.PidfdOpen(pid, 0) // the handle holds the process while it is looked at again
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !marked(pid) {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, s, nil, 0)
}

// killMarked kills the processes that are marked, and returns those that still ran. program
// is not reaped: who awaits it does that.
func killMarked(marked func(pid int) bool, program int) (left []Survivor) {
	for _, pid := range processes() {
		if !marked(pid) {
			continue
		}
		name, runs := state(pid)
		switch {
		case runs && signal(pid, marked, unix.SIGKILL) != unix.EPERM: // else it is another user's to end
			left = append(left, Survivor{pid, name})
		case !runs && pid != program:
			// An orphan of which this process, being the first of its container, is the parent.
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // else it is another's to reap
		}
	}
	return left
}

// state is the name of a process, and whether it has not ended yet.
func state(pid int) (name string, runs bool) {
	name, fields := stat(pid)
	return name, len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// terminateMarked asks what has the program's mark to end, except for its head.
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
