package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// keyFiles begin the names of variables that may name files with keys, and keyNames end those
// of others, such as ANTHROPIC_API_KEY_FILE.
var (
	keyFiles = []string{"FERMATA_", "TEMPORAL_", "AWS_", "AZURE_", "GOOGLE_"}
	keyNames = []string{"_KEY_FILE", "_KEYS_FILE", "_TOKEN_FILE", "_SECRET_FILE", "_PASSWORD_FILE"}
)

// namesKeys reports whether a variable may name a file with keys.
func namesKeys(variable string) bool {
	return slices.ContainsFunc(keyFiles, func(start string) bool { return strings.HasPrefix(variable, start) }) ||
		slices.ContainsFunc(keyNames, func(end string) bool { return strings.HasSuffix(variable, end) })
}

// private are the paths that are this program's own, and that no tool of its agents may
// touch: the data directory, the store, and what the environment names of files.
func (c *cli) private() (list []string, err error) {
	dir, err := c.dataDir()
	if err != nil {
		return nil, err
	}
	list = append(list, dir)
	place, err := c.storePlace()
	if err != nil {
		return nil, err
	}
	if !strings.Contains(place, "://") {
		list = append(list, place)
	}
	if c.policy != "" {
		policy, err := filepath.Abs(c.policy)
		if err != nil {
			return nil, err
		}
		list = append(list, policy)
	}
	if record := os.Getenv(env.Audit); record != "" { // it may not be there yet
		if record, err = filepath.Abs(record); err != nil {
			return nil, err
		}
		list = append(list, record, audit.LockPath(record))
	}
	for _, pair := range os.Environ() {
		name, path, _ := strings.Cut(pair, "=")
		if !namesKeys(name) {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		list = append(list, path)
	}
	if config, err := os.UserConfigDir(); err == nil {
		list = append(list, filepath.Join(config, "temporalio", "temporal.toml"))
	}
	return list, nil
}

// unheldRemedy is what to do about a program that nothing holds.
const unheldRemedy = "leave confine out, or run the worker in a container or a virtual machine of its own"

// unheld says which programs nothing holds; empty if none.
func unheld(f *agentsfile.File) string {
	programs := f.UnconfinedPrograms()
	if len(programs) == 0 {
		return ""
	}
	return "nothing holds " + strings.Join(programs, " and ") + ": they may do all that the worker's user may, and rewrite " + f.Path + " and what it names"
}

// checkSandbox says what holds the programs of the agents' tools.
func (d *doctor) checkSandbox() {
	f := d.file
	if dir := f.Workspace(); dir != "" {
		d.checkWorkspace(dir, f.WorkspaceOptions())
	}
	if text := unheld(f); text != "" {
		d.found("sandbox", verdictWarning, text, unheldRemedy)
	}
	if f.AsRoot() && os.Geteuid() == 0 {
		d.found("sandbox", verdictWarning, "programs of tools run as root, without its capabilities: what they leave is root's", "run the worker as another user, and leave as_root out")
	}
}

// checkWorkspace looks whether the agents' tools may work in the workspace.
func (d *doctor) checkWorkspace(dir string, o *workspace.Options) {
	w, err := workspace.Open(dir, o)
	if err != nil {
		d.failed("workspace", err, "")
		return
	}
	defer w.Close()
	if err := w.CheckWrite(); err != nil && d.file.Uses(workspace.WriteTool) {
		d.failed("workspace", err, elsewhere)
	}
	if !d.file.Uses(workspace.ShellTool) {
		return
	}
	if err := w.CheckShell(); err != nil {
		d.failed("shell", err, elsewhere)
		return
	}
	d.checkShell(w, verdictWarning)
}

const elsewhere = "see docs/tools.md on what holds programs; a workspace of its own is named so: workspace: ./project"

// checkShell says what holds commands; worst is how bad it is if nothing does.
func (d *doctor) checkShell(w *workspace.Workspace, worst verdict) {
	if w.Confined() {
		d.found("shell", verdictOK, w.Confinement(), "")
		return
	}
	d.found("shell", worst, w.Confinement(), "run workers whose agents have shell_run in a container or a virtual machine")
}

// checkKernel says what would hold commands on this machine.
func (d *doctor) checkKernel() {
	w, err := workspace.Open(".", &workspace.Options{AsRoot: true, Confine: tool.ConfineWherePossible})
	if err != nil {
		d.failed("shell", err, "")
		return
	}
	defer w.Close()
	d.checkShell(w, verdictSkipped)
}
