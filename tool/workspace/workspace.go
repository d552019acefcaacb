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

// Options says how a workspace is confined; nil means all defaults.
type Options struct {
	// AllowSensitive lets the file tools read and write files that usually hold secrets;
	// see the package comment.
	AllowSensitive bool
	// Env names environment variables of this process that commands get, besides the
	// short list that they always get.
	Env []string
	// Home is the HOME of commands, for all sessions. Empty means a directory for each
	// session below [os.UserCacheDir]. Then no session runs what another left there, such
	// as a configuration of git.
	Home string
	// Read and Write are further absolute paths that a confined command may read, or read
	// and write, such as a shared module cache.
	Read, Write []string
	// ExternalRoots are further absolute directories whose files the file tools may read
	// and write, by their absolute paths. All else outside is refused. The shell has its
	// own lists, Read and Write.
	ExternalRoots []string
	// Network lets commands use the network, and what listens on this machine: Temporal,
	// databases, Docker. Without it they have no sockets, not even between their own
	// processes.
	Network bool
	// Sandbox names what confines commands; empty means [tool.SandboxLandlock].
	Sandbox tool.Sandbox
	// Confine says what happens if the kernel can't confine commands; empty means that
	// they are refused ([tool.ConfineAlways]).
	Confine tool.Confine
	// AsRoot lets commands run as root if this process does. Without it they are then
	// refused. They have none of root's capabilities, but their files belong to root.
	AsRoot bool
	// Protect are absolute paths of files and directories that no tool may write,
	// wherever they are: what decides which programs run, and these programs. fs_write
	// refuses them. shell_run refuses every command while one of them lies where commands
	// may write.
	Protect []string
	// Own is the directory in which sub-agents get workspaces of their own, absolute. No tool may write
	// it. Empty means one below [os.UserCacheDir]. If several machines work for a task queue, it has to
	// be a directory that they share, as the workspace itself.
	Own string
	// Private are paths like Protect that no tool may read either: keys, and what other
	// sessions said.
	Private []string
}

// Workspace is one directory with the tools that work in it. It is safe for use by many
// goroutines at once. Close it after use.
type Workspace struct {
	root  *os.Root
	given string // the root as the caller named it, absolute
	real  string // the root without symlinks
	homes string // the parent of the sessions' HOMEs; empty if a HOME lasts only for a command
	opts  Options
	// kernel is what the kernel can confine commands with.
	kernel confine.Kernel

	external []*Workspace

	own string // where sub-agents' own workspaces are; empty if there is no place for them
	// env and owned are set in a copy that serves one call: its variables, and the root that it opened.
	env   map[string]string
	owned *os.Root
}

// Open opens a directory as a workspace. Wrong options, or a root that is not a
// directory, are [agent.CodeInvalidInput] errors.
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
	// Every tool call would be refused in such a workspace; say so when it is opened.
	if private := confine.LookUp(o.Private).Containing(w.real); private != "" {
		w.root.Close()
		return nil, agent.Errorf(agent.CodeInvalidInput, "workspace %q lies in %s, which no tool may read: give it a folder of its own", root, private).WithPath("workspace")
	}
	w.homes, w.own = homes(w.real), ownRoot(o, w.real)
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

// at returns the workspace that a path leads into: an external root for an absolute path
// in it, otherwise this one.
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
	for _, path := range slices.Concat([]string{o.Home, o.Own}, o.Read, o.Write, o.ExternalRoots, o.Protect, o.Private) {
		if path != "" && !filepath.IsAbs(path) {
			return agent.Errorf(agent.CodeInvalidInput, "workspace: %q must be an absolute path", path).WithPath("workspace")
		}
	}
	return nil
}

func homes(root string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "" // no home: each command gets a new one
	}
	return filepath.Join(cache, "fermata", "shell", digest(root))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Close closes the directories. Tools that are called later fail.
func (w *Workspace) Close() error {
	err := w.root.Close()
	for _, e := range w.external {
		err = errors.Join(err, e.Close())
	}
	return err
}

// Tools returns fs_read, fs_list, fs_grep, fs_write and shell_run.
func (w *Workspace) Tools() []tool.Tool {
	return []tool.Tool{
		tool.New(ReadTool, readHelp, inPlace(w, (*Workspace).read), &tool.Options{Local: true, Attempts: 2, Timeout: time.Minute}),
		tool.New(ListTool, listHelp, inPlace(w, (*Workspace).list), &tool.Options{Local: true, Attempts: 2, Timeout: time.Minute}),
		tool.New(GrepTool, grepHelp, inPlace(w, (*Workspace).grep), &tool.Options{ReadOnly: true, Attempts: 2, Timeout: 2 * grepTime}),
		tool.New(WriteTool, writeHelp, inPlace(w, (*Workspace).write), &tool.Options{Timeout: time.Minute}),
		tool.New(ShellTool, shellHelp+w.Confinement(), inPlace(w, (*Workspace).shell), &tool.Options{Timeout: maxCommandTime + time.Minute}),
	}
}

// HoldsNetwork reports whether this machine's kernel can keep commands from the network.
func HoldsNetwork() bool { return confine.HostKernel().Seccomp }

// policy returns what a command may do. own are its own directories.
func (w *Workspace) policy(own ...string) *confine.Policy {
	write := w.opts.Write
	if w.opts.Home != "" {
		// The full slice expression makes append copy: opts.Write is shared by all calls.
		write = append(write[:len(write):len(write)], w.opts.Home)
	}
	return &confine.Policy{
		Kernel: w.kernel, Sandbox: w.opts.Sandbox, Confine: w.opts.Confine, AsRoot: w.opts.AsRoot, Network: w.opts.Network,
		Own: own, Write: write, Read: w.opts.Read, Protect: w.opts.Protect, Private: w.opts.Private,
	}
}

// CheckShell returns why shell_run refuses every command ([agent.CodeDenied]), or nil.
// The error names paths of this machine, so do not show it to a model.
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

// CheckWrite returns why fs_write refuses every file ([agent.CodeDenied]), or nil. The
// error names paths of this machine, so do not show it to a model.
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

// Confined reports whether the kernel keeps commands from the files outside of the
// workspace, as the package comment describes.
func (w *Workspace) Confined() bool { return w.policy().Enforced() }

// Confinement describes, for the model and for people, what confines a command.
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
	return p.Words() // says that nothing confines them
}

// ended returns why the call is over, or nil while somebody waits for it.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
