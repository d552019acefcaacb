package match

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a match. A visit looks at one node of the schema and one of the value, at one
// name, or at a few bytes of a text or digits of a number.
const (
	maxSchema = 8 << 10 // bytes
	maxVisits = 100_000
	maxDepth  = 32
	maxDigits = 400 // of a number: to compare 1e999999999 would take all memory

	textVisit  = 64 // bytes of a text
	digitVisit = 8  // digits of a number
)

// errTooLarge means that a value has more parts than a match may look at.
var errTooLarge = errors.New("the schema and the value have too many parts to be compared")

// Schema is a schema that was read. The zero Schema fits everything.
type Schema struct{ root *node }

// node is one schema of a schema.
type node struct {
	never                        bool // the schema false
	types                        []string
	enum                         []any // nil: no such keyword
	properties                   map[string]*node
	required                     []string
	additional                   *node
	items                        *node
	minimum, maximum             *big.Rat
	above, below                 *big.Rat
	minProperties, maxProperties *int
	minItems, maxItems           *int
	minLength, maxLength         *int
	allOf, anyOf, oneOf          []*node
	not                          *node
}

// describing keywords say nothing about what fits.
var describing = []string{"$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"}

// Read reads a schema; no bytes are the schema that everything fits. The error says which
// keyword is wrong, or not taken, and where.
func Read(raw []byte) (Schema, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return Schema{}, nil
	}
	if len(raw) > maxSchema {
		return Schema{}, fmt.Errorf("has %d bytes; at most %d are taken", len(raw), maxSchema)
	}
	v, err := value(raw)
	if err != nil {
		return Schema{}, fmt.Errorf("is no JSON: %w", err)
	}
	root, err := read(v, "")
	return Schema{root}, err
}

// value reads one JSON value, with numbers as they are written.
func value(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the value")
	}
	return v, deep(v, 0)
}

func deep(v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d levels deep", maxDepth)
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := deep(one, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range keys(v) {
			if err := deep(v[name], depth+1); err != nil {
				return err
			}
		}
	case json.Number:
		_, err := digits(v)
		return err
	}
	return nil
}

// digits is about how many digits a number has if it is written out. It is bounded.
func digits(n json.Number) (int, error) {
	text := n.String()
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	e := 0
	if exponent != "" {
		var err error
		if e, err = strconv.Atoi(exponent); err != nil {
			return 0, fmt.Errorf("the number %.20s… has too many digits", text)
		}
	}
	if len(mantissa) > maxDigits || max(e, -e) > maxDigits {
		return 0, fmt.Errorf("the number %.20s has too many digits", text)
	}
	return len(mantissa) + max(e, -e), nil
}

// number is a number without loss.
func number(n json.Number) (*big.Rat, error) {
	if _, err := digits(n); err != nil {
		return nil, err
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil, fmt.Errorf("%.20s is no number", n)
	}
	return r, nil
}

// Fits reports whether a JSON value fits. No bytes are the value null. An error means that
// the value can't be read, or that it has too many parts for a match.
func (s Schema) Fits(raw []byte) (bool, error) {
	if s.root == nil {
		return true, nil
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("null")
	}
	v, err := value(raw)
	if err != nil {
		return false, err
	}
	m := matching{left: maxVisits}
	fits := m.fits(s.root, v)
	if m.left < 0 {
		return false, errTooLarge
	}
	return fits, nil
}

// matching counts how much one match has looked at.
type matching struct{ left int }

// visits counts some visits, and reports whether there may be as many.
func (m *matching) visits(n int) bool {
	m.left = max(-1, m.left-n)
	return m.left >= 0
}

// weight is how many visits it takes to look at a value once, without what it contains.
func weight(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/textVisit
	case json.Number:
		n, _ := digits(v) // too many are refused when the value is read
		return 1 + n/digitVisit
	}
	return 1
}

func (m *matching) fits(n *node, v any) bool {
	if !m.visits(weight(v)+len(n.types)+len(n.enum)) || n.never {
		return false
	}
	if len(n.types) > 0 && !slices.ContainsFunc(n.types, func(t string) bool { return is(v, t) }) {
		return false
	}
	if n.enum != nil && !slices.ContainsFunc(n.enum, func(e any) bool { return m.equal(e, v) }) {
		return false
	}
	switch v := v.(type) {
	case string:
		if !n.fitsString(v) {
			return false
		}
	case json.Number:
		if !n.fitsNumber(v) {
			return false
		}
	case []any:
		if !m.fitsList(n, v) {
			return false
		}
	case map[string]any:
		if !m.fitsObject(n, v) {
			return false
		}
	}
	return m.fitsAll(n, v)
}

func (n *node) fitsString(v string) bool {
	return within(utf8.RuneCountInString(v), n.minLength, n.maxLength)
}

func (n *node) fitsNumber(v json.Number) bool {
	r, err := number(v)
	if err != nil {
		return false
	}
	return (n.minimum == nil || r.Cmp(n.minimum) >= 0) && (n.maximum == nil || r.Cmp(n.maximum) <= 0) &&
		(n.above == nil || r.Cmp(n.above) > 0) && (n.below == nil || r.Cmp(n.below) < 0)
}

func (m *matching) fitsList(n *node, v []any) bool {
	if !within(len(v), n.minItems, n.maxItems) {
		return false
	}
	return n.items == nil || !slices.ContainsFunc(v, func(one any) bool { return !m.fits(n.items, one) })
}

func (m *matching) fitsObject(n *node, v map[string]any) bool {
	if !within(len(v), n.minProperties, n.maxProperties) {
		return false
	}
	if !m.visits(len(n.required)) {
		return false
	}
	for _, name := range n.required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	if n.properties == nil && n.additional == nil {
		return true
	}
	if !m.visits(namesOf(v)) {
		return false
	}
	for _, name := range keys(v) {
		one, known := n.properties[name]
		if !known {
			one = n.additional
		}
		if one != nil && !m.fits(one, v[name]) {
			return false
		}
	}
	return true
}

func (m *matching) fitsAll(n *node, v any) bool {
	count := func(of []*node) (fit int) {
		for _, one := range of {
			if m.fits(one, v) {
				fit++
			}
		}
		return fit
	}
	switch {
	case count(n.allOf) < len(n.allOf):
	case len(n.anyOf) > 0 && count(n.anyOf) == 0:
	case len(n.oneOf) > 0 && count(n.oneOf) != 1:
	case n.not != nil && m.fits(n.not, v):
	default:
		return m.left >= 0
	}
	return false
}

// is reports whether a value has a type. A number without a fraction is an integer.
func is(v any, t string) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	case json.Number:
		if t == "integer" {
			r, err := number(v)
			return err == nil && r.IsInt()
		}
		return t == "number"
	}
	return false
}

// equal reports whether two values are the same: 1 and 1.0 are, whatever the order of
// members.
func (m *matching) equal(a, b any) bool {
	if !m.visits(weight(a) + weight(b)) {
		return false
	}
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, err := number(a)
		y, bad := number(n)
		return err == nil && bad == nil && x.Cmp(y) == 0
	case []any:
		l, ok := b.([]any)
		return ok && slices.EqualFunc(a, l, m.equal)
	case map[string]any:
		o, ok := b.(map[string]any)
		if !ok || len(a) != len(o) || !m.visits(namesOf(a)) {
			return false
		}
		for _, k := range keys(a) {
			if other, ok := o[k]; !ok || !m.equal(a[k], other) {
				return false
			}
		}
		return true
	}
	return a == b
}

func within(n int, least, most *int) bool {
	return (least == nil || n >= *least) && (most == nil || n <= *most)
}

// namesOf is how many visits it takes to look at the names of an object.
func namesOf(object map[string]any) (n int) {
	for _, name := range keys(object) {
		n += weight(name)
	}
	return n
}

// keys are in order: how much is left decides what is looked at.
func keys(object map[string]any) []string {
	return slices.Sorted(maps.Keys(object)) //workflowcheck:ignore the order of the map is gone after sorting
}
