package agentsfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// checker collects the errors of a file.
type checker struct {
	path   string          // as the user named the file
	names  map[string]bool // of the agents, valid or not
	faults []located
}

// located is an error with its line.
type located struct {
	line int
	err  error
}

func (c *checker) add(code agent.Code, n *yaml.Node, format string, args ...any) {
	err := agent.Errorf(code, "%s:%d: %w", c.path, n.Line, agent.Errorf(code, format, args...))
	c.faults = append(c.faults, located{n.Line, err})
}

// err returns all errors in the order of lines; nil if there are none.
func (c *checker) err() error {
	// Stable: errors of one line stay in the order in which they were found.
	slices.SortStableFunc(c.faults, func(a, b located) int { return cmp.Compare(a.line, b.line) })
	var list []error
	for _, f := range c.faults {
		list = append(list, f.err)
	}
	return errors.Join(list...)
}

// mapping lists the entries of a part of the file, each name once.
func (c *checker) mapping(part entry, wants string) []entry {
	if part.value == nil {
		return nil
	}
	if part.value.Kind != yaml.MappingNode {
		c.add(agent.CodeInvalidInput, part.key, "%s needs %s", part.name, wants)
		return nil
	}
	seen := map[string]int{}
	var list []entry
	for _, e := range entries(part.value) {
		if line, twice := seen[e.name]; twice {
			c.add(agent.CodeInvalidInput, e.key, "%s.%s is already in line %d", part.name, e.name, line)
			continue
		}
		seen[e.name] = e.key.Line
		e.path = part.name + "." + e.name
		list = append(list, e)
	}
	return list
}

// decode reads an entry strictly into a T. It first reads each field by itself, so that
// it reports all errors and not only the first. If some fields are wrong, the result has
// the others. where is the entry's name for people.
func decode[T any](c *checker, e entry, where string) (out T, ok bool) {
	if e.value.Kind != yaml.MappingNode {
		c.add(agent.CodeInvalidInput, e.key, "%s needs its fields, such as %s:, and not a plain value", where, usual(reflect.TypeFor[T]()))
		return out, false
	}
	// The errors of this entry alone decide whether the whole is decoded, too.
	before := len(c.faults)
	c.fields(e.value, nil, where, func(field any) {
		data, err := json.Marshal(field)
		if err == nil {
			// The strict decoder finds unknown names; encoding/json alone would ignore them.
			err = durable.Decode(data, new(T), maxBytes)
		}
		if err == nil {
			err = json.Unmarshal(data, &out)
		}
		c.refused(e, where, err, reflect.TypeFor[T]())
	})
	if len(c.faults) > before {
		return out, false
	}
	// No field is wrong by itself. Decode the whole again: together the fields may still not fit.
	out = *new(T)
	whole, wrong := value(e.value)
	if wrong != nil {
		c.add(agent.CodeInvalidInput, wrong.node, "%s %s", where, wrong.text)
		return out, false
	}
	data, err := json.Marshal(whole)
	if err == nil {
		err = durable.Decode(data, &out, maxBytes)
	}
	c.refused(e, where, err, reflect.TypeFor[T]())
	return out, err == nil
}

// fieldDepth is how deeply our fields are nested: limits.turns. What is deeper belongs to
// one field, such as a schema.
const fieldDepth = 2

// fields visits every field of a mapping, and of the mappings in it, as an object with
// only that field.
func (c *checker) fields(n *yaml.Node, path []string, where string, visit func(any)) {
	seen := map[string]bool{}
	for _, e := range entries(n) {
		// The full slice expression makes append copy: siblings share path.
		at := append(path[:len(path):len(path)], e.name)
		if seen[e.name] {
			c.add(agent.CodeInvalidInput, e.key, "%s.%s appears twice", where, strings.Join(at, "."))
			continue
		}
		seen[e.name] = true
		// Empty mappings and deeper ones are values of one field.
		if len(entries(e.value)) > 0 && len(at) < fieldDepth {
			c.fields(e.value, at, where, visit)
			continue
		}
		v, wrong := value(e.value)
		if wrong != nil {
			c.add(agent.CodeInvalidInput, wrong.node, "%s.%s %s", where, strings.Join(at, "."), wrong.text)
			continue
		}
		for i := len(at) - 1; i >= 0; i-- {
			v = map[string]any{at[i]: v}
		}
		visit(v)
	}
}

// noneIsMinusOne are fields of an agent in which -1 means none.
var noneIsMinusOne = []string{"nudges", "repairs"}

// refused adds an error of the decoder at the line of its field. t is the decoded type.
func (c *checker) refused(e entry, where string, err error, t reflect.Type) {
	if err == nil {
		return
	}
	var what *agent.Error
	if !errors.As(err, &what) {
		what = agent.Errorf(agent.CodeInvalidInput, "%w", err)
	}
	text := where + ": " + what.Message
	// Messages that start with the field's path already name it.
	if what.Path != "" && strings.HasPrefix(what.Message, what.Path) {
		text = where + "." + what.Message
	}
	if strings.HasSuffix(text, "is not known here") {
		text += meantIn(t, what.Path)
	}
	if less, zero := strings.CutSuffix(text, " is zero; leave it out for the default"); zero && t == reflect.TypeFor[agent.Definition]() && slices.Contains(noneIsMinusOne, what.Path) {
		text = less + " is zero; write -1 for none, or leave it out for the profile's number"
	}
	if strings.HasPrefix(what.Path, "agents[") && strings.HasSuffix(text, "] must be an object, not string") {
		text += "; a sub-agent is written as {agent: NAME}"
	}
	c.add(what.Code, e.at(what.Path), "%s", text)
}

// known reports keys that the file does not have.
func (c *checker) known(root *yaml.Node, names ...string) map[string]entry {
	parts := map[string]entry{}
	for _, e := range entries(root) {
		switch _, twice := parts[e.name]; {
		case twice:
			c.add(agent.CodeInvalidInput, e.key, "%s appears twice", e.name)
		case !slices.Contains(names, e.name):
			c.add(agent.CodeInvalidInput, e.key, "%s is not known here; the file may have %s%s", quote(e.name), strings.Join(names, ", "), meant(e.name, names))
		default:
			parts[e.name] = e
		}
	}
	return parts
}

// quote returns any name on one line.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
