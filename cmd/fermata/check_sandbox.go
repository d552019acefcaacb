package main

import (
	"os"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// checkSandbox says what holds the programs of the agents' tools.
func (d *doctor) checkSandbox() {
	f := d.file
	if dir := f.Workspace(); dir != "" {
		d.checkWorkspace(dir, f.WorkspaceOptions())
	}
	if text := localworker.UnconfinedPrograms(f); text != "" {
		d.found("sandbox", verdictWarning, text, localworker.UnconfinedRemedy)
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
