package roles

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
)

//go:embed data/*.yaml
var files embed.FS

// all are the roles by name. They are read once: a file that can't be read is a fault of the
// build, which the package's test finds.
var all = mustRead()

func mustRead() map[string]agent.Definition {
	list := map[string]agent.Definition{}
	entries, err := files.ReadDir("data")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".yaml")
		def, err := read(Text(name))
		if err != nil {
			panic(fmt.Sprintf("role %s: %v", name, err))
		}
		def.Role = name
		list[name] = def
	}
	return list
}

func read(text string) (def agent.Definition, err error) {
	var v map[string]any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return def, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return def, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return def, d.Decode(&def)
}

// Names returns the names of the roles, sorted.
func Names() []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Text returns the role's file: YAML as it stands below an agent's name in an agents file. It
// is empty if there is no such role.
func Text(name string) string {
	raw, err := files.ReadFile("data/" + name + ".yaml")
	if err != nil {
		return ""
	}
	return string(raw)
}

// Get returns what a role says, as a definition without a name and a model, and whether there
// is such a role. Each call returns values of its own.
func Get(name string) (agent.Definition, bool) {
	if _, ok := all[name]; !ok {
		return agent.Definition{}, false
	}
	def, err := read(Text(name))
	def.Role = name
	return def, err == nil // it was read before, so err is nil
}

// Fill returns the definition with what its role says for each field that the author has left
// out. A definition without a role stays as it is. thinks says that the model can think: only
// then does a role choose the effort. Limits are filled in one by one, and all other fields
// are taken whole: an author's rules replace the role's. An unknown role is an
// [agent.CodeInvalidInput] error. Filling in twice changes nothing.
func Fill(def agent.Definition, thinks bool) (agent.Definition, error) {
	if def.Role == "" {
		return def, nil
	}
	role, ok := Get(def.Role)
	if !ok {
		return def, agent.Errorf(agent.CodeInvalidInput, "agent %s: there is no role %q; the roles are %s", def.Name, def.Role, strings.Join(Names(), ", ")).WithPath("role")
	}
	if !thinks {
		role.Reasoning = ""
	}
	// A limit for the run with all below it replaces the one of its own turns, as for profiles.
	if def.Limits.Turns > 0 {
		role.Limits.OwnTurns = 0
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r agent.Rule) bool { return !concerns(r, def.Tools) })
	if len(role.Rules) == 0 {
		role.Rules = nil
	}
	limits := reflect.ValueOf(&def.Limits).Elem()
	fill(limits, reflect.ValueOf(role.Limits))
	fill(reflect.ValueOf(&def).Elem(), reflect.ValueOf(role))
	return def, nil
}

// concerns reports whether a role's rule is about one of the agent's tools. A rule for a tool
// that nobody has is refused as a slip when the worker starts.
func concerns(r agent.Rule, tools []string) bool {
	return len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, func(t string) bool { return slices.Contains(tools, t) })
}

// fill sets the fields of a struct that are zero.
func fill(into, from reflect.Value) {
	for i := range into.NumField() {
		if into.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
}
