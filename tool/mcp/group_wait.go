//go:build !linux

package mcp

import "os/exec"

// await waits for the end of a process, which is thereby reaped: what is left of
// its group is killed in the next moment, before its number is given to another.
func await(cmd *exec.Cmd) { cmd.Wait() }

func reap(*exec.Cmd) {}
