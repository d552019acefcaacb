//go:build unix

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"github.com/fermata-agents/fermata/tool"
)

// Program is a running program with all that it started.
type Program struct {
	cmd     *exec.Cmd
	mark    uint64   // see the package comment; zero if it has none
	wrapped bool     // another program runs it, which must not end before it
	gate    *os.File // see keeper
	release func()

	mu     sync.Mutex
	reaped bool
}

// keeper is the script that runs a program, given as its arguments. Descriptor 3 is a
// pipe that only this process writes. Its first line says that the program is bounded and
// may begin. Nothing else is ever written. When this process dies without ending the
// group, the pipe ends, and the script kills the group.
const keeper = `read -r _ <&3 || exit 1
(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
exec 3<&-
exec "$@"`

// orphans ends what killed processes left, once.
var orphans = sync.OnceFunc(EndOrphans)

// Start starts a program under a policy, in a session of its own, so that it has no
// terminal. An [agent.CodeDenied] error is the policy's [Policy.Fault]; any other says
// why it could not be started. The caller must call Await and then End.
func Start(cmd *exec.Cmd, p *Policy) (*Program, error) {
	if cmd.Err != nil {
		return nil, cmd.Err // there is no such program
	}
	if err := p.Fault(); err != nil {
		return nil, err
	}
	orphans()
	r := &ready{give: func() error { return nil }}
	if p.Confine != tool.ConfineNever {
		var err error
		if r, err = p.sandbox().prepare(p, cmd.Dir); err != nil {
			return nil, fmt.Errorf("it can't be held: %w", err)
		}
	}
	defer r.close()
	kept, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	cmd.Args = slices.Concat([]string{shellPath, "-c", keeper, "sh"}, r.args, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path, cmd.ExtraFiles = shellPath, append([]*os.File{kept}, r.files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	release, err := launch(cmd, r.give)
	if err != nil {
		gate.Close()
		return nil, err
	}
	// Bound first, then the line that lets the program begin: see keeper.
	prog := &Program{cmd: cmd, mark: bound(cmd.Process.Pid), wrapped: len(r.args) > 0, gate: gate, release: release}
	_, _ = gate.WriteString("\n")
	return prog, nil
}

// Terminate asks the program and its group to end.
func (p *Program) Terminate() {
	if !p.wrapped {
		p.signal(syscall.SIGTERM)
		return
	}
	p.terminateMarked()
}

// Kill ends the program and its group.
func (p *Program) Kill() { p.signal(syscall.SIGKILL) }

// signal signals the whole group. The group has the number of its first process, which
// may belong to another process after that was reaped.
func (p *Program) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// End ends what is left of a program after Await, wherever it went. It returns what still
// runs because it hangs in the kernel. It may be called more than once.
func (p *Program) End() []Survivor {
	// Before reaping: the group's number is still ours.
	p.Kill()
	p.mu.Lock()
	if !p.reaped {
		p.reaped = true
		reap(p.cmd)
		p.gate.Close()
		p.release()
	}
	p.mu.Unlock()
	return p.Sweep()
}
