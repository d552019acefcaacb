package glob

import "path"

// MatchesAny reports whether a name is one of some names or fits one of some patterns, as
// [path.Match] reads them ("fs_*"). A malformed pattern fits nothing.
func MatchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}
