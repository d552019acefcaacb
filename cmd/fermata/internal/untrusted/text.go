package untrusted

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is prose as people read it: [Escape], with hosts in ASCII, and with escapes for
// letters that pretend to be ASCII within a word that has ASCII letters. Words that are
// wholly of another script stay as they are.
func Text(s string) string {
	if plain(s) {
		return s
	}
	return words(hosts(Escape(s)), mixed)
}

// Value is a text that a program takes, such as an argument's value: [Text], in which words
// that wholly look like ASCII are escaped too.
func Value(s string) string {
	if plain(s) {
		return s
	}
	return words(hosts(Escape(s)), posing)
}

// Name is a name, of whatever length: everything that looks like ASCII and is not, every
// space but one of ASCII, and every newline shows as an escape.
func Name(s string) string {
	if plain(s) && !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return escapeIf(Escape(s), func(r rune) bool { return r != ' ' && unicode.IsSpace(r) || alike(r) })
}

// Names is [Name] for several, with commas between.
func Names(list []string) string {
	shown := make([]string, len(list))
	for i, one := range list {
		shown[i] = Name(one)
	}
	return strings.Join(shown, ", ")
}

// Fold is a text on one line, whole: white space becomes one space.
func Fold(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }

// Line is a text on one line of about so many characters, and of one at least. A cut says
// how many characters it left out: "Review the…(+30)". A URL's host is never cut: it stands
// whole, or the URL is left out.
func Line(s string, most int) string { return Cut(Fold(s), most) }

// Cut is a line, which is shown already, of about so many characters.
func Cut(s string, most int) string {
	most = max(most, 1)
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	runes := []rune(s)
	keep := max(most-len(fmt.Sprintf("…(+%d)", len(runes)))+2, 0)
	at := offBound(s, len(string(runes[:keep])))
	return fmt.Sprintf("%s…(+%d)", s[:at], utf8.RuneCountInString(s[at:]))
}

// maxHost bounds the longest authority for which a line becomes longer. A host's name has
// 253 characters at most.
const maxHost = 300

// offBound moves a place to cut a text out of a host, and out of an escape.
func offBound(s string, at int) int {
	for _, one := range spans(s) {
		if at <= one.url || at >= one.end {
			continue
		}
		if one.end-one.url <= maxHost {
			return one.end
		}
		return one.url
	}
	if i := strings.LastIndexByte(s[:at], '\\'); i >= 0 && at-i < len(`\u0000`) {
		return i
	}
	return at
}

// Block is a text that is shown already, of several lines that can't be taken for ours.
type Block string

// Mark is what [Margin] puts before each line.
const Mark = "│"

// Margin is a text, whole, with [Mark] before each of its lines. No text begins a line.
func Margin(s string) Block { return margin(Text(s)) }

// MarginOf is a text that is shown already with [Mark] before each of its lines.
func MarginOf(s string) Block { return margin(s) }

func margin(s string) Block {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(Mark+" "+line, " ")
	}
	return Block(strings.Join(lines, "\n"))
}

// Sprintf is [fmt.Sprintf] for a line: no argument can add another. A [Block] stays as it is.
// Other texts, errors and Stringers are folded.
func Sprintf(format string, args ...any) string {
	shown := make([]any, len(args))
	for i, a := range args {
		shown[i] = oneLine(a)
	}
	return fmt.Sprintf(format, shown...)
}

func oneLine(a any) any {
	switch a := a.(type) {
	case Block:
		return string(a)
	case string:
		return lineOf(a)
	case error:
		return lineOf(a.Error())
	}
	v := reflect.ValueOf(a)
	if v.Kind() == reflect.String {
		return lineOf(v.String())
	}
	if s, ok := a.(fmt.Stringer); ok && !v.CanInt() && !v.CanFloat() { // not a time or an amount
		return lineOf(s.String())
	}
	return a
}

// lineOf folds what has several lines, and leaves the blanks of what has one.
func lineOf(s string) string {
	if strings.ContainsAny(s, "\n\t\r\v\f\u0085\u2028\u2029") {
		return Fold(s)
	}
	return Text(s)
}
