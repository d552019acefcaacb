//go:build unix && !linux

package confine

import "os/exec"

// Await waits for the end of the program itself, and reaps it. What is left of its group
// is killed right after, before another process can get the number.
func (p *Program) Await() { p.cmd.Wait() }

func reap(*exec.Cmd) {}

func bound(int) uint64 { return 0 }

func launch(cmd *exec.Cmd, give func() error) (release func(), err error) {
	return func() {}, cmd.Start()
}

func (*Program) terminateMarked() {}

// Sweep does nothing: processes that left the group can't be found on this system.
func (*Program) Sweep() []Survivor { return nil }

// EndOrphans does nothing: what killed processes left can't be found on this system.
func EndOrphans() {}
