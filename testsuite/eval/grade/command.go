package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/tool"
)

// Command is a program that decides by its exit status: 0 passes, and any other does not.
// It reads the [Facts] as JSON on standard input. What it writes is the reason. It may be
// run again for the same trial, if a worker was lost.
type Command struct {
	// Run is the program and its arguments. It runs in the suite's directory.
	Run []string `json:"run"`
	// Timeout bounds it; zero means one minute. A command that takes longer could not
	// decide.
	Timeout agent.Duration `json:"timeout,omitempty"`
}

const (
	commandTime    = time.Minute
	maxCommandTime = 10 * time.Minute
	maxCommandSays = 64 << 10 // bytes of output that are kept
	commandGrace   = 2 * time.Second
)

func (c *Command) check() error {
	switch {
	case len(c.Run) == 0 || c.Run[0] == "":
		return agent.Errorf(agent.CodeInvalidInput, "needs run: a program and its arguments")
	case c.Timeout < 0 || time.Duration(c.Timeout) > maxCommandTime:
		return agent.Errorf(agent.CodeInvalidInput, "timeout is at most %s", maxCommandTime)
	}
	return nil
}

// Sandbox says what commands may do. The zero value refuses them where the kernel can't
// confine them, and if this process is root. Commands read the suite's directory and the
// system's, write only a temporary directory, and have no network.
type Sandbox struct {
	Sandbox tool.Sandbox
	Confine tool.Confine
	AsRoot  bool
	Network bool
	// Read and Write are further absolute paths.
	Read, Write []string
	// Private are absolute paths that no command may read. A command is refused if it could.
	Private []string
}

// Do runs the command in a directory. An error means that it could not decide:
// [agent.CodeDenied] if it may not run, or [agent.CodeTimeout].
func (c *Command) Do(ctx context.Context, s *Sandbox, dir string, f *Facts) (v Verdict, err error) {
	input, err := json.Marshal(f)
	if err != nil {
		return v, fmt.Errorf("the trial as JSON: %w", err)
	}
	// Here, since a confined program that is missing looks like one that says no.
	if _, err := exec.LookPath(c.program(dir)); err != nil {
		return v, agent.Errorf(agent.CodeInvalidInput, "the command %s: %w", c.Run[0], err)
	}
	temp, err := os.MkdirTemp("", "fermata-eval-")
	if err != nil {
		return v, agent.Errorf(agent.CodeNotWritten, "a temporary directory: %w", err)
	}
	defer os.RemoveAll(temp)
	limit := commandTime
	if c.Timeout > 0 {
		limit = time.Duration(c.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	said := &limited{}
	cmd := exec.Command(c.program(dir), c.Run[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, environment(temp), bytes.NewReader(input), said, said
	// Somebody who left its group may hold the pipes.
	cmd.WaitDelay = commandGrace
	p, err := confine.Start(cmd, &confine.Policy{
		Kernel: confine.HostKernel(), Sandbox: s.Sandbox, Confine: s.Confine, AsRoot: s.AsRoot, Network: s.Network,
		Own: []string{temp}, Read: append([]string{dir}, s.Read...), Write: s.Write, Private: s.Private,
	})
	if err != nil {
		return v, agent.Errorf(agent.CodeDenied, "the command %s can't be started: %w", c.Run[0], err)
	}
	ended := make(chan struct{})
	go func() { p.Await(); close(ended) }()
	late := false
	select {
	case <-ended:
	case <-ctx.Done():
		late = true
		p.Kill()
		<-ended
	}
	p.End()
	if late {
		if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
			return v, err
		}
		return v, agent.Errorf(agent.CodeTimeout, "the command %s took longer than %s", c.Run[0], limit)
	}
	return c.verdict(cmd, said), nil
}

func (c *Command) verdict(cmd *exec.Cmd, said *limited) Verdict {
	v := Verdict{Pass: cmd.ProcessState.Success(), Reason: cut(strings.TrimSpace(said.String()))}
	if !v.Pass && v.Reason == "" {
		v.Reason = fmt.Sprintf("%s: %s", c.Run[0], cmd.ProcessState)
	}
	return v
}

// program returns the program's path. With a slash it is relative to the directory.
func (c *Command) program(dir string) string {
	if strings.ContainsRune(c.Run[0], filepath.Separator) && !filepath.IsAbs(c.Run[0]) {
		return filepath.Join(dir, c.Run[0])
	}
	return c.Run[0]
}

// environment is all that a command gets: no key of this process is in it.
func environment(temp string) []string {
	env := []string{"HOME=" + temp, "TMPDIR=" + temp, "LANG=C.UTF-8", "TERM=dumb"}
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	return append(env, "PATH="+path)
}

// limited keeps the beginning of what is written to it.
type limited struct{ b bytes.Buffer }

// Write never fails: a command that says much must not get an error for it.
func (l *limited) Write(p []byte) (int, error) {
	if room := maxCommandSays - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (l *limited) String() string { return strings.ToValidUTF8(l.b.String(), "\ufffd") }
