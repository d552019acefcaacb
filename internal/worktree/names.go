package worktree

import "strings"

// OfGit reports whether a path has a name that git takes for its own on Linux, macOS or Windows:
// ".git", ".GIT", ".git ", ".git:x", "git~1", or ".git" with characters that macOS ignores. Any later
// git command believes or runs what is written there.
func OfGit(path string) bool {
	path = strings.ToLower(strings.Map(unlessIgnored, path))
	for name := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		name, _, _ = strings.Cut(name, ":")
		if name = strings.TrimRight(name, ". "); name == ".git" || name == "git~1" {
			return true
		}
	}
	return false
}

// unlessIgnored drops the characters that the file system of macOS ignores in names.
func unlessIgnored(c rune) rune {
	if c >= 0x200c && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x206a && c <= 0x206f || c == 0xfeff {
		return -1
	}
	return c
}
