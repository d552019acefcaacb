package agentsfile

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the schema and the reference pages")

const docs = moduleRoot + "/docs/"

// committed holds files to what is made of the types, or writes them.
func committed(t *testing.T, made string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(made), 0o600))
		}
		old, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, made == string(old), "%s is not what the types and their comments say: go test ./cmd/fermata/internal/agentsfile -update", path)
	}
}

// The schema that editors get says what the types and their comments say.
func TestTheSchemaIsMadeOfTheTypes(t *testing.T) {
	raw, err := json.Marshal(newGenerator(t).whole())
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, raw, "", "  "))
	out.WriteByte('\n')
	committed(t, out.String(), "fermata.schema.json", docs+"fermata.schema.json")
}

// The page of all keys says what the schema says.
func TestThePageOfKeysIsMadeOfTheSchema(t *testing.T) {
	g := newGenerator(t)
	root := g.whole()
	var out strings.Builder
	out.WriteString("# Keys of the agents file\n\n" +
		"This page lists every key of `fermata.yaml`. [agents.md](agents.md) explains the file with an example. The tests generate this page and the JSON Schema [fermata.schema.json](fermata.schema.json) from the types of the parser, so edit the types' comments instead.\n\n" +
		"`fermata schema > fermata.schema.json` writes the schema of your version. An editor with the YAML language server then completes and checks the file, if its first line is:\n\n" +
		"```yaml\n# yaml-language-server: $schema=fermata.schema.json\n```\n\n" +
		"Keys that the tables do not have are refused, and so are `null`, blank texts, and numbers and durations of zero that would mean the default: leave a key out instead. A duration is such as `90s`, `1h30m` or `7d`. Paths are relative to the file. A default of – means none, or what the sentence says.\n")
	for _, of := range groups {
		g.section(&out, of, root)
	}
	committed(t, out.String(), docs+"agents-file.md")
}

// told is what a sentence says of the default, which the table has in a column.
var told = regexp.MustCompile(`; left out means [^;]*\.$`)

// section writes a group's keys.
func (g *generator) section(out *strings.Builder, of group, root *jsonschema.Schema) {
	s := root.Defs[of.name]
	if of.name == "" {
		s = root
	}
	fmt.Fprintf(out, "\n## %s\n\n", of.title)
	if of.at != "" {
		fmt.Fprintf(out, "Under `%s`. ", of.at)
	}
	fmt.Fprintf(out, "%s\n\n| key | type | default | |\n|---|---|---|---|\n", s.Description)
	for _, key := range s.PropertyOrder {
		p := s.Properties[key]
		value := "–"
		switch {
		case p.Default != nil:
			value = "`" + plain(p.Default) + "`"
		case strings.Contains(" "+strings.Join(s.Required, " ")+" ", " "+key+" "):
			value = "required"
		}
		text := sentence(p.Description)
		if p.Default != nil {
			text = told.ReplaceAllString(text, ".")
		}
		if _, only, found := strings.Cut(p.Description, " Only for "); found {
			text += " Only for " + only
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", key, g.kind(p), value, strings.ReplaceAll(text, "|", "\\|"))
	}
	switch of.name {
	case "limits":
		g.profiles(out)
	case "flow":
		out.WriteString("\n[flows.md](flows.md#flows-in-an-agents-file) explains the steps, paths and conditions with examples.\n")
	}
}
