package confine_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
)

// within says that the test runs where namespaces are refused.
const within = "FERMATA_TEST_WITHIN"

// A bubblewrap that can't hold programs starts none, and says what to do.
func TestBubblewrapThatCanNotHold(t *testing.T) {
	p := &confine.Policy{Kernel: confine.HostKernel(), Sandbox: tool.SandboxBubblewrap, AsRoot: true}
	if os.Getenv(within) != "" {
		require.ErrorIs(t, p.Fault(), agent.CodeDenied)
		require.ErrorContains(t, p.Fault(), "It takes user namespaces for the worker's user: allow them")
		_, err := confine.Start(exec.Command("true"), p)
		require.ErrorIs(t, err, agent.CodeDenied)
		return
	}
	testenv.Need(t, p.Fault())
	inner := exec.Command("bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--", os.Args[0], "-test.run=^"+t.Name()+"$")
	inner.Env = append(os.Environ(), within+"=1")
	out, err := inner.CombinedOutput()
	require.NoError(t, err, string(out))

	p.Kernel.Seccomp = false
	require.ErrorContains(t, p.Fault(), "that takes Linux with seccomp")
	p.Kernel = confine.HostKernel()
	t.Setenv("PATH", t.TempDir())
	require.ErrorIs(t, p.Fault(), agent.CodeDenied)
	require.ErrorContains(t, p.Fault(), "install it (the package is called bubblewrap)")
	old := t.TempDir()
	require.NoError(t, os.WriteFile(old+"/bwrap", []byte("#!/bin/sh\necho bwrap: Unknown option --ro-bind-fd >&2; exit 1\n"), 0o755))
	t.Setenv("PATH", old)
	require.ErrorContains(t, p.Fault(), "is too old")
}
