package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/tool"
)

const (
	shellPath      = "/bin/sh"
	maxCommand     = 100_000 // bytes; the kernel's limit is a little higher
	commandTime    = 2 * time.Minute
	maxCommandTime = 30 * time.Minute
	progressEvery  = 500 * time.Millisecond
	// grace is the time between SIGTERM and SIGKILL.
	grace = 500 * time.Millisecond
	// lingering is how long we wait for processes that got SIGKILL.
	lingering = 5 * time.Second
)

const shellHelp = "Runs a command with /bin/sh in the workspace. The answer has its exit status and its output, both streams together; " +
	"a long output is cut in the middle. The command has no input and no terminal. All that it starts ends when the command ends or its time is up. "

type shellArgs struct {
	Command string `json:"command" jsonschema:"the command, as for sh -c"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"how long it may take, up to 1800; 120 if left out"`
	Dir     string `json:"dir,omitempty" jsonschema:"the directory to run it in, relative to the workspace; the workspace itself if left out"`
}

// command is one command in progress.
type command struct {
	text  string
	dir   string // absolute
	home  string
	temp  string
	limit time.Duration
}

func (w *Workspace) shell(ctx context.Context, call *tool.Call, in shellArgs) (string, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return "", refuse(ShellTool, "command is empty")
	case len(in.Command) > maxCommand:
		return "", refuse(ShellTool, "the command is longer than %d bytes; write it to a file and run that", maxCommand)
	case strings.ContainsRune(in.Command, 0):
		return "", refuse(ShellTool, "the command has a NUL in it")
	case in.Timeout < 0 || time.Duration(in.Timeout)*time.Second > maxCommandTime:
		return "", refuse(ShellTool, "timeout_seconds is 1 to %d", int(maxCommandTime.Seconds()))
	}
	// The error names paths of this machine, so only the worker's operator sees it.
	if w.CheckShell() != nil {
		return "", refuse(ShellTool, "this worker may not run commands; its operator sees why with fermata doctor")
	}
	place, err := w.directory(ShellTool, in.Dir)
	if err != nil {
		return "", err
	}
	// Before anything is created: a cancelled call must not start a command.
	if err := ended(ctx); err != nil {
		return "", err
	}
	c := command{text: in.Command, dir: filepath.Join(w.real, place), limit: commandTime}
	if in.Timeout > 0 {
		c.limit = time.Duration(in.Timeout) * time.Second
	}
	if c.temp, err = os.MkdirTemp("", "fermata-"); err != nil {
		return "", fmt.Errorf("%s: no temporary directory: %w", ShellTool, err)
	}
	defer os.RemoveAll(c.temp)
	session := ""
	if call != nil {
		session = call.Session
	}
	if c.home, err = w.commandHome(session, c.temp); err != nil {
		return "", fmt.Errorf("%s: no home for the command: %w", ShellTool, err)
	}
	return w.run(ctx, call, c)
}

// commandHome creates a command's HOME. Each session has its own: the next command runs
// or believes what lies there. If nothing lasts, for example for a user without a home,
// it lies in the temporary directory.
func (w *Workspace) commandHome(session, temp string) (string, error) {
	if w.opts.Home != "" {
		return w.opts.Home, os.MkdirAll(w.opts.Home, 0o700)
	}
	if w.homes != "" {
		home := filepath.Join(w.homes, digest(session))
		if os.MkdirAll(home, 0o700) == nil {
			return home, nil
		}
	}
	home := filepath.Join(temp, "home")
	return home, os.MkdirAll(home, 0o700)
}

// How a command ends.
const (
	byItself = iota + 1
	byTime
	byCaller
)

func (w *Workspace) run(ctx context.Context, call *tool.Call, c command) (string, error) {
	began := time.Now()
	g, err := w.start(c)
	if errors.Is(err, errors.ErrUnsupported) {
		return "", refuse(ShellTool, "there is no shell to run on this system")
	}
	if err != nil {
		return "", fmt.Errorf("%s: the command could not be started: %w", ShellTool, err)
	}
	limit, tick := time.NewTimer(c.limit), time.NewTicker(progressEvery)
	defer limit.Stop()
	defer tick.Stop()
	how := 0
	for how == 0 {
		select {
		case <-g.exited:
			how = byItself
		case <-limit.C:
			how = byTime
		case <-ctx.Done():
			how = byCaller
		case <-tick.C:
			if line := g.out.news(); line != "" && call != nil {
				call.Progress("%s", line)
			}
		}
	}
	took := time.Since(began).Round(time.Millisecond)
	// Before the report: the output is complete only after the end.
	left := g.end()
	if status, ok := g.exitStatus(); ok && how == byItself && call != nil {
		call.Exited(status)
	}
	// A command that was cut short is a result, too. The model must know what it did so
	// far.
	return report(how, left, took, g), nil
}

// report returns the answer, which begins with how the command ended.
func report(how int, left []confine.Survivor, took time.Duration, g *group) string {
	text := g.out.String()
	if text == "" {
		text = "(no output)"
	}
	var head string
	switch how {
	case byItself:
		head = fmt.Sprintf("%s after %s", g.status(), took)
	case byTime:
		head = fmt.Sprintf("its time was up after %s: the command and all that it had started were ended", took)
	case byCaller:
		head = fmt.Sprintf("cancelled after %s: the command and all that it had started were ended", took)
	}
	if len(left) > 0 {
		head += "; could not be ended yet: " + names(left)
	}
	return "[" + head + "]\n" + text
}

// maxLeft is how many processes that could not be ended are named.
const maxLeft = 10

// visible replaces characters that can't be printed: a process chooses its own name.
func visible(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

func names(left []confine.Survivor) string {
	var list []string
	for _, l := range left[:min(len(left), maxLeft)] {
		list = append(list, fmt.Sprintf("%d (%s)", l.PID, strings.Map(visible, l.Name)))
	}
	if len(left) > maxLeft {
		list = append(list, fmt.Sprintf("and %d more", len(left)-maxLeft))
	}
	return strings.Join(list, ", ")
}
