package agentsfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// checked is the schema as editors use it.
func checked(t *testing.T) *jsonschema.Resolved {
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(Schema(), &s))
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	require.NoError(t, err)
	return resolved
}

// tree is a YAML text as JSON has it.
func tree(t *testing.T, text []byte) any {
	var doc yaml.Node
	require.NoError(t, yaml.Load(text, &doc))
	v, wrong := value(doc.Content[0])
	require.Nil(t, wrong)
	return clone(t, v)
}

func clone(t *testing.T, v any) (out any) {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// parsed is what the parser says of a file with this content. JSON is YAML.
func parsed(t *testing.T, path string, v any) error {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	_, err = load(path)
	return err
}

func everyKey(t *testing.T) any {
	text, err := os.ReadFile("testdata/every-key.yaml")
	require.NoError(t, err)
	return tree(t, text)
}

// The file that sets every key is taken by the schema and the parser, and leaves out no key
// that the schema has.
func TestEveryKeyOfTheSchemaIsTaken(t *testing.T) {
	text, err := os.ReadFile("testdata/every-key.yaml")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), DefaultName)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	_, err = load(path)
	require.NoError(t, err)
	schema := checked(t)
	all := everyKey(t)
	require.NoError(t, schema.Validate(all))

	var missing []string
	set := map[string]bool{}
	visit(schema.Schema(), "", all, nil, func(n node) { set[n.group+"."+n.key] = true })
	for name, s := range definitions(schema.Schema()) {
		for key := range s.Properties {
			if !set[name+"."+key] {
				missing = append(missing, name+"."+key)
			}
		}
	}
	require.Empty(t, missing, "testdata/every-key.yaml does not set them")
}

// Every key that the parser takes is in the schema.
func TestEveryKeyOfTheParserIsInTheSchema(t *testing.T) {
	found := definitions(checked(t).Schema())
	require.Len(t, found, len(groups))
	for _, of := range groups {
		keys := fieldNames(of.of)
		if of.name == "client_tool" {
			keys = slices.Clone(clientToolKeys) // the parser refuses the others
		}
		slices.Sort(keys)
		require.Equal(t, slices.Compact(keys), slices.Sorted(maps.Keys(found[of.name].Properties)), of.title)
		require.NotNil(t, found[of.name].AdditionalProperties.Not, of.title)
	}
}

// definitions are the groups of keys by their names.
func definitions(root *jsonschema.Schema) map[string]*jsonschema.Schema {
	found := map[string]*jsonschema.Schema{"": root}
	for name, s := range root.Defs {
		if s.Properties != nil {
			found[name] = s
		}
	}
	return found
}

// node is a value of the file that the schema knows.
type node struct {
	group, key string
	path       []any // names and indices
	schema     *jsonschema.Schema
	value      any
}

// visit walks a value beside its schema.
func visit(root *jsonschema.Schema, group string, v any, path []any, do func(node)) {
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		n := node{group, key, append(path[:len(path):len(path)], key), definitions(root)[group].Properties[key], object[key]}
		if n.schema == nil {
			continue
		}
		do(n)
		below(root, n.schema, n.value, n.path, do)
	}
}

// below walks what is in a value: the entries of a list, the named ones of a map.
func below(root, s *jsonschema.Schema, v any, path []any, do func(node)) {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		visit(root, name, v, path, do)
		return
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if s.Items != nil {
				below(root, s.Items, item, append(path[:len(path):len(path)], i), do)
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if s.AdditionalProperties != nil {
				below(root, s.AdditionalProperties, v[key], append(path[:len(path):len(path)], key), do)
			}
		}
	}
}

// put returns the tree with another value at a path.
func put(v any, path []any, with any) any {
	if len(path) == 0 {
		return with
	}
	switch at := path[0].(type) {
	case string:
		object := maps.Clone(v.(map[string]any))
		object[at] = put(object[at], path[1:], with)
		return object
	default:
		list := slices.Clone(v.([]any))
		list[at.(int)] = put(list[at.(int)], path[1:], with)
		return list
	}
}

// mutations are what may be written wrongly for a value, or just within its bounds.
func mutations(n node) []any {
	all := []any{nil, 7.0, []any{}, map[string]any{}}
	switch v := n.value.(type) {
	case string:
		all = append(all, "wrong", " ", true)
	case float64:
		all = append(all, "wrong", true, -1.0, 0.0, 1.5, 100_000.0)
	case bool:
		all = append(all, "wrong", !v)
	case []any:
		all = append(all, "wrong", true, []any{7.0}, []any{nil}, []any{" "})
	case map[string]any:
		more := maps.Clone(v)
		more["no_such_key"] = 1.0
		all = append(all, "wrong", true, more)
	}
	if most := n.schema.Maximum; most != nil {
		all = append(all, *most, *most+1)
	}
	if most := n.schema.MaxItems; most != nil {
		var many []any
		for i := range *most + 1 {
			many = append(many, fmt.Sprintf("topic%d", i))
		}
		all = append(all, many[1:], many)
	}
	if n.schema.Ref == "#/$defs/duration" {
		all = append(all, "5", "0s", "-3s", "1h 5m", "7d1h", "0h90s", ".5h")
	}
	return all
}

// The parser refuses whatever the schema refuses. What the schema takes the parser refuses only
// for what a value means: a name that nothing has, a time that is too long, keys that exclude
// each other.
func TestTheParserAndTheSchemaAgree(t *testing.T) {
	schema, all, path := checked(t), everyKey(t), filepath.Join(t.TempDir(), DefaultName)
	require.NoError(t, parsed(t, path, all))
	seen := map[string]bool{}
	visit(schema.Schema(), "", all, nil, func(n node) {
		if seen[n.group+"."+n.key] {
			return
		}
		seen[n.group+"."+n.key] = true
		for _, with := range mutations(n) {
			changed := clone(t, put(all, n.path, with))
			wrong, refused := schema.Validate(changed), parsed(t, path, changed)
			what := fmt.Sprintf("%v: %v", n.path, with)
			if wrong != nil && refused == nil {
				t.Errorf("%s: the schema alone refuses it: %v", what, wrong)
			}
			if wrong == nil && refused != nil && !ofMeaning(refused) {
				t.Errorf("%s: the parser alone refuses it: %v", what, refused)
			}
		}
	})
}

// The file refuses 0, -1 and "x" for each number, and 0s for each duration, before a model is asked. The
// fields are those of the types, so a later field of [agent.Definition] is not forgotten (HA-38).
func TestNumbersOfAFileThatCantBeMeant(t *testing.T) {
	schema, all, path := checked(t), everyKey(t), filepath.Join(t.TempDir(), DefaultName)
	numbers, seen := map[string]bool{}, map[string]bool{}
	for _, of := range groups {
		for key, f := range numericFields(of.of) {
			if !mayBeZero(of.of, f) && (of.name != "client_tool" || slices.Contains(clientToolKeys, key)) {
				numbers[of.name+"."+key] = true
			}
		}
	}
	require.Subset(t, slices.Collect(maps.Keys(numbers)), []string{"agent.parallel_tools", "loop_detection.parallel", "check.max", "rule.remind", "remedy.times", "daily.tokens", "rate.per_second", "model.window", "map.width"})
	visit(schema.Schema(), "", all, nil, func(n node) {
		what := n.group + "." + n.key
		if !numbers[what] && n.schema.Type != "integer" && n.schema.Type != "number" {
			return
		}
		wrong := []any{"x", -1.0}
		if slices.Contains(anyNumber, what) || least[what] < 0 { // -1 means none, or any number
			wrong = wrong[:1]
		}
		for _, with := range wrong {
			require.Error(t, parsed(t, path, clone(t, put(all, n.path, with))), "%v: %v", n.path, with)
		}
		if !numbers[what] && n.schema.Minimum != nil && *n.schema.Minimum == 0 {
			return
		}
		var zero any = 0.0
		if n.schema.Ref != "" {
			zero = "0s"
		}
		err := parsed(t, path, clone(t, put(all, n.path, zero)))
		says := n.key + " is zero; "
		if what == "repeat.most" { // it is required, and has no default
			says = "needs most: "
		}
		require.ErrorContains(t, err, says, "%v", n.path)
		seen[what] = true
	})
	require.Empty(t, slices.DeleteFunc(slices.Sorted(maps.Keys(numbers)), func(what string) bool { return seen[what] }), "testdata/every-key.yaml does not set them")
}

// numericFields are the numbers and durations of a type, by their keys.
func numericFields(of reflect.Type) map[string]reflect.StructField {
	found := map[string]reflect.StructField{}
	for f := range of.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := f.Type.Kind()
		if kind == reflect.Pointer {
			kind = f.Type.Elem().Kind()
		}
		switch {
		case f.Anonymous && key == "":
			maps.Copy(found, numericFields(f.Type))
		case kind >= reflect.Int && kind <= reflect.Float64:
			found[key] = f
		}
	}
	delete(found, "") // our own fields, such as a server's line
	return found
}

// meanings are what the parser says of values whose form is right.
var meanings = []string{
	"is not known: write", "there is no ", "no tool is called", "no agent of this file", "can't be held", "belongs to", "belong to", "goes with", "is not a directory", "the agent is called",
	"needs a variable", "its URL ", "its OAuth ", "must be an http", "service_tier must be", "cache_ttl must be 5m or 1h", "it may be 24h at most", "write 1ms to ",
	"is not taken here", "this file has no such agent", "more than limits.adaptive.max", "add it to the agent's tools", "stands for all skills of the file", "workspace needs kind or env", "such a hook may take 1m at most", "is no check after it", "only a judge of",
}

// ofMeaning reports whether a refusal is of what values mean, and of nothing else.
func ofMeaning(refused error) bool {
	for line := range strings.SplitSeq(refused.Error(), "\n") {
		if !slices.ContainsFunc(meanings, func(m string) bool { return strings.Contains(line, m) }) {
			return false
		}
	}
	return true
}
