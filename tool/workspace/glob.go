package workspace

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxGlob = 500

// compileGlob returns the regular expression of a glob for relative paths with slashes: *
// and ? stay within a name, ** crosses directories, [a-z] and {a,b} are alternatives. A
// glob without a slash matches in every directory.
func compileGlob(glob string) (*regexp.Regexp, error) {
	if len(glob) > maxGlob {
		return nil, errors.New("it is too long")
	}
	var b strings.Builder
	b.WriteString("^")
	if !strings.Contains(glob, "/") {
		b.WriteString("(?:.*/)?")
	}
	braces := 0
	for rest := strings.TrimPrefix(glob, "./"); rest != ""; {
		var piece string
		piece, rest = globPiece(rest, &braces)
		if piece == "" {
			return nil, errors.New("it has a [ without its ]")
		}
		b.WriteString(piece)
	}
	if braces != 0 {
		return nil, errors.New("it has a { without its }")
	}
	b.WriteString("$")
	return regexp.Compile(b.String())
}

// globPiece translates the first piece of a glob.
func globPiece(glob string, braces *int) (piece, rest string) {
	switch {
	case strings.HasPrefix(glob, "**/"):
		return "(?:.*/)?", glob[3:]
	case strings.HasPrefix(glob, "**"):
		return ".*", glob[2:]
	case glob[0] == '*':
		return "[^/]*", glob[1:]
	case glob[0] == '?':
		return "[^/]", glob[1:]
	case glob[0] == '{':
		*braces++
		return "(?:", glob[1:]
	case glob[0] == '}' && *braces > 0:
		*braces--
		return ")", glob[1:]
	case glob[0] == ',' && *braces > 0:
		return "|", glob[1:]
	case glob[0] == '[':
		return globSet(glob)
	case glob[0] == '\\' && len(glob) > 1:
		glob = glob[1:]
	}
	_, n := utf8.DecodeRuneInString(glob)
	return regexp.QuoteMeta(glob[:n]), glob[n:]
}

// globSet translates [abc], [a-z] and [!abc]; empty if the set has no end.
func globSet(glob string) (piece, rest string) {
	inside, rest, ok := strings.Cut(glob[1:], "]")
	if !ok || inside == "" {
		return "", ""
	}
	not := ""
	if inside[0] == '!' || inside[0] == '^' {
		// A negated set would match a slash, but it must stay within a name.
		not, inside = "^/", inside[1:]
	}
	return "[" + not + strings.NewReplacer(`\`, `\\`, "[", `\[`, "^", `\^`).Replace(inside) + "]", rest
}
