//go:build unix

package confine

import (
	"os/exec"
	"sync"
	"syscall"
)

// Program is a program that runs, and all that it started.
type Program struct {
	cmd  *exec.Cmd
	mark uint64 // see the package comment; zero where it has none

	mu     sync.Mutex
	reaped bool
}

// orphans ends what killed processes left, once.
var orphans = sync.OnceFunc(EndOrphans)

// Start starts a program under a policy, in a session of its own, so that it has no
// terminal. An [agent.Denied] error is the policy's [Policy.Fault]; any other says that it
// could not be started.
func Start(cmd *exec.Cmd, p *Policy) (*Program, error) {
	if cmd.Err != nil {
		return nil, cmd.Err // there is no such program
	}
	if err := p.Fault(); err != nil {
		return nil, err
	}
	orphans()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.launch(cmd); err != nil {
		return nil, err
	}
	return &Program{cmd: cmd, mark: bound(cmd.Process.Pid)}, nil
}

// Terminate asks the program and its group to end.
func (p *Program) Terminate() { p.signal(syscall.SIGTERM) }

// Kill ends the program and its group.
func (p *Program) Kill() { p.signal(syscall.SIGKILL) }

// signal reaches the whole group. Its number is its head's, which is another's after that
// was reaped.
func (p *Program) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// End ends what is left of a program that was awaited, wherever it went. It returns what
// still runs, which hangs within the kernel. It may be called more than once.
func (p *Program) End() []Left {
	p.Kill()
	p.mu.Lock()
	if !p.reaped {
		p.reaped = true
		reap(p.cmd)
	}
	p.mu.Unlock()
	return p.Sweep()
}
