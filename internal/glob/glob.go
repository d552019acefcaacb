package glob

import "path"

// MatchesAny reports whether a name equals or matches one of the patterns, as
// [path.Match] reads them ("fs_*"). A malformed pattern matches nothing.
func MatchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}
