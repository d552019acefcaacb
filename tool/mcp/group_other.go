//go:build !unix

package mcp

import "os/exec"

func prepare(*exec.Cmd) {}

// terminate does nothing: there is no gentle signal here, and the server's input
// has ended already.
func (p *process) terminate() {}

func (p *process) kill() { p.cmd.Process.Kill() }
