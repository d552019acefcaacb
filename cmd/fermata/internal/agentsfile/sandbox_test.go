package agentsfile_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// put writes an agents file into this directory, and the script of its models.
func put(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(agentsfile.DefaultName, []byte(text), 0o600))
	require.NoError(t, os.WriteFile("script.yaml", []byte("replies: [{text: Hello.}]\n"), 0o600))
}

// opened is a kit of the agents file in this directory, and what comes of checking it.
func opened(t *testing.T, text string, private ...string) (*agentsfile.File, *agentsfile.Kit, error) {
	t.Helper()
	put(t, text)
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	f.Private = private
	kit, err := f.Open(nil, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kit.Close()) })
	return f, kit, kit.Check()
}

// No tool writes what says which programs run: an agents file whose tools could is refused,
// where the kernel would let them, and else the call is.
func TestToolsDoNotWriteWhatRuns(t *testing.T) {
	if !confine.HostKernel().Holds() {
		testenv.Need(t, errors.New("this kernel can't hold programs"))
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, folder := range []string{"project", "bin", "server", "data"} {
		require.NoError(t, os.Mkdir(folder, 0o755))
	}
	for _, path := range []string{"bin/tickets", "server/index.js", "project/main.go"} {
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	}
	require.NoError(t, os.MkdirAll("project/skills/new", 0o755))
	require.NoError(t, os.Mkdir("project/skills/pdf", 0o755))
	require.NoError(t, os.WriteFile("project/skills/pdf/SKILL.md", []byte("---\nname: pdf\ndescription: Reads.\n---\nRead.\n"), 0o600))
	const agents = "as_root: true\nagents: {a: {model: \"script:script.yaml\", tools: ["
	for text, words := range map[string]string{
		"fs_read, fs_list]}}\n":                                       "",
		"fs_read, \"mcp:t\"]}}\nmcp: {t: {command: [cat]}}\n":         "",
		"fs_write]}}\n":                                               "",
		"shell_run]}}\n":                                              "programs could write " + filepath.Join(dir, "fermata.yaml"),
		"shell_run]}}\nworkspace: .\n":                                "to name another one, write workspace: ./project",
		"shell_run]}}\nworkspace: ./project\n":                        "",
		"shell_run]}}\nworkspace: ./project\nshell: {write: [bin]}\n": "",
		"shell_run]}}\nworkspace: ./project\nshell: {sandbox: bubblewrap, write: [.]}\n":                    "programs could write ",
		"shell_run]}}\nworkspace: ./project\nshell: {write: [.]}\n":                                         "programs could write ",
		"shell_run]}}\nworkspace: ./project\nshell: {read: [.]}\n":                                          "programs could read " + filepath.Join(dir, "data"),
		"shell_run]}}\nworkspace: ./data\n":                                                                 "", // told by Open
		"shell_run, \"mcp:t\"]}}\nworkspace: bin\nmcp: {t: {command: [bin/tickets]}}":                       "programs could write " + filepath.Join(dir, "bin"),
		"shell_run, \"mcp:t\"]}}\nworkspace: server\nmcp: {t: {command: [cat, server/index.js]}}":           "programs could write " + filepath.Join(dir, "server"),
		"shell_run, \"mcp:t\"]}}\nworkspace: server\nmcp: {t: {command: [cat, --file=server/index.js]}}":    "programs could write " + filepath.Join(dir, "server"),
		"shell_run, \"mcp:t\"]}}\nworkspace: project\nmcp: {t: {command: [cat], dir: project}}":             "programs could write " + filepath.Join(dir, "project"),
		"fs_write, \"mcp:t\"]}}\nmcp: {t: {command: [cat]}}\n":                                              "no tool may write what is in " + dir,
		"fs_write, \"mcp:t\"]}}\nmcp: {t: {command: [cat], dir: server}}\n":                                 "",
		"fs_write, \"mcp:t\"]}}\nworkspace: project\nmcp: {t: {command: [cat]}}\n":                          "",
		"shell_run]}}\nworkspace: ./project\nskills: [project/skills]\n":                                    "programs could write " + filepath.Join(dir, "project/skills"),
		"fs_write]}}\nworkspace: ./project/skills/pdf\nskills: [project/skills]\n":                          "no tool may write what is in " + filepath.Join(dir, "project/skills"),
		"shell_run]}}\nworkspace: ./project/skills/new\nskills: [project/skills]\n":                         "no tool may write what is in " + filepath.Join(dir, "project/skills"),
		"shell_run]}}\nworkspace: ./bin\nshell: {write: [project/skills/new]}\nskills: [project/skills]\n":  "no tool may write what is in " + filepath.Join(dir, "project/skills"),
		"\"mcp:t\"]}}\nmcp: {t: {command: [cat], write: [project/skills/new]}}\nskills: [project/skills]\n": "no tool may write what is in " + filepath.Join(dir, "project/skills"),
		"fs_write]}}\nworkspace: ./project\nskills: [project/skills]\n":                                     "",
		"\"mcp:t\"]}}\nmcp: {t: {command: [cat], write: [project]}}\nskills: [project/skills]\n":            "programs could write " + filepath.Join(dir, "project/skills"),
		"\"mcp:t\"]}}\nmcp: {t: {command: [cat], write: [project]}}\n":                                      "",
		"\"mcp:t\"]}}\nmcp: {t: {command: [cat], write: [.]}}\n":                                            "fermata.yaml:3: mcp.t: the MCP server t is not started: programs could write ",
		"\"mcp:t\"]}}\nmcp: {t: {command: [cat], read: [.]}}\n":                                             "programs could read " + filepath.Join(dir, "data"),
		"\"mcp:t\"]}}\nmcp: {t: {command: [cat], dir: .}}\n":                                                "programs could read " + filepath.Join(dir, "data"),
		"\"mcp:t\"]}}\nmcp: {t: {command: [cat], dir: ., confine: never}}\n":                                "",
	} {
		if text == "shell_run]}}\nworkspace: ./data\n" {
			put(t, agents+text)
			f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
			require.NoError(t, err)
			f.Private = []string{filepath.Join(dir, "data")}
			_, err = f.Open(nil, nil)
			require.ErrorContains(t, err, "which no tool may read")
			continue
		}
		if _, err := exec.LookPath("bwrap"); err != nil && strings.Contains(text, "bubblewrap") {
			t.Run("bubblewrap", func(t *testing.T) {
				testenv.Need(t, fmt.Errorf("install bubblewrap (apt-get install bubblewrap): %w", err))
			})
			continue
		}
		_, _, err := opened(t, agents+text, filepath.Join(dir, "data"))
		if words == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorIs(t, err, agent.CodeDenied, text)
		require.ErrorContains(t, err, words, text)
	}

	_, kit, err := opened(t, agents+"fs_write, \"mcp:t\"]}}\nmcp: {t: {command: [../bin/tickets], dir: server}}\nskills: [project/skills]\n", filepath.Join(dir, "data"))
	require.NoError(t, err)
	require.NoError(t, os.Link("project/skills/pdf/SKILL.md", "linked.md"))
	for _, tl := range kit.Tools {
		if tl.Spec().Name != workspace.WriteTool {
			continue
		}
		for path, want := range map[string]bool{
			"fermata.yaml": false, "script.yaml": false, "bin/tickets": false, "bin/other": false, "server/index.js": false, "server/node_modules/x.js": false, "data/head": false,
			"project/skills/pdf/SKILL.md": false, "project/skills/pdf/references/more.md": false, "project/skills/other/SKILL.md": false, "linked.md": false,
			"project/main.go": true, "notes.md": true,
		} {
			_, err := tl.Call(t.Context(), &tool.Call{Tool: workspace.WriteTool, Arguments: []byte(`{"path":"` + path + `","content":"evil"}`)})
			require.Equal(t, want, err == nil, "%s: %v", path, err)
		}
	}
}

// Where the worker is root, no program of a tool is started unless the file says so.
func TestNothingRunsAsRootUnasked(t *testing.T) {
	if !confine.IsRoot() {
		testenv.Need(t, errors.New("this is not root"))
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("project", 0o755))
	for _, text := range []string{"[shell_run]}}\n", "[\"mcp:t\"]}}\nmcp: {t: {command: [cat]}}\n", "[\"mcp:t\"]}}\nmcp: {t: {command: [cat], confine: never}}\n"} {
		text = "agents: {a: {model: \"script:script.yaml\", tools: " + text + "workspace: project\n"
		_, _, err := opened(t, text)
		require.ErrorIs(t, err, agent.CodeDenied)
		require.ErrorContains(t, err, "write as_root: true")
		f, _, err := opened(t, "as_root: true\n"+text)
		require.NoError(t, err)
		require.True(t, f.AsRoot())
	}
}

// What nothing holds is told, and so is what may give an approval.
func TestWhatNothingHolds(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("project", 0o755))
	const text = "as_root: true\nworkspace: project\nagents: {a: {model: \"script:script.yaml\", tools: [shell_run, \"mcp:t\"], rules: [{do: ask, tools: [shell_run]}]}}\n"
	free, _, err := opened(t, text+"mcp: {t: {command: [cat], confine: never}}\nshell: {confine: never}\n")
	require.NoError(t, err)
	want := []string{"commands of shell_run", "the MCP server t"}
	require.Equal(t, want, free.UnconfinedPrograms())
	_, programs := free.UnprovenApprovals()
	require.Equal(t, want, programs)
	if !confine.HostKernel().Holds() {
		return
	}
	heldFile, _, err := opened(t, text+"mcp: {t: {command: [cat]}}\n")
	require.NoError(t, err)
	require.Empty(t, heldFile.UnconfinedPrograms())
	agents, _ := heldFile.UnprovenApprovals()
	require.Empty(t, agents)
	linked, _, err := opened(t, text+"mcp: {t: {command: [cat], network: true}}\n")
	require.NoError(t, err)
	_, programs = linked.UnprovenApprovals()
	require.Equal(t, []string{"the MCP server t"}, programs)
}

// A sandbox that this machine lacks is told before a worker works, and what can't be meant
// when the file is read.
func TestSandboxThatIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("project", 0o755))
	const text = "as_root: true\nworkspace: project\nagents: {a: {model: \"script:script.yaml\", tools: [shell_run, \"mcp:t\"]}}\n"
	for entries, words := range map[string]string{
		"shell: {sandbox: bubblewrap}\nmcp: {t: {command: [/bin/cat]}}\n": "shell_run: bubblewrap can't hold it",
		"mcp: {t: {command: [/bin/cat], sandbox: bubblewrap}}\n":          "the MCP server t is not started: bubblewrap can't hold it",
	} {
		path := os.Getenv("PATH")
		t.Setenv("PATH", t.TempDir())
		_, _, err := opened(t, text+entries)
		t.Setenv("PATH", path)
		require.ErrorIs(t, err, agent.CodeDenied)
		require.ErrorContains(t, err, words)
		require.ErrorContains(t, err, "install it (the package is called bubblewrap)")
	}
	for shell, words := range map[string]string{
		"{sandbox: jail}": "shell.sandbox is \"jail\": write bubblewrap or landlock", "{sandbox: bubblewrap, confine: never}": "shell.sandbox bubblewrap goes with confine: always alone",
	} {
		put(t, text+"mcp: {t: {command: [/bin/cat]}}\nshell: "+shell+"\n")
		_, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		require.ErrorContains(t, err, words)
	}
}

// Another workspace is the remedy only where the workspace is the file's own folder.
func TestARemedyThatMends(t *testing.T) {
	write(t, "agents: {a: {model: \"script:script.yaml\", tools: [shell_run]}}\nas_root: true\nworkspace: ./project\nshell: {write: [.]}\n")
	require.NoError(t, os.Mkdir("project", 0o700))
	f, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
	require.NoError(t, err)
	kit, err := f.Open(nil, nil)
	require.NoError(t, err)
	defer kit.Close()
	require.ErrorIs(t, kit.Check(), agent.CodeDenied)
	require.NotContains(t, kit.Check().Error(), "workspace: ./project")
}
