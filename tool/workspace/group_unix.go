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

// nonblock keeps an open of a named pipe from waiting for its other end.
const nonblock = syscall.O_NONBLOCK

// group is a command that runs, and all that it started.
type group struct {
	cmd     *exec.Cmd
	program *confine.Program
	out     *output
	pipe    *os.File // its output

	exited  chan struct{} // closed when the command itself has ended
	drained chan struct{} // closed when nothing will be written any more
	settled chan struct{} // closed after both
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

// watch follows a command until it has ended and is silent.
func (g *group) watch() {
	go func() {
		io.Copy(g.out, g.pipe) // ends with an error of no interest when end gives up on it
		close(g.drained)
	}()
	g.program.Await()
	close(g.exited)
	<-g.drained
	close(g.settled)
}

// launch starts a command, held by the kernel as far as it can.
func (w *Workspace) launch(cmd *exec.Cmd, c command) (*confine.Program, error) {
	root, err := w.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p := w.policy(c.home, c.temp)
	p.Dir = root
	return confine.Start(cmd, p)
}

// end ends what is left of the command, wherever it went, and returns what still runs.
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
	case <-time.After(lingering): // it hangs within the kernel
		left = g.program.Sweep()
		go func() { <-g.exited; g.program.End() }()
	}
	g.pipe.SetReadDeadline(time.Now().Add(grace))
	<-g.drained
	g.pipe.Close()
	return left
}

// status says how a command that has ended by itself did.
func (g *group) status() string {
	if g.cmd.ProcessState == nil {
		return "ended"
	}
	return g.cmd.ProcessState.String()
}
