package agentsfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// held says what a program may do that the kernel holds: commands of the shell, or that of
// an MCP server.
type held struct {
	// Network lets the program use the network, and all that listens on this machine.
	Network bool `json:"network"`
	// Read are further paths that the program may read, relative to the agents file.
	Read []string `json:"read"`
	// Write are further paths that the program may read and write, relative to the agents file.
	Write []string `json:"write"`
	// Sandbox is what confines the program.
	Sandbox tool.Sandbox `json:"sandbox" default:"landlock"`
	// Confine says what happens if the kernel cannot confine the program: it is not started
	// (always), or started with what the kernel can do (where_possible). Under never, nothing
	// confines it.
	Confine tool.Confine `json:"confine" default:"always"`
}

// fault returns what is wrong with it, and where.
func (h held) fault() (field, text string) {
	if field, fault := confine.Check(h.Sandbox, h.Confine); fault != "" {
		return field, "." + fault
	}
	switch {
	case slices.Contains(h.Read, ""):
		return "read", ".read has an empty path"
	case slices.Contains(h.Write, ""):
		return "write", ".write has an empty path"
	}
	return "", ""
}

// paths makes paths of the file absolute.
func (f *File) paths(list []string) (out []string) {
	for _, path := range list {
		out = append(out, within(f.Dir, path))
	}
	return out
}

// shellEntry is what commands of the tool shell_run may do.
type shellEntry struct{ held }

func (f *File) readShell(c *checker, part entry) {
	if part.value == nil {
		return
	}
	f.shell, _ = decode[shellEntry](c, part, "shell") // errors are reported
	if field, fault := f.shell.fault(); fault != "" {
		c.add(agent.CodeInvalidInput, part.at(field), "shell%s", fault)
	}
}

func (f *File) readRoot(c *checker, part entry) {
	if part.value == nil {
		return
	}
	if part.value.Kind != yaml.ScalarNode || part.value.ShortTag() != "!!bool" {
		c.add(agent.CodeInvalidInput, part.key, "as_root is true or false")
		return
	}
	// YAML also allows True and TRUE.
	f.asRoot = strings.EqualFold(part.value.Value, "true")
}

// WorkspaceOptions returns the options of the agents' workspace.
func (f *File) WorkspaceOptions() *workspace.Options {
	return &workspace.Options{
		Network: f.shell.Network, Sandbox: f.shell.Sandbox, Confine: f.shell.Confine, AsRoot: f.asRoot, Read: f.paths(f.shell.Read), Write: f.paths(f.shell.Write),
		Protect: f.protected(), Private: f.private(), Own: f.own,
	}
}

// protected returns the files and folders that decide what the worker runs. No tool may
// write them.
func (f *File) protected() []string {
	// The ".new" file is written before it replaces the lock file.
	list := append([]string{filepath.Join(f.Dir, filepath.Base(f.Path)), f.lockPath(), f.lockPath() + ".new"}, f.scripts...)
	list = append(list, f.skillFiles()...)
	// A tool that writes this program would run as the next worker.
	if own, err := os.Executable(); err == nil {
		list = append(list, own)
	}
	_, servers := f.uses()
	for _, name := range servers {
		list = append(list, f.servers[name].programs()...)
	}
	return list
}

// programs returns the files of the server's command and their folders, and its working
// directory: interpreters load what is there. All are absolute.
func (e serverEntry) programs() (list []string) {
	if len(e.Command) == 0 {
		return nil
	}
	for _, path := range confine.ProgramFiles(e.Command, e.Dir) {
		list = append(list, path, filepath.Dir(path))
	}
	return append(list, e.Dir)
}

// private returns the paths that no tool may read: those of the worker, and keys of MCP
// servers.
func (f *File) private() []string {
	list := slices.Clone(f.Private)
	for _, s := range f.servers {
		if s.OAuth == nil {
			continue
		}
		for _, path := range []string{s.OAuth.Key, s.OAuth.Assertion} {
			if path != "" {
				list = append(list, path)
			}
		}
	}
	return list
}

// Check returns an error if the kit is not safe on this machine, or would refuse every
// call. Examples are a workspace in which tools could write what decides what runs,
// programs as root, and a kernel that can't confine them. It also ends programs that
// killed workers left.
func (k *Kit) Check() error {
	f := k.file
	tools, used := f.uses()
	err := f.skillsWritable(tools, used)
	if err == nil && slices.Contains(tools, workspace.WriteTool) {
		err = k.place.CheckWrite()
	}
	if err == nil && slices.Contains(tools, workspace.ShellTool) {
		err = k.place.CheckShell()
	}
	// A hint about another workspace helps only if the default one is used.
	switch own := f.workspace != f.Dir; {
	case err == nil:
	case own || confine.IsRoot() && !f.asRoot: // another workspace would not help
		return agent.Errorf(agent.CodeOf(err), "%s: %w", f.Path, err)
	default:
		return agent.Errorf(agent.CodeOf(err), "%s: %w; the workspace is %s; to name another one, write workspace: ./project", f.Path, err, f.workspace)
	}
	for i, s := range k.servers {
		if err := s.CheckStart(); err != nil {
			return agent.Errorf(agent.CodeOf(err), "%s:%d: mcp.%s: %w", f.Path, f.servers[used[i]].line, s.Name(), err)
		}
	}
	// A worker that was killed could not end them, and they keep their ports and files.
	confine.EndOrphans()
	return nil
}

// Workspace returns the absolute directory of the agents' tools; empty if no agent has such a
// tool, watches files, or gives a sub-agent a workspace of its own.
func (f *File) Workspace() string {
	if tools, _ := f.uses(); len(tools) == 0 && !slices.ContainsFunc(f.Definitions(), needsWorkspace) {
		return ""
	}
	return f.workspace
}

// needsWorkspace reports whether an agent needs the workspace without a tool that works in it.
func needsWorkspace(def agent.Definition) bool {
	own := func(a agent.SubAgent) bool { return a.Workspace != nil && a.Workspace.Kind != "" }
	return def.Daemon != nil && len(def.Daemon.Watch) > 0 || slices.ContainsFunc(def.Agents, own)
}

// Workspaces watches files, and makes workspaces of sub-agents; nil if no agent needs the workspace.
func (k *Kit) Workspaces() tool.Workspaces {
	if k.place == nil {
		return nil
	}
	return k.place
}

// Close closes the workspace and stops the servers.
func (k *Kit) Close() error {
	var faults []error
	// Closed in reverse: servers may still use the workspace.
	for _, c := range slices.Backward(k.open) {
		faults = append(faults, c.Close())
	}
	k.open = nil
	return errors.Join(faults...)
}

// AsRoot reports whether programs may run as root.
func (f *File) AsRoot() bool { return f.asRoot }

// Uses reports whether some agent has a workspace tool.
func (f *File) Uses(tool string) bool {
	tools, _ := f.uses()
	return slices.Contains(tools, tool)
}

// UnconfinedPrograms lists programs of the agents' tools that nothing confines, because
// the file says so.
func (f *File) UnconfinedPrograms() (programs []string) {
	free := func(h held) bool {
		return h.Confine == tool.ConfineNever || h.Confine == tool.ConfineWherePossible && !confine.HostKernel().Files()
	}
	if f.Uses(workspace.ShellTool) && free(f.shell.held) {
		programs = append(programs, "commands of "+workspace.ShellTool)
	}
	_, servers := f.uses()
	for _, name := range servers {
		if e := f.servers[name]; len(e.Command) > 0 && free(e.held) {
			programs = append(programs, "the MCP server "+name)
		}
	}
	return programs
}
