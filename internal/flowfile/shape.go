package flowfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// shape is what is known of a value before a flow runs. The zero shape may be anything.
type shape struct {
	text   bool             // it is a text, without parts
	fields map[string]shape // an object with these fields alone; nil if others are possible
	of     *shape           // a list of these
}

// part returns the shape of a part. why says that there is none.
func (s shape) part(name string) (below shape, why string) {
	switch {
	case s.text:
		return s, "is a text, which has no parts"
	case s.of != nil:
		if _, err := strconv.Atoi(name); err != nil {
			return s, "is a list, whose parts are 0, 1 and so on"
		}
		return *s.of, ""
	case s.fields != nil:
		if below, ok := s.fields[name]; !ok {
			return below, "has only " + strings.Join(slices.Sorted(maps.Keys(s.fields)), ", ")
		}
		return s.fields[name], ""
	}
	return shape{}, ""
}

// shapeOr returns the shape of a schema; that of a text if there is none.
func shapeOr(schema json.RawMessage) shape {
	if len(schema) == 0 {
		return shape{text: true}
	}
	return shapeOf(jsonOf(string(schema)))
}

// shapeOf returns what a schema says of a value, as far as it is simple.
func shapeOf(schema any) (s shape) {
	v, _ := schema.(map[string]any)
	for _, key := range []string{"$ref", "anyOf", "allOf", "oneOf", "if", "patternProperties"} {
		if v[key] != nil {
			return shape{}
		}
	}
	properties, _ := v["properties"].(map[string]any)
	more, closed := v["additionalProperties"]
	switch v["type"] {
	case "string":
		return shape{text: true}
	case "array":
		below := shapeOf(v["items"])
		return shape{of: &below}
	case "object", nil:
		if len(properties) == 0 || closed && more != false {
			return shape{}
		}
		s.fields = map[string]shape{}
		for name, one := range properties {
			s.fields[name] = shapeOf(one)
		}
	}
	return s
}

// result returns the shape of a step's result, as far as the step alone tells it.
func (c *check) result(s *Step) shape {
	unknown := func(names ...string) shape {
		fields := map[string]shape{}
		for _, n := range names {
			fields[n] = shape{}
		}
		return shape{fields: fields}
	}
	switch kinds := s.kinds(); {
	case len(kinds) != 1:
		return shape{}
	case s.Agent != "" && len(s.Output) > 0:
		return shapeOr(s.Output)
	case s.Agent != "":
		if schema, known := c.known.Agents[s.Agent]; known {
			return shapeOr(schema)
		}
	case s.Generate != "":
		return shapeOr(s.Output)
	case s.Ask != "":
		return shapeOr(s.Answer)
	case s.Approve != "":
		return unknown("approved", "by", "reason", "expired", "subject")
	case s.Wait != nil:
		return unknown("topic", "payload", "by", "timed_out", "message")
	case s.Parallel != nil:
		fields := map[string]shape{}
		for i := range s.Parallel {
			fields[s.Parallel[i].called()] = c.result(&s.Parallel[i])
		}
		return shape{fields: fields}
	case s.Map != nil && len(s.Map.Result) == 0:
		below := c.lastOf(s.Map.Steps)
		return shape{of: &below}
	case s.Map != nil:
		return shape{of: &shape{}}
	case s.Repeat != nil && len(s.Repeat.Result) == 0:
		return c.lastOf(s.Repeat.Steps)
	case s.Steps != nil && len(s.Result) == 0:
		return c.lastOf(s.Steps)
	}
	return shape{}
}

// lastOf returns the shape of what a list without a result of its own results in.
func (c *check) lastOf(steps []Step) shape {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].Fail == "" {
			return c.result(&steps[i])
		}
	}
	return shape{}
}
