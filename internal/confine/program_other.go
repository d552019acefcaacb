//go:build !unix

package confine

import "os/exec"

// Program is a running program.
type Program struct{ cmd *exec.Cmd }

// Start starts a program under a policy. An [agent.CodeDenied] error is the policy's
// [Policy.Fault]; any other says why it could not be started.
func Start(cmd *exec.Cmd, p *Policy) (*Program, error) {
	if cmd.Err != nil {
		return nil, cmd.Err // there is no such program
	}
	if err := p.Fault(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Program{cmd}, nil
}

// Await waits for the end of the program.
func (p *Program) Await() { p.cmd.Wait() }

// Terminate does nothing: there is no gentle signal on this system.
func (*Program) Terminate() {}

// Kill ends the program.
func (p *Program) Kill() { p.cmd.Process.Kill() }

// End does nothing: what the program started can't be found on this system.
func (*Program) End() []Survivor { return nil }
