package worktree

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Repo is a repository that only the runtime writes.
type Repo struct{ dir string }

// The oldest git that has `merge-tree --write-tree`.
const oldestMajor, oldestMinor = 2, 38

// Check returns an error that says what to do if this machine has no git that this package can use
// ([agent.CodeNotSetUp]).
func Check() error {
	out, err := exec.Command("git", "version").Output()
	if err != nil {
		return agent.Errorf(agent.CodeNotSetUp, "there is no git on this machine: install git %d.%d or later, or write kind: directory", oldestMajor, oldestMinor)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "git version %d.%d", &major, &minor); err != nil || major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return agent.Errorf(agent.CodeNotSetUp, "%q is too old: install git %d.%d or later, or write kind: directory", strings.TrimSpace(string(out)), oldestMajor, oldestMinor)
	}
	return nil
}

// Start is the branch of a repository's first copy, which its HEAD names.
const Start = "refs/heads/start"

const (
	// Names are checked by OfGit, which refuses what git refuses on any system. Git's own check would make
	// a copy fail where this one leaves a file out.
	config = `[core]
	repositoryformatversion = 0
	bare = false
	logAllRefUpdates = false
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
	excludesFile = /dev/null
	bigFileThreshold = 4m
	protectHFS = false
	protectNTFS = false
[fastimport]
	unpackLimit = 1
[gc]
	auto = 0
[protocol]
	allow = never
[submodule]
	recurse = false
[user]
	name = Fermata
	email = fermata@localhost
`
	// These win over every .gitattributes, so that a sub-agent's git compares bytes too.
	attributes = "* -text -eol -ident -filter -working-tree-encoding\n"
)

// Create makes a repository in a directory that does not exist.
func Create(dir string) (*Repo, error) {
	for _, name := range []string{"objects", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o755); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{"config": config, "HEAD": "ref: " + Start + "\n", "info/attributes": attributes} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return Open(dir), nil
}

// Open returns a repository that [Create] has made.
func Open(dir string) *Repo { return &Repo{dir} }

// maxOutput bounds what git answers, in bytes.
const maxOutput = 64 << 20

// command returns a command of git, which sees nothing of this process's environment but the PATH.
func (r *Repo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + r.dir}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=",
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs git. What git says about an error may have parts of files, so only the worker's log gets it.
func (r *Repo) run(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := r.command(ctx, args...)
	out, problem := &bounded{most: maxOutput}, &bounded{most: 4 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, problem
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case out.over:
		return nil, agent.Errorf(agent.CodeTooLarge, "git %s answered more than %d bytes", args[0], maxOutput)
	case err != nil:
		if problem.Len() > 0 {
			slog.WarnContext(ctx, "git failed in a sub-agent's workspace", "command", args[0], "dir", r.dir, "stderr", problem.String())
		}
		return out.Bytes(), fmt.Errorf("git %s: %w; the worker's log says more", args[0], err)
	}
	return out.Bytes(), nil
}

// bounded keeps the first bytes of what is written.
type bounded struct {
	bytes.Buffer
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if left := b.most - b.Len(); len(p) > left {
		b.over = true
		b.Buffer.Write(p[:max(0, left)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
