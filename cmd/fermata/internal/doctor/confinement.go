package doctor

import (
	"fmt"
	"os"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// checkSandbox says what confines the programs of the agents' tools.
func (d *examination) checkSandbox() {
	f := d.file
	if dir := f.Workspace(); dir != "" {
		d.checkWorkspace(dir, f.WorkspaceOptions())
	}
	if text := localworker.UnconfinedPrograms(f); text != "" {
		d.found("sandbox", Warning, text, localworker.UnconfinedRemedy)
	}
	if f.AsRoot() && os.Geteuid() == 0 {
		d.found("sandbox", Warning, "programs of tools run as root, without its capabilities: files that they leave belong to root", "run the worker as another user, and leave as_root out")
	}
}

// checkWorkspace checks whether the agents' tools may work in the workspace.
func (d *examination) checkWorkspace(dir string, o *workspace.Options) {
	w, err := workspace.Open(dir, o)
	if err != nil {
		d.failed("workspace", err, "")
		return
	}
	defer w.Close()
	if err := w.CheckWrite(); err != nil && d.file.Uses(workspace.WriteTool) {
		d.failed("workspace", err, elsewhere)
	}
	for _, def := range d.file.Definitions() {
		if def.Daemon == nil {
			continue
		}
		if err := w.CheckWatch(def.Daemon.Watch); err != nil {
			d.failed("watch", fmt.Errorf("agent %s: %w", def.Name, err), "watch paths of the workspace that the file tools may read, see docs/daemons.md")
		}
	}
	if !d.file.Uses(workspace.ShellTool) {
		return
	}
	if err := w.CheckShell(); err != nil {
		d.failed("shell", err, elsewhere)
		return
	}
	d.checkShell(w, Warning)
}

const elsewhere = "see docs/tools.md on what holds programs; to name a separate workspace, write workspace: ./project"

// checkShell says what confines commands; worst is the verdict if nothing does.
func (d *examination) checkShell(w *workspace.Workspace, worst Verdict) {
	if w.Confined() {
		d.found("shell", OK, w.Confinement(), "")
		return
	}
	d.found("shell", worst, w.Confinement(), "run workers whose agents have shell_run in a container or a virtual machine")
}

// checkKernel says what could confine commands on this machine.
func (d *examination) checkKernel() {
	// Nothing is run here, so root or a missing confinement is no error.
	w, err := workspace.Open(".", &workspace.Options{AsRoot: true, Confine: tool.ConfineWherePossible})
	if err != nil {
		d.failed("shell", err, "")
		return
	}
	defer w.Close()
	d.checkShell(w, Skipped)
}
