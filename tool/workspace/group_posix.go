//go:build unix && !linux

package workspace

import "os/exec"

// await waits for the end of a command, which is thereby reaped: what is left of
// its group is killed in the next moment, before its number is given to another.
func await(cmd *exec.Cmd) { cmd.Wait() }

func reap(*exec.Cmd) {}

// killStrays does nothing: what leaves the group is not found on this system.
func killStrays(string) {}

func (*Workspace) launch(cmd *exec.Cmd, _ command) error { return cmd.Start() }
