//go:build unix && !linux

package confine

import "os/exec"

// Await waits for the end of the program itself, which is thereby reaped: what is left of
// its group is killed in the next moment, before its number is given to another.
func (p *Program) Await() { p.cmd.Wait() }

func reap(*exec.Cmd) {}

func bound(int) uint64 { return 0 }

func launch(cmd *exec.Cmd, give func() error) (release func(), err error) {
	return func() {}, cmd.Start()
}

func (*Program) terminateMarked() {}

// Sweep does nothing: what leaves the group is not found on this system.
func (*Program) Sweep() []Left { return nil }

// EndOrphans does nothing: what killed processes left is not found on this system.
func EndOrphans() {}
