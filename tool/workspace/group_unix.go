//go:build unix

package workspace

import (
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// nonblock keeps an open of a named pipe from waiting for its other end.
const nonblock = syscall.O_NONBLOCK

// keeper is what runs a command, which is $1. Its first line ends the whole
// group when this process has gone without ending it: then the pipe that is
// descriptor 3 has no writer any more.
const keeper = `(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
exec 3<&-
exec ` + shellPath + ` -c "$1"`

// group is a command that runs, and all that it started.
type group struct {
	cmd   *exec.Cmd
	out   *output
	pipe  *os.File // its output
	alive *os.File // open as long as this process lives
	mark  string   // its cookie

	exited  chan struct{} // closed when the command itself has ended
	drained chan struct{} // closed when nothing will be written any more
	settled chan struct{} // closed after both
}

func (w *Workspace) start(c command) (*group, error) {
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	files = append(files, null)
	pipe, out, err := os.Pipe()
	if err != nil {
		closeAll()
		return nil, err
	}
	files = append(files, out)
	watched, alive, err := os.Pipe()
	if err != nil {
		closeAll()
		pipe.Close()
		return nil, err
	}
	files = append(files, watched)
	defer closeAll()

	g := &group{
		out: &output{}, pipe: pipe, alive: alive, mark: rand.Text(),
		exited: make(chan struct{}), drained: make(chan struct{}), settled: make(chan struct{}),
	}
	g.cmd = exec.Command(shellPath, "-c", keeper, "sh", c.text)
	g.cmd.Dir, g.cmd.Env = c.dir, w.environment(c.home, c.temp, c.dir, g.mark)
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr, g.cmd.ExtraFiles = null, out, out, []*os.File{watched}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.launch(g.cmd, c); err != nil {
		pipe.Close()
		alive.Close()
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
	await(g.cmd)
	close(g.exited)
	<-g.drained
	close(g.settled)
}

// end ends what is left of the group, and reports whether all of it is gone.
func (g *group) end() bool {
	g.signal(syscall.SIGTERM)
	select {
	case <-g.settled:
	case <-time.After(grace):
	}
	g.signal(syscall.SIGKILL)
	g.alive.Close()
	gone := true
	select {
	case <-g.exited:
		reap(g.cmd)
	case <-time.After(lingering): // it hangs within the kernel
		gone = false
		go func() { <-g.exited; reap(g.cmd) }()
	}
	killStrays(g.mark)
	g.pipe.SetReadDeadline(time.Now().Add(grace))
	<-g.drained
	g.pipe.Close()
	return gone
}

func (g *group) signal(s syscall.Signal) {
	// The group's number is its leader's, which is not reaped yet. So this is no other group.
	syscall.Kill(-g.cmd.Process.Pid, s)
}

// status says how a command that has ended by itself did.
func (g *group) status() string {
	if g.cmd.ProcessState == nil {
		return "ended"
	}
	return g.cmd.ProcessState.String()
}
