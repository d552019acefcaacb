package agent

import (
	"encoding/json"
	"regexp/syntax"
)

const (
	// maxPatterns is how many bytes the patterns of a schema may have together: one of
	// classes such as \pL takes a thousand times its own bytes to be read.
	maxPatterns = 8 << 10
	// maxPatternWeight is what they may weigh together.
	maxPatternWeight = 20_000
)

// HeavyPatterns says why the regular expressions of a JSON Schema are not compiled; empty
// where they may be. One such as (?:…){1000} takes megabytes and milliseconds, and who lists
// tools writes thousands of them. It is not for workflows: what an expression weighs is up to
// the library that reads it.
func HeavyPatterns(schema []byte) string {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return ""
	}
	var size, weight int
	eachPattern(root, func(pattern string) {
		if size += len(pattern); size <= maxPatterns {
			weight += PatternWeight(pattern)
		}
	})
	if size > maxPatterns || weight > maxPatternWeight {
		return "its patterns are too long, or repeat too much"
	}
	return ""
}

// eachPattern visits whatever may be a regular expression of a schema.
func eachPattern(v any, visit func(string)) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			eachPattern(one, visit)
		}
	case map[string]any:
		if pattern, ok := v["pattern"].(string); ok {
			visit(pattern)
		}
		names, _ := v["patternProperties"].(map[string]any)
		for name := range names { //workflowcheck:ignore a sum has no order
			visit(name)
		}
		for _, one := range v { //workflowcheck:ignore a sum has no order
			eachPattern(one, visit)
		}
	}
}

// PatternWeight is about how many instructions a regular expression has, each of which may be
// looked at for each character of a text; zero for one that is none. It is not for workflows.
func PatternWeight(pattern string) int {
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return weightOf(expression)
}

func weightOf(e *syntax.Regexp) int {
	const rangeWeight = 32 // of a class
	n := 1
	switch e.Op {
	case syntax.OpLiteral:
		n = len(e.Rune)
	case syntax.OpCharClass:
		n += len(e.Rune) / rangeWeight
	}
	for _, sub := range e.Sub {
		n = min(UnboundedSteps, n+weightOf(sub))
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min+1, e.Max)
	}
	return min(UnboundedSteps, n)
}
