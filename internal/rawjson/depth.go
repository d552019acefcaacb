package rawjson

// MaxWrittenDepth is how many levels of nesting are taken of JSON that a model or a tool
// writes: arguments, outputs, schemas, the session's state. What keeps such JSON puts some
// levels of its own around it, and readers of JSON stop at a few hundred.
const MaxWrittenDepth = 128

// Depth returns how many levels of nesting a text in JSON has: 0 for a scalar, 1 for
// {"a":1}. It looks at brackets and strings alone, so a deep text costs nothing. In a text
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
