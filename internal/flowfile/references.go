package flowfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/internal/match"
)

// conditions checks paths and schemas.
func (c *check) conditions(at string, all Conditions, sees *names) {
	if all != nil && len(all) == 0 {
		c.add(at, "needs the path of a value, with a JSON Schema")
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if path, err := pathOf(key); err != nil {
			c.add(at, "has %.60q: %v", key, err)
		} else if _, why := c.walk(path, sees); why != "" {
			c.add(at, "%s", why)
		}
		if _, object := jsonOf(string(all[key])).(map[string]any); !object {
			c.add(at, "has %s for %s, and needs a JSON Schema, such as {const: %[1]s}", all[key], key)
		} else if _, err := match.Read(all[key]); err != nil {
			c.add(at, "has for %s a schema that can't be used: it %v", key, err)
		}
	}
}

// schema checks a JSON Schema.
func (c *check) schema(at string, schema json.RawMessage) {
	if len(schema) == 0 {
		return
	}
	if err := c.known.Schema(at, schema); err != nil {
		c.faults = append(c.faults, err)
	}
}

// value checks the paths in the texts of a value.
func (c *check) value(at string, v Value, sees *names) {
	if len(v) > 0 {
		c.tree(at, jsonOf(string(v)), sees)
	}
}

func (c *check) tree(at string, v any, sees *names) {
	switch v := v.(type) {
	case string:
		c.text(at, v, sees)
	case []any:
		for i := range v {
			c.tree(fmt.Sprintf("%s[%d]", at, i), v[i], sees)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			c.tree(at+"."+key, v[key], sees)
		}
	}
}

// text checks the paths in a text.
func (c *check) text(at, text string, sees *names) {
	list, err := parts(text)
	if err != nil {
		c.add(at, "has %v", err)
		return
	}
	for _, p := range list {
		if p.path == nil {
			continue
		}
		if _, why := c.walk(p.path, sees); why != "" {
			c.add(at, "%s", why)
		}
	}
}

// walk returns the shape of a path's value, or why there is none.
func (c *check) walk(path []string, sees *names) (shape, string) {
	s, ok := sees.find(path[0])
	switch {
	case ok:
	case path[0] == lastName:
		return s, "names last, which is only inside of a repeat"
	case c.names[path[0]]:
		return s, fmt.Sprintf("names %s, which comes later or is inside of another step; seen from here are %s", path[0], strings.Join(sees.all(), ", "))
	default:
		return s, fmt.Sprintf("names %.60q, and there is no such step; seen from here are %s", path[0], strings.Join(sees.all(), ", "))
	}
	for i, name := range path[1:] {
		below, why := s.part(name)
		if why != "" {
			return shape{}, fmt.Sprintf("names %s, and %s %s", strings.Join(path, "."), strings.Join(path[:i+1], "."), why)
		}
		s = below
	}
	return s, ""
}
