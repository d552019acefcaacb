package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/internal/confine"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// grace is how long a server has to end: after its input has ended, and again after
// SIGTERM.
const grace = time.Second

// process is a server's process with all that it started.
type process struct {
	server  *Server
	cmd     *exec.Cmd
	program *confine.Program
	temp    string // a directory of this process alone; empty for none
	conn    *conn
	errors  *os.File // the server's standard error
	stderr  *tail

	mu      sync.Mutex
	session *sdk.ClientSession
	left    error         // why the next call needs another process; nil while this one is in use
	exited  chan struct{} // closed when the process has ended and all its error output was read
}

func (s *Server) launch() (*process, error) {
	var ours, theirs []*os.File
	undo := func() {
		for _, f := range slices.Concat(ours, theirs) {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			undo()
			return nil, err
		}
		if len(ours) == 0 {
			ours, theirs = append(ours, w), append(theirs, r)
		} else {
			ours, theirs = append(ours, r), append(theirs, w)
		}
	}
	at, err := s.place()
	if err != nil {
		undo()
		return nil, err
	}
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Env = s.opts.Dir, s.environment(at)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	program, err := confine.Start(cmd, s.policy(at))
	if err != nil {
		undo()
		at.leave()
		return nil, err
	}
	// Else the ends of the pipes that we hold would hide the end of the server.
	for _, f := range theirs {
		f.Close()
	}
	p := &process{
		server: s, cmd: cmd, program: program, temp: at.temp, conn: newConn(ours[0], ours[1], s.log), errors: ours[2],
		stderr: &tail{clean: s.secrets, log: s.log, logLimiter: logLimiter{log: s.log}}, exited: make(chan struct{}),
	}
	go p.watch()
	return p, nil
}

func (p *process) transport() sdk.Transport { return p.conn }

func (p *process) attend(context.Context) (done func()) { return func() {} }

func (p *process) broken() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left != nil {
		return p.left
	}
	return p.conn.broken()
}

// leave ends nothing yet: other calls continue, and the server must still learn which
// call was cancelled.
func (p *process) leave(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = reason
}

// retire ends a process whose connection is broken or left. The process may still run.
func (p *process) retire() {
	p.mu.Lock()
	session := p.session
	p.mu.Unlock()
	// Close waits for running calls.
	within(2*grace, func() { session.Close() })
	p.stop()
}

// within calls do and waits for it, but not longer than most.
func within(most time.Duration, do func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		do()
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
}

// handshakeDone starts to wait for a server that ends by itself.
func (p *process) handshakeDone(session *sdk.ClientSession) {
	p.mu.Lock()
	p.session = session
	p.mu.Unlock()
	s := p.server
	s.log.Info("MCP server started", "pid", p.cmd.Process.Pid, "protocol", session.InitializeResult().ProtocolVersion)
	go func() {
		<-p.exited
		// Only an unexpected end is a warning.
		if !s.isClosed() && !errors.Is(p.broken(), errGivenUp) {
			s.log.Warn("MCP server ended", "status", p.status(), "stderr", p.stderr.after(0))
		}
	}()
}

func (p *process) handshakeFailed(ctx context.Context, err error) error {
	s, answer := p.server, answered(err)
	var slow tooSlow
	switch {
	case answer != nil:
		p.stop()
		return fmt.Errorf("the MCP server %s refuses the handshake (%s): %w", s.name, s.shown(), refusal{err, true, false})
	case errors.As(context.Cause(ctx), &slow):
		p.stop()
		return noHandshake{fmt.Errorf("the MCP server %s did not answer within %s (%s); raise start_timeout if it needs longer%s%s", s.name, time.Duration(slow), s.shown(), p.words(0), s.hint())}
	case ctx.Err() != nil:
		p.stop()
		return s.errClosed()
	case p.broken() != nil:
		return noHandshake{fmt.Errorf("the MCP server %s %s (%s)%s%s", s.name, p.ending("while it started"), s.shown(), p.words(0), s.hint())}
	}
	p.stop()
	return fmt.Errorf("the MCP server %s fails the handshake (%s): %w%s", s.name, s.shown(), err, p.words(0))
}

// watch waits for the process to end, and ends what it left behind.
func (p *process) watch() {
	stderrDone := make(chan struct{})
	go func() {
		defer close(stderrDone)
		io.Copy(p.stderr, p.errors)
	}()
	// Await first, then kill the group: the program may have left processes behind.
	p.program.Await()
	p.program.Kill()
	// A process that still holds the pipes is no longer the server. Without a deadline
	// its silence would block these reads forever.
	p.conn.out.SetReadDeadline(time.Now().Add(grace))
	p.errors.SetReadDeadline(time.Now().Add(grace))
	for _, left := range p.program.End() {
		p.server.log.Warn("a process of the MCP server can't be ended", "pid", left.PID, "name", left.Name)
	}
	<-stderrDone
	p.errors.Close()
	place{temp: p.temp}.leave()
	close(p.exited)
}

// stop ends the process, gently at first. It reports whether the process has ended.
func (p *process) stop() bool {
	p.conn.Close()
	if p.ended(grace) {
		return true
	}
	p.program.Terminate()
	if p.ended(grace) {
		return true
	}
	p.program.Kill()
	return p.ended(5 * grace) // longer only if it hangs in the kernel
}

func (p *process) ended(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

func (p *process) stderrLines() int { return p.stderr.count() }

func (p *process) describeEnd(when, doubt string, stderrLines int) string {
	return p.ending(when) + doubt + p.words(stderrLines)
}

// ending says how a server ended whose connection broke, and ends it if it still runs.
func (p *process) ending(when string) string {
	reason := p.conn.broken()
	// A server may close its output a moment before it ends.
	byItself := p.ended(grace)
	if !byItself {
		p.program.Terminate()
		p.stop()
	}
	switch {
	case tooMuch(reason), errors.Is(reason, errUnread):
		return fmt.Sprintf("was ended %s: %v", when, reason)
	case byItself:
		return fmt.Sprintf("ended %s (%s)", when, p.status())
	}
	return fmt.Sprintf("closed its output %s and was ended", when)
}

// status returns how the process ended, once it has.
func (p *process) status() string {
	if p.cmd.ProcessState == nil {
		return "unknown status"
	}
	return p.cmd.ProcessState.String()
}

// words returns the server's last lines on standard error, without the first so many, to
// end a message with.
func (p *process) words(after int) string {
	words, meanwhile := p.stderr.after(after), ""
	if after > 0 {
		meanwhile = " meanwhile"
	}
	if words == "" {
		return "; it wrote nothing to stderr" + meanwhile
	}
	return "; its last lines on stderr: " + words
}

// tail keeps the last lines of a server's standard error, and logs them up to a bound.
type tail struct {
	clean      func(string) string
	log        *slog.Logger
	logLimiter logLimiter

	mu   sync.Mutex
	part string   // a line without its end yet
	last []string // the last complete lines
	n    int      // how many complete lines there were
}

const (
	maxWords    = 5    // lines
	maxWordLine = 300  // bytes of each
	maxPart     = 4096 // bytes of an unfinished line
)

// Write takes more error output. It never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part += string(b)
	for {
		line, rest, ok := strings.Cut(t.part, "\n")
		if !ok {
			break
		}
		t.part = rest
		t.add(line)
	}
	// A program that never ends a line must not fill the memory.
	if len(t.part) > maxPart {
		t.add(t.part)
		t.part = ""
	}
	return len(b), nil
}

func (t *tail) add(line string) {
	if line = t.line(line); line == "" {
		return
	}
	if t.logLimiter.allows() {
		t.log.Debug("MCP server says", "stderr", line)
	}
	t.last = append(t.last, line)
	t.last = t.last[max(0, len(t.last)-maxWords):]
	t.n++
}

func (t *tail) line(line string) string { return cut(t.clean(strings.TrimSpace(line)), maxWordLine) }

func (t *tail) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// after returns the last lines as one, without the first so many.
func (t *tail) after(first int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	words := t.last[max(0, len(t.last)-max(0, t.n-first)):]
	if rest := t.line(t.part); rest != "" {
		words = append(slices.Clone(words), rest)
	}
	return strings.Join(words, " / ")
}
