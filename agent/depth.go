package agent

// MaxWrittenDepth is how many levels of nesting are taken of JSON that a model or a
// tool writes: arguments, outputs, schemas, the session's state. What keeps it puts
// some levels of its own around it, and readers of JSON end at a few hundred.
const MaxWrittenDepth = 128

// JSONDepth counts the levels of nesting of a text in JSON: 0 for a scalar, 1 for
// {"a":1}. It reads no more than brackets and strings, so that depth costs nothing;
// of what is no JSON it counts the brackets.
func JSONDepth(raw []byte) int {
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
