package match

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Limits of what is read.
const (
	maxSchema  = 8 << 10 // bytes
	maxNumbers = 5_000   // looks for the numbers of a schema, when it is read
	maxDepth   = 32
	maxDigits  = 400 // of a number: comparing 1e999999999 would take all memory
)

// MaxModelSchema is how many bytes a schema from a model may have. A run keeps nine of
// them, and compares each payload with all.
const MaxModelSchema = 2 << 10

// Schema is a schema that was read. The zero Schema fits everything. It never changes,
// and may be used by many goroutines at once.
type Schema struct{ root *node }

// node is one schema of a schema.
type node struct {
	never                        bool // the schema false
	types                        kinds
	enum                         []any // nil without this keyword
	properties                   map[string]*node
	required                     []string
	additional                   *node
	items                        *node
	minimum, maximum             *num
	above, below                 *num
	minProperties, maxProperties *int
	minItems, maxItems           *int
	minLength, maxLength         *int
	allOf, anyOf, oneOf          []*node
	not                          *node
}

// Read reads a schema. No bytes are the schema that everything fits. The error says which
// keyword is wrong or unsupported, and where.
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
	// Numbers are made exact here once, outside of any budget, so their cost is bounded
	// first.
	if numbersCost(v) > maxNumbers {
		return Schema{}, errors.New("has numbers with too many digits")
	}
	root, err := read(v, "")
	return Schema{root}, err
}

// Fits reports whether a value fits. The only error is [ErrTooLarge]: the budget is used
// up, and the result is unknown.
func (s Schema) Fits(v Value, b *Budget) (bool, error) {
	if s.root == nil {
		return true, nil
	}
	m := matcher{b}
	// The budget may have ended the comparison early: then fits says nothing.
	fits := m.fits(s.root, v.root)
	if b.Exceeded() {
		return false, ErrTooLarge
	}
	return fits, nil
}

// FitsJSON reports whether a JSON value fits, with a budget of its own. It is for
// activities; a workflow uses Fits with the budget of its task. An error means that the
// value can't be read, or has too many parts.
func (s Schema) FitsJSON(raw []byte) (bool, error) {
	b := NewBudget(stepLooks)
	v, err := ReadValue(raw, b)
	if err != nil {
		return false, err
	}
	return s.Fits(v, b)
}

// matcher is one comparison.
type matcher struct{ *Budget }

// weight returns how many looks it takes to look at a value once, without what it
// contains.
func weight(v any) int {
	if text, ok := v.(string); ok {
		return 1 + len(text)/textLook
	}
	return 1
}

func (m matcher) fits(n *node, v any) bool {
	if !m.spend(weight(v)) || n.never {
		return false
	}
	if n.types != 0 && !m.is(v, n.types) {
		return false
	}
	if n.enum != nil && !slices.ContainsFunc(n.enum, func(e any) bool { return m.equal(e, v) }) {
		return false
	}
	// As JSON Schema says, a keyword for one type ignores values of others.
	switch v := v.(type) {
	case string:
		if !n.fitsString(v) {
			return false
		}
	case *num:
		if !m.fitsNumber(n, v) {
			return false
		}
	case []any:
		if !m.fitsList(n, v) {
			return false
		}
	case object:
		if !m.fitsObject(n, v) {
			return false
		}
	}
	return m.fitsAll(n, v)
}

func (n *node) fitsString(v string) bool {
	return n.minLength == nil && n.maxLength == nil || within(utf8.RuneCountInString(v), n.minLength, n.maxLength)
}

func (m matcher) fitsNumber(n *node, v *num) bool {
	holds := func(bound *num, fits func(sign int) bool) bool {
		if bound == nil {
			return true
		}
		sign, ok := v.compare(bound, m.Budget)
		return ok && fits(sign)
	}
	return holds(n.minimum, func(sign int) bool { return sign >= 0 }) && holds(n.maximum, func(sign int) bool { return sign <= 0 }) &&
		holds(n.above, func(sign int) bool { return sign > 0 }) && holds(n.below, func(sign int) bool { return sign < 0 })
}

func (m matcher) fitsList(n *node, v []any) bool {
	if !within(len(v), n.minItems, n.maxItems) {
		return false
	}
	return n.items == nil || !slices.ContainsFunc(v, func(one any) bool { return !m.fits(n.items, one) })
}

func (m matcher) fitsObject(n *node, v object) bool {
	if !within(len(v.names), n.minProperties, n.maxProperties) || !m.spend(len(n.required)) {
		return false
	}
	for _, name := range n.required {
		if _, ok := v.values[name]; !ok {
			return false
		}
	}
	if n.properties == nil && n.additional == nil {
		return true
	}
	for _, name := range v.names {
		if !m.spend(weight(name)) {
			return false
		}
		one, known := n.properties[name]
		if !known {
			one = n.additional
		}
		if one != nil && !m.fits(one, v.values[name]) {
			return false
		}
	}
	return true
}

func (m matcher) fitsAll(n *node, v any) bool {
	count := func(of []*node) (fit int) {
		for _, one := range of {
			if m.fits(one, v) {
				fit++
			}
			// false for one schema would mean true for not; so an exceeded budget ends
			// the count.
			if m.Exceeded() {
				return 0
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
		return !m.Exceeded()
	}
	return false
}

// is reports whether a value has one of the types. A number without a fraction is an
// integer.
func (m matcher) is(v any, types kinds) bool {
	n, isNumber := v.(*num)
	switch {
	case !isNumber:
		return types&kindOf(v) != 0
	case types&aNumber != 0:
		return true
	}
	return types&anInteger != 0 && n.isInteger(m.Budget)
}

// equal reports whether two values are equal: 1 and 1.0 are, and the order of members
// does not matter.
func (m matcher) equal(a, b any) bool {
	if !m.spend(weight(a)) {
		return false
	}
	switch a := a.(type) {
	case *num:
		n, ok := b.(*num)
		if !ok {
			return false
		}
		sign, ok := a.compare(n, m.Budget)
		return ok && sign == 0
	case []any:
		l, ok := b.([]any)
		return ok && slices.EqualFunc(a, l, m.equal)
	case object:
		o, ok := b.(object)
		if !ok || len(a.names) != len(o.names) {
			return false
		}
		for _, k := range a.names {
			if other, ok := o.values[k]; !m.spend(weight(k)) || !ok || !m.equal(a.values[k], other) {
				return false
			}
		}
		return true
	}
	switch b.(type) { // these types can't be compared with ==
	case []any, object:
		return false
	}
	return a == b
}

func within(n int, least, most *int) bool {
	return (least == nil || n >= *least) && (most == nil || n <= *most)
}
