//go:build unix

package workspace

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/fermata-agents/fermata/internal/confine"
)

// nonblock makes the opening of a named pipe return at once.
const nonblock = syscall.O_NONBLOCK

// group is a running command with all that it started.
type group struct {
	cmd     *exec.Cmd
	program *confine.Program
	out     *output
	pipe    *os.File // the command's output

	exited  chan struct{} // closed when the command itself has ended
	drained chan struct{} // closed when no more output can come
	settled chan struct{} // closed after exited and drained
}

func (w *Workspace) start(c command) (*group, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pipe, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	g := &group{out: &output{}, pipe: pipe, exited: make(chan struct{}), drained: make(chan struct{}), settled: make(chan struct{})}
	g.cmd = exec.Command(shellPath, "-c", c.text)
	g.cmd.Dir, g.cmd.Env = c.dir, w.environment(c.home, c.temp, c.dir)
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = null, out, out
	if g.program, err = w.launch(g.cmd, c); err != nil {
		pipe.Close()
		return nil, err
	}
	go g.watch()
	return g, nil
}

// watch waits until a command has ended and its output is closed.
func (g *group) watch() {
	go func() {
		// If end stops waiting for it, this returns an error that nobody needs.
		io.Copy(g.out, g.pipe)
		close(g.drained)
	}()
	g.program.Await()
	close(g.exited)
	<-g.drained
	close(g.settled)
}

// launch starts a command, confined by the kernel as far as the kernel can.
func (w *Workspace) launch(cmd *exec.Cmd, c command) (*confine.Program, error) {
	root, err := w.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p := w.policy(c.home, c.temp)
	// An open directory, so that the one allowed is the one that was opened.
	p.Dir = root
	return confine.Start(cmd, p)
}

// end ends what is left of the command, wherever it went. It returns what still runs.
func (g *group) end() (left []confine.Survivor) {
	g.program.Terminate()
	select {
	case <-g.settled:
	case <-time.After(grace):
	}
	g.program.Kill()
	select {
	case <-g.exited:
		left = g.program.End()
	case <-time.After(lingering): // the command hangs in the kernel
		left = g.program.Sweep()
		// The command can only be reaped after it has ended.
		go func() { <-g.exited; g.program.End() }()
	}
	// A process that can't be ended may hold the pipe open.
	g.pipe.SetReadDeadline(time.Now().Add(grace))
	<-g.drained
	g.pipe.Close()
	return left
}

// exitStatus returns the exit status of a command that ended by itself; -1 if a signal ended it.
func (g *group) exitStatus() (status int, ok bool) {
	if g.cmd.ProcessState == nil {
		return 0, false
	}
	return g.cmd.ProcessState.ExitCode(), true
}

// status returns how a command ended that ended by itself.
func (g *group) status() string {
	if g.cmd.ProcessState == nil {
		return "ended"
	}
	return g.cmd.ProcessState.String()
}
