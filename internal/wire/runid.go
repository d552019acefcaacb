package wire

import "strings"

// MatchesRunID reports whether said names a run: by its id, or by the first 8 or more characters
// of its id (docs/wire.md §2).
func MatchesRunID(said, run string) bool {
	return said == run || len(said) >= 8 && strings.HasPrefix(run, said)
}
