package untrusted

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns prose for people: [Escape], with hosts in ASCII. It also escapes letters
// that pretend to be ASCII in a word with ASCII letters. Words wholly of another script
// stay as they are.
func Text(s string) string {
	if plain(s) {
		return s
	}
	return words(hosts(Escape(s)), mixed)
}

// Value returns a text that a program uses, such as an argument's value: [Text], and
// words that wholly look like ASCII are escaped, too.
func Value(s string) string {
	if plain(s) {
		return s
	}
	return words(hosts(Escape(s)), posing)
}

// Name returns a name of any length. It escapes everything that looks like ASCII and is
// not, every space but the ASCII one, and newlines.
func Name(s string) string {
	if plain(s) && !strings.ContainsAny(s, "\n\t") {
		return s
	}
	return escapeIf(Escape(s), func(r rune) bool { return r != ' ' && unicode.IsSpace(r) || alike(r) })
}

// Names is [Name] for several, joined with commas.
func Names(list []string) string {
	shown := make([]string, len(list))
	for i, one := range list {
		shown[i] = Name(one)
	}
	return strings.Join(shown, ", ")
}

// Fold returns a whole text on one line: white space becomes one space.
func Fold(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }

// Line returns a text on one line of about most characters, at least one. A cut says how
// many characters it left out: "Review the…(+30)". A URL's host is never cut: it is
// whole, or the URL is left out.
func Line(s string, most int) string { return Cut(Fold(s), most) }

// Cut cuts a line that is already escaped to about most characters.
func Cut(s string, most int) string {
	most = max(most, 1)
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	runes := []rune(s)
	keep := max(most-len(fmt.Sprintf("…(+%d)", len(runes)))+2, 0)
	// Never inside a host: a cut host could look like another one.
	at := offBound(s, len(string(runes[:keep])))
	return fmt.Sprintf("%s…(+%d)", s[:at], utf8.RuneCountInString(s[at:]))
}

// maxHost bounds the longest authority for which a line may become longer. A host's name
// has at most 253 characters.
const maxHost = 300

// offBound moves the place of a cut out of a host and out of an escape.
// A cut before or after an authority hides nothing of it.
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
	// A half escape could look like other text.
	if i := strings.LastIndexByte(s[:at], '\\'); i >= 0 && at-i < len(`\u0000`) {
		return i
	}
	return at
}

// Block is an escaped text of several lines that can't be taken for ours.
type Block string

// Mark is what [Margin] puts before each line.
const Mark = "│"

// Margin returns a whole text with [Mark] before each line.
func Margin(s string) Block { return margin(Text(s)) }

// MarginOf puts [Mark] before each line of an escaped text.
func MarginOf(s string) Block { return margin(s) }

func margin(s string) Block {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(Mark+" "+line, " ")
	}
	return Block(strings.Join(lines, "\n"))
}

// Sprintf is [fmt.Sprintf] for a line to which no argument can add another. A [Block]
// stays as it is; other texts, errors and Stringers are folded.
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
	if s, ok := a.(fmt.Stringer); ok && !v.CanInt() && !v.CanFloat() { // not a duration or an amount
		return lineOf(s.String())
	}
	return a
}

// lineOf folds a text of several lines, and keeps the blanks of a single line.
func lineOf(s string) string {
	if strings.ContainsAny(s, "\n\t\r\v\f\u0085\u2028\u2029") {
		return Fold(s)
	}
	return Text(s)
}
