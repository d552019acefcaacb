package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/tool"
)

// The names of the tools.
const (
	ReadTool  = "fs_read"
	ListTool  = "fs_list"
	GrepTool  = "fs_grep"
	WriteTool = "fs_write"
	ShellTool = "shell_run"
)

// Options says how a workspace is held; nil means all defaults.
type Options struct {
	// AllowSensitive lets the file tools read and write what usually holds
	// secrets. The package comment says what that is.
	AllowSensitive bool
	// Env names environment variables of this process that the shell is given
	// besides the short list that it always gets.
	Env []string
	// Home is what the shell has as HOME, for all sessions. Empty means a directory for
	// each session below [os.UserCacheDir]: what one leaves there, such as a configuration
	// of git, is run by no other.
	Home string
	// Read and Write are further absolute paths that a confined shell may read,
	// or read and write, such as a module cache that is shared.
	Read, Write []string
	// ExternalRoots are further directories, absolute, whose files the file tools
	// may read and write by their absolute paths; else all that is outside is
	// refused. The shell has its own lists, Read and Write.
	ExternalRoots []string
	// Network lets commands use the network, and all that listens on this machine: Temporal,
	// databases, Docker. Without it they have no socket at all; what listens and asks within
	// one command can't either.
	Network bool
	// Sandbox names what holds commands; empty means [tool.SandboxLandlock].
	Sandbox tool.Sandbox
	// Confine says what happens where the kernel can't hold commands; empty means that they
	// are refused ([tool.ConfineAlways]).
	Confine tool.Confine
	// AsRoot lets commands run as root, where this process does. Else they are refused there:
	// they have none of root's capabilities, but their files are root's.
	AsRoot bool
	// Protect are paths, absolute, of files and directories that no tool may write, wherever
	// they lie: what says which programs run, and these programs. fs_write refuses them, and
	// shell_run refuses every command while one of them lies where commands may write.
	Protect []string
	// Private are paths like those of Protect that no tool may read either: keys, and what
	// other sessions said.
	Private []string
}

// Workspace is one directory and the tools that work in it. It may be used from
// many goroutines at once.
type Workspace struct {
	root  *os.Root
	given string // the root as it was named, absolute
	real  string // the root without symlinks
	homes string // where each session has its HOME; empty for one that lasts a command
	opts  Options
	// kernel is what commands are held with.
	kernel confine.Kernel

	external []*Workspace
}

// Open opens a directory as a workspace. A fault in the options or a root that
// is no directory is an [agent.CodeInvalidInput] error.
func Open(root string, o *Options) (*Workspace, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Workspace{opts: *o, kernel: confine.HostKernel()}
	var err error
	if w.given, err = filepath.Abs(root); err == nil {
		w.real, err = filepath.EvalSymlinks(w.given)
	}
	if err == nil {
		w.root, err = os.OpenRoot(w.real)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "workspace %q can't be opened: %w", root, err).WithPath("workspace")
	}
	if private := confine.LookUp(o.Private).Containing(w.real); private != "" {
		w.root.Close()
		return nil, agent.Errorf(agent.CodeInvalidInput, "workspace %q lies in %s, which no tool may read: give it a folder of its own", root, private).WithPath("workspace")
	}
	w.homes = homes(w.real)
	for _, path := range o.ExternalRoots {
		e, err := Open(path, &Options{AllowSensitive: o.AllowSensitive, Home: o.Home, Protect: o.Protect, Private: o.Private})
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("external roots: %w", err)
		}
		w.external = append(w.external, e)
	}
	return w, nil
}

// at is the directory that a path of the model leads into: this one, unless it is
// an absolute path into one that is allowed besides.
func (w *Workspace) at(path string) *Workspace {
	if !filepath.IsAbs(filepath.FromSlash(path)) {
		return w
	}
	if _, err := w.inside(path); err == nil {
		return w
	}
	for _, e := range w.external {
		if _, err := e.inside(path); err == nil {
			return e
		}
	}
	return w
}

func (o *Options) check() error {
	if _, fault := confine.Check(o.Sandbox, o.Confine); fault != "" {
		return agent.Errorf(agent.CodeInvalidInput, "workspace: %s", fault).WithPath("workspace")
	}
	for _, path := range slices.Concat([]string{o.Home}, o.Read, o.Write, o.ExternalRoots, o.Protect, o.Private) {
		if path != "" && !filepath.IsAbs(path) {
			return agent.Errorf(agent.CodeInvalidInput, "workspace: %q must be an absolute path", path).WithPath("workspace")
		}
	}
	return nil
}

func homes(root string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "" // a process without a home: each command gets a new one
	}
	return filepath.Join(cache, "fermata", "shell", digest(root))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Close gives the directories back. Tools that are called later fail.
func (w *Workspace) Close() error {
	err := w.root.Close()
	for _, e := range w.external {
		err = errors.Join(err, e.Close())
	}
	return err
}

// Tools are fs_read, fs_list, fs_grep, fs_write and shell_run.
func (w *Workspace) Tools() []tool.Tool {
	return []tool.Tool{
		tool.New(ReadTool, readHelp, w.read, &tool.Options{Local: true, Attempts: 2, Timeout: time.Minute}),
		tool.New(ListTool, listHelp, w.list, &tool.Options{Local: true, Attempts: 2, Timeout: time.Minute}),
		tool.New(GrepTool, grepHelp, w.grep, &tool.Options{ReadOnly: true, Attempts: 2, Timeout: 2 * grepTime}),
		tool.New(WriteTool, writeHelp, w.write, &tool.Options{Timeout: time.Minute}),
		tool.New(ShellTool, shellHelp+w.Confinement(), w.shell, &tool.Options{Timeout: maxCommandTime + time.Minute}),
	}
}

// HoldsNetwork reports whether this machine's kernel can keep commands from the network.
func HoldsNetwork() bool { return confine.HostKernel().Seccomp }

// policy is what a command may do, beside the directories of its own.
func (w *Workspace) policy(own ...string) *confine.Policy {
	write := w.opts.Write
	if w.opts.Home != "" {
		write = append(write[:len(write):len(write)], w.opts.Home)
	}
	return &confine.Policy{
		Kernel: w.kernel, Sandbox: w.opts.Sandbox, Confine: w.opts.Confine, AsRoot: w.opts.AsRoot, Network: w.opts.Network,
		Own: own, Write: write, Read: w.opts.Read, Protect: w.opts.Protect, Private: w.opts.Private,
	}
}

// CheckShell reports why shell_run refuses every command: an [agent.CodeDenied] error; nil if
// it makes them. The error names paths of this machine.
func (w *Workspace) CheckShell() error {
	root, err := w.root.Open(".")
	if err != nil {
		return agent.Errorf(agent.CodeDenied, "%s: the workspace: %w", ShellTool, err)
	}
	defer root.Close()
	p := w.policy()
	p.Dir = root
	if err := p.Fault(); err != nil {
		return agent.Errorf(agent.CodeOf(err), "%s: %w", ShellTool, err)
	}
	return nil
}

// CheckWrite reports why fs_write refuses every file: an [agent.CodeDenied] error; nil if it
// writes some. The error names paths of this machine.
func (w *Workspace) CheckWrite() error {
	info, err := w.root.Stat(".")
	if err != nil {
		return agent.Errorf(agent.CodeDenied, "%s: the workspace: %w", WriteTool, err)
	}
	if path := confine.LookUp(w.opts.Protect).Is(info); path != "" {
		return agent.Errorf(agent.CodeDenied, "%s: no tool may write what is in %s, and it is the workspace: give that a folder of its own", WriteTool, path)
	}
	return nil
}

// Confined reports whether the kernel keeps what shell_run starts from the files
// outside of the workspace, as the package comment describes.
func (w *Workspace) Confined() bool { return w.policy().Enforced() }

// Confinement says what holds a command: for the model and for people.
func (w *Workspace) Confinement() string {
	if w.CheckShell() != nil {
		return "Commands are refused: this worker may not run any."
	}
	p := w.policy()
	switch {
	case p.Offline():
		return p.Words() + " They have no network."
	case p.Enforced():
		return p.Words() + " They have the network, with this machine's own ports."
	}
	return p.Words() // that nothing holds them
}

// ended reports whether nobody waits for the result any more.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
