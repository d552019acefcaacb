package agentsfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
)

// maxBytes is far above any file that people write. It bounds what a wrong path can make
// us read.
const maxBytes = 4 << 20

// parse reads the file's one document, which must be a mapping.
func parse(path string) (*yaml.Node, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the agents file can't be read: %w; write one, or name it with --agents FILE", err)
	}
	defer f.Close()
	// One byte more than allowed, to notice a longer file.
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the agents file %s can't be read: %w", path, err)
	}
	if len(data) > maxBytes {
		return nil, agent.Errorf(agent.CodeTooLarge, "%s has more than %d bytes: is it an agents file?", path, maxBytes)
	}
	if strings.TrimSpace(string(data)) == "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s:1: the file is empty; begin with agents:", path)
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, syntax(path, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s:1: the file needs keys such as agents:, models: and mcp: at its top", path)
	}
	// Checked before anything follows aliases: an alias that contains itself would never end.
	if room := maxNodes; !fits(doc.Content[0], 0, &room) {
		return nil, agent.Errorf(agent.CodeTooLarge, "%s: the file is nested too deep or too large; is there an alias (*NAME) that contains itself?", path)
	}
	return doc.Content[0], nil
}

// Limits of a file with all its aliases expanded. An alias may contain itself.
const (
	maxNodes = 100_000
	maxDepth = agent.MaxJSONDepth + 8
)

func fits(n *yaml.Node, depth int, room *int) bool {
	n = deref(n)
	// One counter for the whole file: aliases can multiply nodes.
	if *room--; *room < 0 || depth > maxDepth {
		return false
	}
	for _, c := range n.Content {
		if !fits(c, depth+1, room) {
			return false
		}
	}
	return true
}

// syntax returns an error that says where the YAML is broken.
func syntax(path string, err error) error {
	var one *yaml.LoadError
	var many *yaml.LoadErrors
	if errors.As(err, &many) && len(many.Errors) > 0 {
		one = many.Errors[0]
	}
	if one == nil && !errors.As(err, &one) {
		return agent.Errorf(agent.CodeInvalidInput, "%s: not YAML: %w", path, err)
	}
	// The library's prefix repeats what our message says.
	what := strings.TrimPrefix(one.Message, "yaml: ")
	if one.ContextMsg != "" {
		what += fmt.Sprintf(" (%s that begins in line %d)", one.ContextMsg, one.ContextMark.Line)
	}
	// The library has no line for some errors.
	return agent.Errorf(agent.CodeInvalidInput, "%s:%d: not YAML: %s", path, max(1, one.Mark.Line), what)
}

// entry is a key of a mapping with its value.
type entry struct {
	name       string
	path       string // in the file, such as agents.clerk, of what mapping has listed
	key, value *yaml.Node
}

// entries lists a mapping's keys in the file's order; other nodes have none.
func entries(n *yaml.Node) []entry {
	n = deref(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var list []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, entry{name: n.Content[i].Value, key: n.Content[i], value: deref(n.Content[i+1])})
	}
	return list
}

// deref returns the node that an alias stands for.
func deref(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// fault is an error at a node.
type fault struct {
	node *yaml.Node
	text string
}

// value converts a node to what encoding/json would have decoded, and keeps integers
// exact.
func value(n *yaml.Node) (any, *fault) {
	n = deref(n)
	switch n.Kind {
	case yaml.MappingNode:
		return object(n)
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			v, wrong := value(item)
			if wrong != nil {
				return nil, wrong
			}
			list = append(list, v)
		}
		return list, nil
	}
	return scalar(n)
}

func object(n *yaml.Node) (any, *fault) {
	out := map[string]any{}
	for _, e := range entries(n) {
		if _, twice := out[e.name]; twice {
			return nil, &fault{e.key, fmt.Sprintf("has %s twice", e.name)}
		}
		// A merge key could bring in fields that the reader does not see.
		if e.key.Kind != yaml.ScalarNode || e.key.ShortTag() == "!!merge" {
			return nil, &fault{e.key, "has a key that is not a plain word; write the fields out"}
		}
		v, wrong := value(e.value)
		if wrong != nil {
			return nil, wrong
		}
		out[e.name] = v
	}
	return out, nil
}

func scalar(n *yaml.Node) (any, *fault) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, &fault{n, "is neither true nor false"}
		}
		return b, nil
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil {
			return nil, &fault{n, "is not a number that fits"}
		}
		// As a json.Number: a float64 would lose digits.
		return json.Number(fmt.Sprint(i)), nil
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, &fault{n, "is not a number that fits"}
		}
		return f, nil
	// Times have no type of their own in JSON.
	case "!!str", "!!timestamp":
		return n.Value, nil
	}
	return nil, &fault{n, fmt.Sprintf("has the tag %s, which means nothing here", n.Tag)}
}

// at returns the node of a path such as "tools[1]" or "limits.turns" in an entry, or the
// nearest one above it. It returns the key if there is one, since that is the line that a
// reader looks for.
func (e entry) at(path string) *yaml.Node {
	n, found := e.value, e.key
	for path != "" {
		head, rest, index := step(path)
		if index >= 0 {
			// The path may lead through an alias.
			n = deref(n)
			if n == nil || n.Kind != yaml.SequenceNode || index >= len(n.Content) {
				return found
			}
			n = n.Content[index]
			found, path = n, rest
			continue
		}
		var next *entry
		for _, e := range entries(n) {
			if e.name == head {
				next = &e
				break
			}
		}
		if next == nil {
			return found
		}
		n, found, path = next.value, next.key, rest
	}
	return found
}

// step splits the first name or index off a path. index is negative for a name.
func step(path string) (name, rest string, index int) {
	path = strings.TrimPrefix(path, ".")
	if strings.HasPrefix(path, "[") {
		if n, err := fmt.Sscanf(path, "[%d]", &index); n == 1 && err == nil {
			_, rest, _ = strings.Cut(path, "]")
			return "", rest, index
		}
	}
	end := strings.IndexAny(path, ".[")
	if end <= 0 {
		return path, "", -1
	}
	return path[:end], path[end:], -1
}
