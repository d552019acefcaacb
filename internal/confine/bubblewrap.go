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

// bubblewrap holds programs by the command bwrap, in namespaces of their own, and by seccomp.
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

// fault asks bwrap itself, once for each place where the PATH leads to one.
func (bubblewrap) fault(p *Policy) error {
	if !p.Kernel.Seccomp {
		return errors.New("bubblewrap can't hold it: that takes Linux with seccomp, on amd64 or arm64: leave sandbox out")
	}
	path, err := bwrap()
	if err != nil {
		return err
	}
	try, _ := tried.LoadOrStore(path, sync.OnceValue(func() error { return try(path) }))
	return try.(func() error)()
}

// tried has what came of trying a bwrap, by its path.
var tried sync.Map

// tryTime is how long bwrap may take that does nothing.
const tryTime = 10 * time.Second

// try has bwrap make all that a program gets, except for its files.
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

// unshared are the namespaces that a program gets. It is the first process of its own, so that
// none is there that the filter does not hold.
func unshared(network bool) []string {
	list := []string{"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL"}
	if !network {
		list = append(list, "--unshare-net")
	}
	return list
}
