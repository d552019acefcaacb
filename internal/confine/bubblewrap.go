package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// bubblewrap confines programs with the command bwrap, in their own namespaces, and with
// seccomp.
type bubblewrap struct{}

func (bubblewrap) held(*Policy) (files, network bool) { return true, true }

func (bubblewrap) name() string { return "bubblewrap" }

func (bubblewrap) words(*Policy) string {
	return "Bubblewrap holds commands in the workspace: " + reach + "; nothing else exists for them."
}

// bwrap finds the program.
func bwrap() (string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", fmt.Errorf("bubblewrap can't hold it: %w: install it (the package is called bubblewrap), or leave sandbox out", err)
	}
	return path, nil
}

// fault tries bwrap itself, once for each path that PATH leads to.
func (bubblewrap) fault(p *Policy) error {
	if !p.Kernel.Seccomp {
		return errors.New("bubblewrap can't hold it: that takes Linux with seccomp, on amd64 or arm64: leave sandbox out")
	}
	path, err := bwrap()
	if err != nil {
		return err
	}
	// OnceValue in a map: calls at the same time try it only once.
	try, _ := tried.LoadOrStore(path, sync.OnceValue(func() error { return try(path) }))
	return try.(func() error)()
}

// tried has the result of trying a bwrap, by its path.
var tried sync.Map

// tryTime is how long a bwrap that does nothing may take.
const tryTime = 10 * time.Second

// try has bwrap set up all that a program gets, except for its files.
func try(path string) error {
	top, err := os.Open("/")
	if err != nil {
		return err
	}
	defer top.Close()
	cmd := exec.Command(path, append(unshared(false), "--ro-bind-fd", "3", "/", "--proc", "/proc", "--", shellPath, "-c", ":")...)
	cmd.Env, cmd.ExtraFiles, cmd.WaitDelay = []string{}, []*os.File{top}, time.Second
	timer := time.AfterFunc(tryTime, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	switch {
	case strings.Contains(said, "-bind-fd"):
		return fmt.Errorf("bubblewrap can't hold it: %s is too old (%s): it takes 0.10, or the security update of your distribution. Update it, or leave sandbox out", path, said)
	case strings.Contains(said, "mount proc"):
		return fmt.Errorf("bubblewrap can't hold it: it may not mount /proc here (%s), as in most containers: allow that (docs/tools.md), or leave sandbox out, since Landlock needs nothing of a container", said)
	}
	return fmt.Errorf("bubblewrap can't hold it: %s fails (%v: %s). It takes user namespaces for the worker's user: allow them (docs/tools.md says how), or leave sandbox out", path, err, said)
}

// unshared are bwrap's options for a program's namespaces. The program is the first
// process of its PID namespace; bwrap's own helper would be one without the filter.
func unshared(network bool) []string {
	list := []string{"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL"}
	if !network {
		list = append(list, "--unshare-net")
	}
	return list
}
