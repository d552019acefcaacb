package confine

import (
	"fmt"
)

// landlock confines programs with what the kernel offers to everybody: Landlock and
// seccomp.
type landlock struct{}

func (landlock) fault(p *Policy) error {
	if p.Kernel.Holds() {
		return nil
	}
	return fmt.Errorf("the kernel of this machine can't hold it: that takes Linux 6.2 with Landlock and seccomp, on amd64 or arm64 (here: %s). Run the worker in a container or a virtual machine of its own, and write confine: where_possible", p.Kernel)
}

func (landlock) held(p *Policy) (files, network bool) { return p.Kernel.Files(), p.Kernel.Seccomp }

func (landlock) name() string { return "the kernel" }

func (landlock) words(p *Policy) string {
	text := fmt.Sprintf("The kernel holds commands in the workspace (Landlock %d): %s", p.Kernel.Landlock, reach)
	switch {
	case p.Kernel.Landlock == 0:
		return unheld
	case p.Kernel.Signals():
		return text + "."
	case p.Kernel.Files():
		return text + "; they can signal other processes of this user."
	}
	return text + "; they can truncate files elsewhere and signal other processes of this user. Stay in the workspace."
}

// reach describes what a command can do with files.
const reach = "they can write only there, in HOME and in TMPDIR, and read besides only the system's files"
