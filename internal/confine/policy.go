package confine

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// Versions of Landlock. Since the first (Linux 6.2) a program can't truncate files
// elsewhere, and since the second (6.12) it can't signal processes elsewhere.
const (
	filesABI   = 3
	signalsABI = 6
)

// Kernel is what a kernel can confine programs with. The zero value can't confine
// anything.
type Kernel struct {
	Landlock int // its version; zero if the kernel lacks it
	Seccomp  bool
}

// Holds reports whether the kernel can confine a program to its files and keep it off the
// network.
func (k Kernel) Holds() bool { return k.Landlock >= filesABI && k.Seccomp }

// Files reports whether the kernel can confine a program to its files.
func (k Kernel) Files() bool { return k.Landlock >= filesABI }

// Signals reports whether the kernel can keep a program from signalling others.
func (k Kernel) Signals() bool { return k.Landlock >= signalsABI }

// Policy says what a program, and all that it starts, may do.
type Policy struct {
	Kernel Kernel
	// Sandbox names what confines the program. Confine says what happens if that is not
	// possible. Check both with [Check] first.
	Sandbox tool.Sandbox
	Confine tool.Confine
	// AsRoot lets the program run as root if this process does.
	AsRoot bool
	// Network lets the program have sockets.
	Network bool
	// Dir is an open directory that the program may write; nil if there is none.
	Dir *os.File
	// Own are directories that the program may write, and that must exist.
	Own []string
	// Write and Read are further paths; those that do not exist are skipped. Paths that
	// every program needs (see [Readable]) need not be listed.
	Write, Read []string
	// Protect are paths that the program must not be able to write, because they decide
	// what runs and as which user. Private are paths that it must not be able to read
	// either.
	Protect, Private []string
}

// IsRoot reports whether this process runs as root.
func IsRoot() bool { return os.Geteuid() == 0 }

// Fault returns why nothing may be started under the policy ([agent.CodeDenied]), or nil.
func (p *Policy) Fault() error {
	switch {
	case IsRoot() && !p.AsRoot:
		return agent.Errorf(agent.CodeDenied, "the worker runs as root, and starts no program that way: run it as another user, or write as_root: true at the top of the agents file (AsRoot in Go), after which a program's files are root's")
	case p.Confine == "" || p.Confine == tool.ConfineAlways:
		if err := p.sandbox().fault(p); err != nil {
			return agent.Errorf(agent.CodeDenied, "%w", err)
		}
	}
	return p.exposed()
}

// exposed returns an error that names a path of the worker that the policy gives away, or
// nil.
func (p *Policy) exposed() error {
	// Without confinement a program reaches all of them; the user chose that.
	if p.Confine == tool.ConfineNever {
		return nil // it gives away all of them
	}
	private := LookUp(p.Private)
	fixed := append(LookUp(p.Protect), private...)
	writes := p.Write
	if p.Dir != nil {
		writes = append([]string{p.Dir.Name()}, writes...)
	}
	for _, dir := range writes {
		if path := fixed.In(dir); path != "" {
			return agent.Errorf(agent.CodeDenied, "programs could write %s, which decides what the worker runs or is the worker's own, since they may write %s: give them a folder of their own", path, filepath.Clean(dir))
		}
	}
	for _, dir := range append(writes, p.Read...) {
		path := private.In(dir)
		if path == "" {
			path = private.Containing(dir)
		}
		if path != "" {
			return agent.Errorf(agent.CodeDenied, "programs could read %s, which is the worker's own, since they may read %s: give them a folder of their own", path, filepath.Clean(dir))
		}
	}
	return nil
}

// Enforced reports whether programs are confined to their files under the policy.
func (p *Policy) Enforced() bool {
	files, _ := p.sandbox().held(p)
	return p.Confine != tool.ConfineNever && files
}

// Offline reports whether programs have no network under the policy.
func (p *Policy) Offline() bool {
	_, network := p.sandbox().held(p)
	return p.Confine != tool.ConfineNever && !p.Network && network
}

// Holder returns the name of what confines programs, such as "the kernel".
func (p *Policy) Holder() string { return p.sandbox().name() }

// Words describes what confines programs, for people and models.
func (p *Policy) Words() string {
	if p.Confine == tool.ConfineNever {
		return unheld
	}
	return p.sandbox().words(p)
}

const unheld = "Nothing but your care holds commands in the workspace on this machine: stay in it."

// String describes the kernel's abilities.
func (k Kernel) String() string {
	seccomp := "no seccomp filter"
	if k.Seccomp {
		seccomp = "seccomp"
	}
	if k.Landlock == 0 {
		return "no Landlock, " + seccomp
	}
	return fmt.Sprintf("Landlock %d, %s", k.Landlock, seccomp)
}
