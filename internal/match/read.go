package match

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kinds is a set of types.
type kinds uint8

const (
	aNull kinds = 1 << iota
	aBoolean
	aString
	anArray
	anObject
	aNumber
	anInteger
)

var types = map[string]kinds{
	"null": aNull, "boolean": aBoolean, "string": aString, "array": anArray, "object": anObject, "number": aNumber, "integer": anInteger,
}

// kindOf returns the type of a value that is not a number.
func kindOf(v any) kinds {
	switch v.(type) {
	case nil:
		return aNull
	case bool:
		return aBoolean
	case string:
		return aString
	case []any:
		return anArray
	}
	return anObject
}

// describing keywords do not affect what fits.
var describing = []string{"$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"}

// read makes a node from a schema; path is where the schema is.
func read(v any, path string) (*node, error) {
	switch v := v.(type) {
	case bool:
		return &node{never: !v}, nil
	case map[string]any:
		n := &node{}
		// Sorted: of several errors, each replay must record the same one.
		for _, keyword := range keys(v) {
			if err := n.take(keyword, v[keyword], path); err != nil {
				return nil, err
			}
		}
		return n, nil
	}
	return nil, wrong(path, "must be an object, true or false")
}

// take reads one keyword.
func (n *node) take(keyword string, v any, path string) (err error) {
	at := path + "/" + keyword
	switch keyword {
	case "type":
		n.types, err = kindsOf(v, at)
	case "enum":
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return wrong(at, "must be a list of values")
		}
		n.enum, _ = fixed(list).([]any)
	case "const":
		n.enum = []any{fixed(v)}
	case "properties":
		n.properties, err = named(v, at)
	case "required":
		if _, one := v.(string); one {
			return wrong(at, "must be a list of names")
		}
		n.required, err = texts(v, at)
	case "additionalProperties":
		n.additional, err = read(v, at)
	case "items":
		n.items, err = read(v, at)
	case "not":
		n.not, err = read(v, at)
	case "allOf":
		n.allOf, err = list(v, at)
	case "anyOf":
		n.anyOf, err = list(v, at)
	case "oneOf":
		n.oneOf, err = list(v, at)
	default:
		return n.bound(keyword, v, at)
	}
	return err
}

// bound reads a keyword that bounds a number or a size.
func (n *node) bound(keyword string, v any, at string) (err error) {
	switch keyword {
	case "minimum":
		n.minimum, err = bounding(v, at)
	case "maximum":
		n.maximum, err = bounding(v, at)
	case "exclusiveMinimum":
		n.above, err = bounding(v, at)
	case "exclusiveMaximum":
		n.below, err = bounding(v, at)
	case "minLength":
		n.minLength, err = size(v, at)
	case "maxLength":
		n.maxLength, err = size(v, at)
	case "minItems":
		n.minItems, err = size(v, at)
	case "maxItems":
		n.maxItems, err = size(v, at)
	case "minProperties":
		n.minProperties, err = size(v, at)
	case "maxProperties":
		n.maxProperties, err = size(v, at)
	case "$ref", "$dynamicRef":
		return wrong(at, "is not taken here: write out what it stands for")
	case "pattern":
		return wrong(at, "is not taken here: write enum or const, or look at the payload after the wait")
	default:
		if !slices.Contains(describing, keyword) && !strings.HasPrefix(keyword, "x-") {
			return wrong(at, "is not taken here")
		}
	}
	return err
}

// wrong returns an error that says where it is: /properties/paid/type.
func wrong(path, what string) error {
	if path == "" {
		path = "the schema"
	}
	if len(path) > 200 {
		path = path[:200] + "…"
	}
	return errors.New(path + " " + what)
}

// kindsOf reads a type, or a list of types. A type that is repeated counts once.
func kindsOf(v any, at string) (set kinds, err error) {
	names, err := texts(v, at)
	for _, name := range names {
		if types[name] == 0 {
			return 0, wrong(at, fmt.Sprintf("knows no type %q", name))
		}
		set |= types[name]
	}
	if err == nil && set == 0 {
		err = wrong(at, "must be a type")
	}
	return set, err
}

// fixed prepares a value of a schema so that many goroutines can compare it at once.
func fixed(v any) any {
	v = prepared(v)
	// A num is made exact on first use; doing it now avoids a race later.
	settle(v)
	return v
}

func settle(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			settle(one)
		}
	case object:
		for _, name := range v.names {
			settle(v.values[name])
		}
	case *num:
		if !v.whole {
			v.exact, _ = number(v.text) // its digits were counted
		}
	}
}

// texts reads a text, or a list of texts.
func texts(v any, at string) (out []string, err error) {
	if one, ok := v.(string); ok {
		return []string{one}, nil
	}
	all, ok := v.([]any)
	if !ok {
		return nil, wrong(at, "must be a list of strings")
	}
	for _, one := range all {
		text, ok := one.(string)
		if !ok {
			return nil, wrong(at, "must be a list of strings")
		}
		out = append(out, text)
	}
	return out, nil
}

func named(v any, at string) (map[string]*node, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, wrong(at, "must be an object")
	}
	out := map[string]*node{}
	for _, name := range keys(object) {
		one, err := read(object[name], at+"/"+name)
		if err != nil {
			return nil, err
		}
		out[name] = one
	}
	return out, nil
}

func list(v any, at string) (out []*node, err error) {
	all, ok := v.([]any)
	if !ok || len(all) == 0 {
		return nil, wrong(at, "must be a list of schemas")
	}
	for i, one := range all {
		n, err := read(one, at+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func bounding(v any, at string) (*num, error) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, wrong(at, "must be a number")
	}
	fix, _ := fixed(n).(*num)
	return fix, nil
}

func size(v any, at string) (*int, error) {
	n, err := bounding(v, at)
	if err != nil {
		return nil, wrong(at, "must be a number from 0")
	}
	r := n.rat(NewBudget(Looks))
	if r == nil || !r.IsInt() || r.Sign() < 0 || !r.Num().IsInt64() {
		return nil, wrong(at, "must be a number from 0")
	}
	most := int(min(r.Num().Int64(), 1<<30))
	return &most, nil
}
