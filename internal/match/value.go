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
)

// Value is a JSON value to compare with several schemas. The zero Value is null.
type Value struct{ root any }

// object keeps its names in order: the rest of the budget decides how far a comparison
// gets.
type object struct {
	names  []string
	values map[string]any
}

// num is a number as it was written. Most are small whole numbers; others become a
// fraction when one is first needed.
type num struct {
	text  json.Number
	whole bool  // whether small is its value
	small int64 // its value if whole
	exact *big.Rat
}

// ReadValue reads one JSON value; no bytes are null. It charges the cost of reading, and
// returns [ErrTooLarge] before it reads what costs more than is left.
func ReadValue(raw []byte, b *Budget) (Value, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return Value{}, nil
	}
	if !b.spend(readingCosts(raw)) {
		return Value{}, ErrTooLarge
	}
	v, err := value(raw)
	if err != nil {
		return Value{}, err
	}
	return Value{prepared(v)}, nil
}

// readingCosts estimates how many looks it takes to read a JSON text, by the signs
// between its values.
func readingCosts(raw []byte) int {
	looks, inside := len(raw)/textLook, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inside && c == '\\':
			looks += escapeLooks
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{':
			looks += objectLooks
		case c == ',' || c == '[':
			looks += valueLooks
		case c == ':':
			looks += nameLooks
		}
	}
	return looks
}

// prepared makes a decoded value one that can be compared many times.
func prepared(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = prepared(v[i])
		}
	case map[string]any:
		o := object{names: keys(v), values: v}
		for _, name := range o.names {
			v[name] = prepared(v[name])
		}
		return o
	case json.Number:
		n := &num{text: v}
		if small, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			n.whole, n.small = true, small
		}
		return n
	}
	return v
}

// rat returns a number as a fraction and charges for it; nil if too little is left. A
// number of a payload is converted once; those of a schema were converted before.
func (n *num) rat(b *Budget) *big.Rat {
	switch {
	case n.exact != nil:
		return n.exact
	case n.whole && b.spend(wholeLooks):
		return new(big.Rat).SetInt64(n.small)
	case n.whole:
		return nil
	}
	if !b.spend(fractionCosts(n.text)) {
		return nil
	}
	n.exact, _ = number(n.text) // its digits were counted when it was read
	return n.exact
}

// isInteger reports whether a number has no fraction, however it is written.
func (n *num) isInteger(b *Budget) bool {
	if n.whole {
		return true
	}
	r := n.rat(b)
	return r != nil && r.IsInt()
}

// compare compares with another number; ok is false if too little is left.
func (n *num) compare(m *num, b *Budget) (sign int, ok bool) {
	if n.whole && m.whole {
		switch {
		case n.small < m.small:
			return -1, true
		case n.small > m.small:
			return 1, true
		}
		return 0, true
	}
	x, y := n.rat(b), m.rat(b)
	if x == nil || y == nil || !b.spend(compareLooks+(width(n)+width(m))/digitLook) {
		return 0, false
	}
	return x.Cmp(y), true
}

// width is about how many digits a number has.
func width(n *num) int {
	d, _ := digits(n.text) // too many are refused when the value is read
	return d
}

// fractionCosts returns how many looks it takes to make a fraction of a number. The work
// grows with the square of its digits.
func fractionCosts(n json.Number) int {
	d, _ := digits(n)
	return fractionLooks + d/digitLook + d*d/squareLook
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

// deep refuses a value that is nested too deeply, or has a number with too many digits.
// Of several faults it always returns the same one, since the error is recorded.
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

// numbersCost returns how many looks it takes to make fractions of all numbers of a
// value.
func numbersCost(v any) (looks int) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			looks += numbersCost(one)
		}
	case map[string]any:
		for _, name := range keys(v) {
			looks += numbersCost(v[name])
		}
	case json.Number:
		if _, err := strconv.ParseInt(v.String(), 10, 64); err != nil {
			looks = fractionCosts(v)
		}
	}
	return looks
}

// digits is about how many digits a number has when written out. It is bounded.
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

// number returns a number as an exact fraction.
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

// keys returns the names in order: the rest of the budget decides how far a comparison
// gets.
func keys(object map[string]any) []string {
	return slices.Sorted(maps.Keys(object)) //workflowcheck:ignore the order of the map is gone after sorting
}
