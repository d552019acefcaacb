package untrusted

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// authority finds the host part of a URL, and the host of an e-mail address. A backslash
// ends it, since browsers read it as a slash.
var authority = regexp.MustCompile(`(?:[A-Za-z][A-Za-z0-9+.-]*:(?:/|\\)+)([^\s/?#"'<>\\]+)|@([\pL\pM\pN\-]+(?:[.。．｡][\pL\pM\pN\-]+)+)`)

// hosts writes the hosts of a text's URLs in ASCII, as resolvers see them.
func hosts(s string) string {
	if !strings.ContainsAny(s, "@:") {
		return s
	}
	var b strings.Builder
	after := 0
	for _, at := range spans(s) {
		b.WriteString(s[after:at.begin])
		b.WriteString(inASCII(s[at.begin:at.end]))
		after = at.end
	}
	return b.String() + s[after:]
}

// span is an authority in a text.
type span struct {
	url        int // the beginning of the URL
	begin, end int
}

func spans(s string) (list []span) {
	for _, m := range authority.FindAllStringSubmatchIndex(s, -1) {
		one := span{m[0], m[2], m[3]}
		if one.begin < 0 {
			one.begin, one.end = m[4], m[5]
		}
		list = append(list, one)
	}
	return list
}

// inASCII writes an authority's host in ASCII. What precedes its last @ is not the host.
func inASCII(authority string) string {
	// The last @ counts, as in browsers: user@evil.com@good.com leads to good.com.
	at := strings.LastIndexByte(authority, '@') + 1
	return Name(authority[:at]) + Host(authority[at:])
}

// Host returns a host, with or without a port, in ASCII: аpple.com is xn--pple-43d.com.
// If it can't be a host, everything that is not ASCII is escaped.
func Host(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return Name(s)
	}
	name, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.ContainsFunc(s[i+1:], func(r rune) bool { return !unicode.IsDigit(r) }) {
		name, port = s[:i], s[i:]
	}
	// Lookup follows the rules of browsers; Punycode also takes names that these refuse.
	for _, form := range []*idna.Profile{idna.Lookup, idna.Punycode} {
		if ascii, err := form.ToASCII(name); err == nil && plain(ascii) && !strings.ContainsAny(ascii, "/?#@\\ ") {
			return ascii + string(ASCII(port))
		}
	}
	return string(ASCII(s))
}

// HostsOf lists the hosts of a text's URLs and e-mail addresses, in ASCII and in order.
func HostsOf(s string) (list []string) {
	for _, at := range spans(s) {
		one := s[at.begin:at.end]
		list = append(list, Host(one[strings.LastIndexByte(one, '@')+1:]))
	}
	return list
}
