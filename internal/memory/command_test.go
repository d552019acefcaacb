package memory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Each command answers as models know it, and says what to do where it can't.
func TestCommands(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	m, err := store.NewLog(dir).Memory(store.MemoryOwner{Principal: "ana", Agent: "clerk"})
	require.NoError(t, err)
	n := 0
	say := func(session, arguments string) string {
		n++
		text, err := Run(t.Context(), m, json.RawMessage(arguments), fmt.Sprint(n), session)
		if err != nil {
			require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeTooLarge}, agent.CodeOf(err), "%v", err)
			return err.Error()
		}
		return text
	}
	for i, one := range []struct{ session, arguments, want string }{
		{"a", `{"command":"view","path":"/memories"}`, "none yet"},
		{"a", `{"command":"create","path":"/memories/x/a.md","file_text":"one\ntwo\n"}`, "File created successfully at: /memories/x/a.md"},
		{"a", `{"command":"create","path":"/memories/x/a.md","file_text":"lost"}`, "already exists (version 1)"},
		{"a", `{"command":"create","path":"/memories/x","file_text":"lost"}`, "is a folder"},
		{"a", `{"command":"create","path":"/memories/x/a.md/b","file_text":"lost"}`, "no folder"},
		{"a", `{"command":"create","path":"/memories","file_text":"lost"}`, "name a file in it"},
		{"a", `{"command":"view","path":"/memories/x/a.md","view_range":[2,-1]}`, "(version 1):\n     2\ttwo"},
		{"a", `{"command":"view","path":"/memories/x/a.md","view_range":[3,9]}`, "Invalid `view_range`"},
		{"a", `{"command":"str_replace","path":"/memories/x/a.md","old_str":"o","new_str":"0"}`, "There are 2 occurrences"},
		{"a", `{"command":"str_replace","path":"/memories/x/a.md","old_str":"six","new_str":"0"}`, "did not appear verbatim"},
		{"a", `{"command":"str_replace","path":"/memories/x/a.md","old_str":"two","new_str":"2"}`, "has been edited"},
		{"a", `{"command":"insert","path":"/memories/x/a.md","insert_line":9,"insert_text":"x"}`, "[0, 2]"},
		{"b", `{"command":"insert","path":"/memories/x/a.md","insert_line":0,"insert_text":"zero","version":1}`, "it has version 2, not 1"},
		{"b", `{"command":"insert","path":"/memories/x/a.md","insert_line":0,"insert_text":"zero","version":2}`, "has been edited"},
		{"a", `{"command":"view","path":"/memories/x/"}`, "11\t/memories/x/a.md\tversion 3"},
		{"a", `{"command":"delete","path":"/memories/x"}`, `with "version": 3`},
		{"a", `{"command":"rename","old_path":"/memories/x","new_path":"/memories/x/y"}`, "a part of itself"},
		{"a", `{"command":"rename","old_path":"/memories/x","new_path":"/memories/y"}`, "Successfully renamed /memories/x to /memories/y"},
		{"a", `{"command":"view","path":"/memories/y/a.md"}`, "     1\tzero\n     2\tone\n     3\t2"},
		{"a", `{"command":"delete","path":"/memories/x"}`, "does not exist"},
		{"b", `{"command":"delete","path":"/memories/y/a.md","version":4}`, "Successfully deleted /memories/y/a.md"},
		{"a", `{"command":"forget","path":"/memories/y"}`, "there are view, create"},
		{"a", `{"command":"rename","old_path":"/memories/y"}`, "needs old_path and new_path"},
		{"a", `{"command":"create","path":"/memories/big","file_text":"` + strings.Repeat("x", store.MaxMemoryFile+1) + `"}`, "a file has at most 65536"},
		{"a", `[]`, "do not fit"},
	} {
		require.Contains(t, say(one.session, one.arguments), one.want, "%d: %.200s", i, one.arguments)
	}
	files, _, err := m.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, files)
}

// A path leads nowhere else, and none looks like another one.
func TestHostilePaths(t *testing.T) {
	for _, path := range []string{
		"", "memories/a", "/memoriesx", "/memories/../a", "/memories/./a", "/memories//a", "/memories/a\x00", "/memories/%2e%2e/a", `/memories/..\a`, "/memories/ a", "/memories/a\u200b",
		"/memories/a\u202emd", "/memories/\xff", "/etc/passwd", "/memories/" + strings.Repeat("a", store.MaxMemoryPath),
	} {
		_, err := store.CheckMemoryPath(path)
		require.Equal(t, agent.CodeInvalidInput, agent.CodeOf(err), "%q", path)
	}
	for _, path := range []string{"/memories", "/memories/", "/memories/Köln/日本.md"} {
		_, err := store.CheckMemoryPath(path)
		require.NoError(t, err, "%q", path)
	}
}
