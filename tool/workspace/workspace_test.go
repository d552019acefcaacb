package workspace_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/stretchr/testify/require"
)

type args = map[string]any

// bench is a workspace with something outside of it to reach for.
type bench struct {
	*workspace.Workspace
	root    string
	outside string // a directory beside the root, with a file "secret"
	session string
}

func setup(t *testing.T, o *workspace.Options) bench {
	t.Helper()
	if o == nil {
		o = &workspace.Options{}
	}
	base := t.TempDir()
	b := bench{root: filepath.Join(base, "root"), outside: filepath.Join(base, "outside")}
	require.NoError(t, os.Mkdir(b.root, 0o755))
	require.NoError(t, os.Mkdir(b.outside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b.outside, "secret"), []byte("s3cret"), 0o644))
	if o.Home == "" {
		o.Home = t.TempDir()
	}
	o.AsRoot = true // CI is root
	w, err := workspace.Open(b.root, o)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	b.Workspace = w
	return b
}

func (b bench) put(t testing.TB, path, text string) {
	t.Helper()
	full := filepath.Join(b.root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
	require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
}

func (b bench) get(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.root, path))
	require.NoError(t, err)
	return string(text)
}

func (b bench) link(t testing.TB, target, path string) {
	t.Helper()
	full := filepath.Join(b.root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
	require.NoError(t, os.Symlink(target, full))
}

// do calls a tool as the runtime does.
func (b bench) do(name string, in args) (string, error) {
	return b.doContext(context.Background(), name, in, nil)
}

func (b bench) doContext(ctx context.Context, name string, in args, progress func(string)) (string, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	for _, t := range b.Tools() {
		if t.Spec().Name == name {
			return t.Call(ctx, tool.Call{Session: b.session, Tool: name, Arguments: raw}.With(&toolcall.Hooks{Progress: progress}))
		}
	}
	return "", agent.CodeUnknownTool
}

func (b bench) ok(t testing.TB, name string, in args) string {
	t.Helper()
	text, err := b.do(name, in)
	require.NoError(t, err)
	return text
}

// refused checks that a call is refused with these words.
func (b bench) refused(t testing.TB, name string, in args, words string) {
	t.Helper()
	text, err := b.do(name, in)
	require.ErrorIs(t, err, agent.CodeDenied, "answer: %s", text)
	require.ErrorContains(t, err, words)
	if path, _ := in["path"].(string); !filepath.IsAbs(path) {
		require.NotContains(t, err.Error(), filepath.Dir(b.root), "the model is shown a path of the machine")
	}
}

func TestToolsAreSound(t *testing.T) {
	b := setup(t, nil)
	want := map[string]agent.ToolSpec{
		"fs_read":   {Local: true, ReadOnly: true, Attempts: 2},
		"fs_list":   {Local: true, ReadOnly: true, Attempts: 2},
		"fs_grep":   {ReadOnly: true, Attempts: 2},
		"fs_write":  {},
		"shell_run": {},
	}
	for _, tl := range b.Tools() {
		spec := tl.Spec()
		require.NoError(t, tl.Err())
		require.Contains(t, want, spec.Name)
		require.NotEmpty(t, spec.Description)
		require.Equal(t, want[spec.Name], agent.ToolSpec{Local: spec.Local, ReadOnly: spec.ReadOnly, Attempts: spec.Attempts}, spec.Name)
		require.NotContains(t, spec.Description, b.root)
		delete(want, spec.Name)
	}
	require.Empty(t, want)
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for name, open := range map[string]func() (*workspace.Workspace, error){
		"missing":       func() (*workspace.Workspace, error) { return workspace.Open(file+"s", nil) },
		"a file":        func() (*workspace.Workspace, error) { return workspace.Open(file, nil) },
		"relative home": func() (*workspace.Workspace, error) { return workspace.Open(".", &workspace.Options{Home: "x"}) },
		"relative read": func() (*workspace.Workspace, error) {
			return workspace.Open(".", &workspace.Options{Read: []string{"x"}})
		},
		"relative write": func() (*workspace.Workspace, error) {
			return workspace.Open(".", &workspace.Options{Write: []string{"x"}})
		},
	} {
		_, err := open()
		require.ErrorIs(t, err, agent.CodeInvalidInput, name)
	}
}

func TestClosedWorkspaceFails(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "a", "text")
	require.NoError(t, b.Close())
	for name, in := range map[string]args{
		"fs_read": {"path": "a"}, "fs_list": {}, "fs_grep": {"pattern": "x"},
		"fs_write": {"path": "a", "content": "new"},
	} {
		_, err := b.do(name, in)
		require.Error(t, err, name)
	}
	require.Equal(t, "text", b.get(t, "a"))
}

func TestRootMayBeASymlink(t *testing.T) {
	b := setup(t, nil)
	b.put(t, "dir/a", "text")
	alias := filepath.Join(b.outside, "alias")
	require.NoError(t, os.Symlink(b.root, alias))
	w, err := workspace.Open(alias, nil)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	c := bench{Workspace: w, root: b.root, outside: b.outside}
	for _, path := range []string{"dir/a", filepath.Join(alias, "dir/a"), filepath.Join(b.root, "dir", "a")} {
		require.Equal(t, "text", c.ok(t, "fs_read", args{"path": path}), path)
	}
}
