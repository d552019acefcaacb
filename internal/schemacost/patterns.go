package schemacost

import (
	"encoding/json"
	"regexp/syntax"
)

const (
	// maxPatterns is how many bytes the patterns of a schema may have in all. A class
	// such as \pL takes a thousand times its own size to compile.
	maxPatterns = 8 << 10
	// maxPatternWeight is how much they may weigh in all, see PatternWeight.
	maxPatternWeight = 20_000
)

// HeavyPatterns returns why the regular expressions of a JSON Schema must not be
// compiled. It is empty if they may be. One such as (?:…){1000} takes megabytes and
// milliseconds, and a source of tools may write thousands of them. Workflows must not
// call it: the weight depends on the version of the regexp library.
func HeavyPatterns(schema []byte) string {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return ""
	}
	var size, weight int
	eachPattern(root, func(pattern string) {
		// Parsing is what takes the memory, so it stops at the bound.
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

// PatternWeight returns about how many instructions a regular expression has. Each may
// run for each character of a text. It is zero for a text that is no expression.
// Workflows must not call it.
func PatternWeight(pattern string) int {
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return weightOf(expression)
}

func weightOf(e *syntax.Regexp) int {
	const rangeWeight = 32 // characters of a class that weigh one
	n := 1
	switch e.Op {
	case syntax.OpLiteral:
		n = len(e.Rune)
	case syntax.OpCharClass:
		n += len(e.Rune) / rangeWeight
	}
	for _, sub := range e.Sub {
		n = min(Unbounded, n+weightOf(sub))
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min+1, e.Max)
	}
	return min(Unbounded, n)
}
