//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// prepare makes the process the head of a group, so that all that it starts ends with it.
func prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (p *process) terminate() { p.signal(syscall.SIGTERM) }

func (p *process) kill() { p.signal(syscall.SIGKILL) }

// signal reaches the whole group. Its number is its head's, which is another's
// after that was reaped.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.cmd.Process.Pid, s)
	}
}
