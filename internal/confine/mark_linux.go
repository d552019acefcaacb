package confine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Marks are times of real-time scheduling, in microseconds: at least 36,000 years. A mark
// has the number of the process that started the program, some bits of when that process
// began, and which of its programs it is.
const (
	minMark     = 1 << 60
	programBits = 22
	beganBits   = 16
)

// programs counts those of this process.
var programs atomic.Uint64

func newMark() uint64 {
	self := os.Getpid()
	return minMark | (uint64(self)<<beganBits|began(self))<<programBits | programs.Add(1)&(1<<programBits-1)
}

// markOf is the mark of a process, or another limit of its; zero if there is none.
func markOf(pid int) uint64 {
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0
	}
	_, line, _ := bytes.Cut(limits, []byte("Max realtime timeout"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 2 {
		return 0
	}
	mark, err := strconv.ParseUint(fields[1], 10, 64) // the hard limit
	if err != nil {
		return 0
	}
	return mark
}

// orphaned reports whether a limit is the mark of a program whose process has gone.
func orphaned(mark uint64) bool {
	if mark < minMark || mark >= 2*minMark {
		return false
	}
	owner := (mark - minMark) >> programBits
	return began(int(owner>>beganBits)) != owner&(1<<beganBits-1)
}

// EndOrphans ends what was left by programs whose processes were killed before they could
// end it. Who starts programs calls it first.
func EndOrphans() {
	here := spaces("self")
	if here == 0 {
		return
	}
	// In a container's processes, numbers mean others.
	ours := func(pid int) bool { return spaces(strconv.Itoa(pid)) == here }
	sweep(func(pid int) bool { return orphaned(markOf(pid)) && ours(pid) }, 0, sweepTime)
}

// spaces is in how many namespaces of numbers a process has one, as far as they are seen from
// here; zero if it has gone.
func spaces(pid string) int {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, line, _ := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return len(bytes.Fields(line))
}

// began tells when a process began, as far as a mark does: never zero, which is one that has
// gone.
func began(pid int) uint64 {
	const at = 19 // behind the name: see proc(5), starttime
	_, fields := stat(pid)
	if len(fields) <= at {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[at], 10, 64)
	return ticks%(1<<beganBits-1) + 1
}

// stat is the name of a process, and what its stat has behind that.
func stat(pid int) (name string, fields []string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", nil
	}
	_, rest, _ := strings.Cut(string(text), " (")
	at := strings.LastIndex(rest, ") ")
	if at < 0 {
		return "", nil
	}
	return rest[:at], strings.Fields(rest[at+2:])
}

const (
	sweepTime = 5 * time.Second  // how long ends may take that nothing hinders
	sweepOn   = 10 * time.Minute // how long those are tried that something does
)

// sweep ends the processes that are marked, for some time, and returns those that still run:
// what is killed may just have started another one, and takes a moment to end.
func sweep(marked func(pid int) bool, program int, most time.Duration) []Survivor {
	until := time.Now().Add(most)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left := killMarked(marked, program)
		if len(left) == 0 || time.Now().After(until) {
			return left
		}
		if pause > 4*time.Millisecond { // they come faster than they go
			freeze(marked)
		}
		time.Sleep(pause)
	}
}
