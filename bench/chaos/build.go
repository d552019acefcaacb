package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// A newer build differs from this one in what a later revision may change: it knows one
// more verb and one more field, its machine seals a log that has newerSeal bytes, and its flow
// has other steps.
const (
	newerRevision = loop.Revision + 1
	newerSeal     = 2048
	newerVerb     = agent.Verb("hush")
)

// newerCommand is a pause under the name that only the newer build knows.
type newerCommand struct{ agent.PauseCommand }

// Verb is hush.
func (newerCommand) Verb() agent.Verb { return newerVerb }

// newerSendCommand is a message with a field that only the newer build knows.
type newerSendCommand struct {
	agent.SendCommand
	Tone string `json:"tone"`
}

// edit is a change of a source file. What it replaces stands there once.
type edit struct{ file, old, new string }

func newerEdits() []edit {
	later := strconv.Itoa(newerRevision)
	return []edit{
		{"internal/loop/revision.go", fmt.Sprintf("\tRevision = %d\n", loop.Revision), "\tRevision = " + later + "\n"},
		{"internal/loop/rules.go", "s.Log.needsSeal() && s.Log.canSeal()", fmt.Sprintf("(s.Log.needsSeal() || s.Revision >= %s && s.Log.Bytes >= %d) && s.Log.canSeal()", later, newerSeal)},
		{"agent/verb.go", "type SendCommand struct {\n", "type SendCommand struct {\n\tTone string `json:\"tone,omitempty\" since:\"" + later + "\"`\n"},
		{"bench/chaos/flows.go", "newerTour = false", "newerTour = true"},
		{"signals/verbs.go", "agent.VerbAnswers, agent.VerbEmit,\n}", "agent.VerbAnswers, agent.VerbEmit, \"hush\",\n}"},
		{"signals/verbs.go", "map[agent.Verb]int{}", `map[agent.Verb]int{"hush": ` + later + `}`},
		{"signals/verbs.go", "\tcase agent.VerbPause:\n", "\tcase agent.VerbPause, \"hush\":\n"},
	}
}

// newerSources returns the edited sources, by path.
func newerSources(root string) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range newerEdits() {
		path := filepath.Join(root, e.file)
		if texts[path] == "" {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			texts[path] = string(b)
		}
		if n := strings.Count(texts[path], e.old); n != 1 {
			return nil, fmt.Errorf("making the newer build: %q stands %d times in %s, not once", e.old, n, e.file)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
	}
	return texts, nil
}

// buildNewer builds this program with the edits, and returns the file. It needs the
// sources and Go.
func buildNewer(ctx context.Context, dir string) (file string, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/fermata-agents/fermata").Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources for the newer build: %w", err)
	}
	texts, err := newerSources(strings.TrimSpace(string(root)))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range texts {
		replace[path] = filepath.Join(dir, "newer-"+filepath.Base(filepath.Dir(path))+"-"+filepath.Base(path))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	changes := filepath.Join(dir, "newer.json")
	if err := os.WriteFile(changes, overlay, 0o600); err != nil {
		return "", err
	}
	file = filepath.Join(dir, "newer")
	out, err := exec.CommandContext(ctx, "go", "build", "-overlay", changes, "-o", file, "github.com/fermata-agents/fermata/bench/chaos").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("making the newer build: %w: %s", err, out)
	}
	return file, nil
}
