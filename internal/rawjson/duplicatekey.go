package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DuplicateKey returns the path, such as "input.parts[1].text", of a name that occurs
// twice in one object of a JSON text. It is empty if there is none. Of such a name some
// readers use the first value, some the last, and encoding/json merges parts of both.
// Then what was checked is not what is done. For a text that is not JSON the result means
// nothing.
func DuplicateKey(raw []byte) string {
	var open []level
	for i := 0; i < len(raw); i++ {
		inner := len(open) - 1
		switch c := raw[i]; {
		case c == '{' || c == '[':
			open = append(open, level{object: c == '{'})
		case c == '"':
			text := quoted(raw[i:])
			i += len(text) - 1
			// A string is a name if a colon follows it.
			named := bytes.HasPrefix(bytes.TrimLeft(raw[i+1:], " \t\r\n"), []byte(":"))
			if named && inner >= 0 && open[inner].enter(text) {
				return pathOf(open)
			}
		case inner < 0:
		case c == ',':
			open[inner].index++
		case c == '}' || c == ']':
			open = open[:inner]
		}
	}
	return ""
}

// quoted returns the string, with its quotes, that a text begins with.
func quoted(text []byte) []byte {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1]
		}
	}
	return text
}

// level is an open object or list.
type level struct {
	object bool
	names  map[string]bool
	name   string // the last one seen
	index  int    // of the value, from 0
}

// enter records a name, and reports whether it was there before.
func (l *level) enter(text []byte) bool {
	l.name = string(bytes.Trim(text, `"`))
	// One name can be written in many ways: "a" and "\u0061".
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		_ = json.Unmarshal(text, &l.name) // if it is no string it stays as it is
	}
	if l.names[l.name] {
		return true
	}
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.names[l.name] = true
	return false
}

func pathOf(open []level) string {
	var path strings.Builder
	for _, l := range open {
		if l.object {
			path.WriteString("." + l.name)
		} else {
			path.WriteString("[" + strconv.Itoa(l.index) + "]")
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}
