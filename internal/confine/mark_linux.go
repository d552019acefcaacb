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

// A mark is a limit of real-time scheduling, in microseconds: at least 36,000 years. It
// contains the number of the process that started the program, some bits of when that
// process began, and which of its programs it is.
const (
	minMark     = 1 << 60
	programBits = 22
	beganBits   = 16
)

// programs counts the programs of this process.
var programs atomic.Uint64

func newMark() uint64 {
	self := os.Getpid()
	return minMark | (uint64(self)<<beganBits|began(self))<<programBits | programs.Add(1)&(1<<programBits-1)
}

// markOf returns the mark of a process, or another limit that it has; zero if there is
// none.
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

// orphaned reports whether a limit is the mark of a program whose starter is gone.
func orphaned(mark uint64) bool {
	if mark < minMark || mark >= 2*minMark {
		return false
	}
	owner := (mark - minMark) >> programBits
	// The number alone is not enough: another process may have it by now.
	return began(int(owner>>beganBits)) != owner&(1<<beganBits-1)
}

// EndOrphans ends what was left by programs whose starters were killed. Call it before
// starting programs; [Start] does so once.
func EndOrphans() {
	here := spaces("self")
	if here == 0 {
		return
	}
	// In the processes of a container, the number in a mark means another process.
	ours := func(pid int) bool { return spaces(strconv.Itoa(pid)) == here }
	sweep(func(pid int) bool { return orphaned(markOf(pid)) && ours(pid) }, 0, sweepTime)
}

// spaces returns in how many PID namespaces a process has a number, as seen from here;
// zero if it is gone.
func spaces(pid string) int {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, line, _ := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return len(bytes.Fields(line))
}

// began returns when a process began, in the bits that a mark has for it. It is never
// zero, which means a process that is gone.
func began(pid int) uint64 {
	const at = 19 // fields after the name: see proc(5), starttime
	_, fields := stat(pid)
	if len(fields) <= at {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[at], 10, 64)
	return ticks%(1<<beganBits-1) + 1
}

// stat returns the name of a process, and the fields of its stat after the name.
func stat(pid int) (name string, fields []string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", nil
	}
	_, rest, _ := strings.Cut(string(text), " (")
	// The last one: a process may put ") " into its name.
	at := strings.LastIndex(rest, ") ")
	if at < 0 {
		return "", nil
	}
	return rest[:at], strings.Fields(rest[at+2:])
}

const (
	sweepTime = 5 * time.Second  // how long processes that can be ended may take
	sweepOn   = 10 * time.Minute // how long to continue with those that can't
)

// sweep ends marked processes for some time, and returns those that still run. It tries
// repeatedly: a killed process may just have started another one, and takes a moment to
// end.
func sweep(marked func(pid int) bool, program int, most time.Duration) []Survivor {
	until := time.Now().Add(most)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		left := killMarked(marked, program)
		if len(left) == 0 || time.Now().After(until) {
			return left
		}
		// They start new ones faster than they are killed: stop them all first.
		if pause > 4*time.Millisecond {
			freeze(marked)
		}
		time.Sleep(pause)
	}
}
