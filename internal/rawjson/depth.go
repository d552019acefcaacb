package rawjson

// MaxWrittenDepth is how deeply JSON from a model or a tool may be nested: arguments,
// outputs, schemas, the session's state. What stores such JSON adds some levels around
// it, and JSON readers stop at a few hundred.
const MaxWrittenDepth = 128

// Depth returns how many levels of nesting a JSON text has: 0 for a scalar, 1 for
// {"a":1}. It looks only at brackets and strings, so a deep text costs nothing. In a text
// that is not JSON it counts the brackets.
func Depth(raw []byte) int {
	most, depth, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}
