package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// edit is where another build's code differs: a text that a file has once, and what stands
// there in its place. The file's path begins at this package.
type edit struct{ file, was, is string }

// edited returns the texts of the files that edits change.
func edited(t *testing.T, edits []edit) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for _, e := range edits {
		text, ok := texts[e.file]
		if !ok {
			var err error
			text, err = os.ReadFile(e.file)
			require.NoError(t, err)
		}
		require.Equal(t, 1, strings.Count(string(text), e.was), "%s has changed, and the test does not know it: %s", e.file, e.was)
		texts[e.file] = []byte(strings.Replace(string(text), e.was, e.is, 1))
	}
	return texts
}

// overlay writes what "go build -overlay" takes: files by their paths, with other texts
// than they have here.
func overlay(t *testing.T, texts map[string][]byte) (file string) {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for path, text := range texts {
		path, err := filepath.Abs(path)
		require.NoError(t, err)
		replace[path] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		require.NoError(t, os.WriteFile(replace[path], text, 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	return file
}

// buildOver builds a program in testdata on other texts.
func buildOver(t *testing.T, overlay, program string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), program)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, "./testdata/"+program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// replaysOver replays the recorded histories on other texts.
func replaysOver(t *testing.T, overlay string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-run", "^TestRecordedHistoriesReplay$", "-count=1", "../workflows")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
