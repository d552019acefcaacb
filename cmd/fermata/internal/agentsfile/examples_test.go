package agentsfile

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// example is an agents file, or a part of one, that users read.
type example struct {
	where, text string
}

var yamlBlock = regexp.MustCompile("(?s)```ya?ml\n(.*?)```")

// examples are the agents files of the project, and those in its pages.
func examples(t *testing.T) (list []example) {
	require.NoError(t, filepath.WalkDir(moduleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != filepath.Base(moduleRoot) || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		ext := filepath.Ext(path)
		if !slices.Contains([]string{".yaml", ".yml", ".md"}, ext) || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if ext != ".md" {
			if strings.Contains("\n"+string(text), "\nagents:") {
				list = append(list, example{path, string(text)})
			}
			return nil
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains("\n"+block[1], "\n"+part+":") }) {
				list = append(list, example{path, block[1]})
			}
		}
		return nil
	}))
	return list
}

var script = regexp.MustCompile(`script:([A-Za-z0-9_./-]+)`)

// Every agents file that users find fits the schema and is taken by the parser. A page may show
// a part of a file: see completed.
func TestTheExamplesFit(t *testing.T) {
	schema := checked(t)
	list := examples(t)
	require.Greater(t, len(list), 10)
	for _, e := range list {
		t.Run(filepath.Base(e.where), func(t *testing.T) {
			e.fits(t, schema)
		})
	}
}

func (e example) fits(t *testing.T, schema *jsonschema.Resolved) {
	v := tree(t, []byte(e.text)).(map[string]any)
	add(v, "agents", "a", map[string]any{"model": "openai/gpt-5"})
	require.NoError(t, schema.Validate(v), "%s:\n%s", e.where, e.text)
	dir := t.TempDir()
	for _, found := range script.FindAllStringSubmatch(e.text, -1) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(found[1])), []byte("replies: [{text: Hello.}]\n"), 0o600))
	}
	if place, ok := v["workspace"].(string); ok {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, place), 0o700))
	}
	for _, place := range texts(v["skills"]) {
		for _, def := range v["agents"].(map[string]any) {
			for _, name := range texts(def.(map[string]any)["skills"]) {
				if name == "*" {
					continue
				}
				at := filepath.Join(dir, place, name)
				require.NoError(t, os.MkdirAll(at, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(at, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: x\n---\nx\n"), 0o600))
			}
		}
	}
	require.NoError(t, parsed(t, filepath.Join(dir, DefaultName), completed(v)), "%s:\n%s", e.where, e.text)
}

// completed adds what an example on a page names and leaves out: models, MCP servers and
// sub-agents.
func completed(v map[string]any) map[string]any {
	agents := v["agents"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		def := agents[name].(map[string]any)
		for _, model := range texts(def["model"], def["fallbacks"]) {
			if !strings.ContainsAny(model, "/:") {
				add(v, "models", model, map[string]any{"provider": "openai", "model": "x", "base_url": "http://127.0.0.1:1/v1"})
			}
		}
		for _, tool := range texts(def["tools"]) {
			if server, ok := strings.CutPrefix(tool, sourcePrefix); ok {
				add(v, "mcp", server, map[string]any{"command": []any{"cat"}})
			}
		}
		below, _ := def["agents"].([]any)
		for _, sub := range below {
			add(v, "agents", sub.(map[string]any)["agent"].(string), map[string]any{"model": "openai/gpt-5"})
		}
	}
	return v
}

// add adds an entry to a part of the file that has none of its name.
func add(v map[string]any, part, name string, entry any) {
	if v[part] == nil {
		v[part] = map[string]any{}
	}
	if list := v[part].(map[string]any); list[name] == nil {
		list[name] = entry
	}
}

// texts are strings and lists of them, as one list.
func texts(values ...any) (list []string) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			list = append(list, v)
		case []any:
			list = append(list, texts(v...)...)
		}
	}
	return list
}
