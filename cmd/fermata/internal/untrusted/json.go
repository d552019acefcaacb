package untrusted

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Field is one argument of a call, ready to show.
type Field struct{ Key, Value string }

// Fields returns a call's arguments: decoded, sorted by key, each value on one line. ok
// is false if raw is not a JSON object.
func Fields(raw json.RawMessage) (list []Field, ok bool) {
	v, ok := decoded(raw).(map[string]any)
	if !ok {
		return nil, false
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		var b strings.Builder
		write(&b, v[key], nil)
		list = append(list, Field{Name(key), b.String()})
	}
	return list, true
}

// JSON returns a JSON value on several lines as its digest sees it: decoded, each key
// once, sorted by key. Text that is not JSON goes through [Text].
func JSON(raw json.RawMessage) string {
	v := decoded(raw)
	if v == nil && string(bytes.TrimSpace(raw)) != "null" {
		return Text(string(raw))
	}
	var b strings.Builder
	write(&b, v, []byte("\n"))
	return b.String()
}

func decoded(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	// Numbers stay exact: an amount must look as the digest has it.
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// write writes a value. indent is a newline with the blanks after it; nil for one line.
func write(b *strings.Builder, v any, indent []byte) {
	inner := indent
	if indent != nil {
		// Clip makes append copy, because siblings share the indent.
		inner = append(slices.Clip(indent), "  "...)
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			between(b, i, inner)
			b.WriteString(Name(quoted(key)) + ": ")
			write(b, v[key], inner)
		}
		b.Write(indent)
		b.WriteByte('}')
	case []any:
		if len(v) == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteByte('[')
		for i, one := range v {
			between(b, i, inner)
			write(b, one, inner)
		}
		b.Write(indent)
		b.WriteByte(']')
	case string:
		b.WriteString(Value(quoted(v)))
	default:
		b.WriteString(strings.TrimSpace(string(encoded(v))))
	}
}

// between ends the member before the i-th, and starts this one.
func between(b *strings.Builder, i int, indent []byte) {
	if i > 0 {
		b.WriteByte(',')
		if indent == nil {
			b.WriteByte(' ')
		}
	}
	b.Write(indent)
}

// quoted returns a JSON string with only the escapes that JSON needs.
func quoted(s string) string { return strings.TrimSuffix(string(encoded(s)), "\n") }

func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	// Without it, < and & would be shown as escapes, unlike in the digest.
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was decoded from JSON
	return b.Bytes()
}
