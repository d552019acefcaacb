package agent

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	// handleDigits is how many digits of the digest a handle has, and [FindFile] needs.
	handleDigits = 8
	// maxHandleName is how much of a file's name a handle has, in bytes. Tools and senders choose
	// names, and a model reads the handle in each turn.
	maxHandleName = 64
	// handleWeight is about what a line with a handle counts, in bytes. Workflows decide by it.
	handleWeight = 128
	// maxNamed is how many files an error of [FindFile] names.
	maxNamed = 20
)

// Handle returns the name by which a model, or a person, can refer to the file: its name and the
// beginning of its digest, "chart.png#3f9a0c1b". It follows from the file alone, so a conversation
// reads the same in each turn. A long name is shortened. [FindFile] finds the file.
func (f *File) Handle() string { return f.handle(handleDigits) }

func (f *File) handle(digits int) string {
	name := f.plainName()
	if name == "" {
		name = "file"
	}
	if f.Digest == "" { // only in a test: such a file is stored nowhere
		return name
	}
	return name + "#" + f.Digest[:min(digits, len(f.Digest))]
}

// plainName returns the file's name as a handle has it.
func (f *File) plainName() string {
	name := strings.TrimSpace(strings.Map(nameRune, f.Name))
	if len(name) <= maxHandleName {
		return name
	}
	const end = 16 // it has the extension
	return strings.ToValidUTF8(name[:maxHandleName-end-len("…")], "") + "…" + strings.ToValidUTF8(name[len(name)-end:], "")
}

// nameRune drops what could make a name look like the runtime's words in brackets.
func nameRune(r rune) rune {
	if strings.ContainsRune("[]", r) || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
		return -1
	}
	return r
}

// FindFile returns the file that somebody means by a name: by its handle, by 8 or more digits of
// its digest, or by its whole name. The digits decide if there are both. parts are the files of a
// conversation, the oldest first, as [Message.FileParts] returns them; other parts are passed over.
// If several show the file, FindFile returns the newest of them.
//
// Errors are [CodeNotFound], and [CodeInvalidInput] if several files have the name. Both name the
// files that could be meant, at most 20, for whoever chose the name.
func FindFile(parts []Part, name string) (Part, error) {
	all := newestFirst(parts)
	digits := digitsOf(name)
	found := matching(all, func(f *File) bool { return digits != "" && strings.HasPrefix(f.Digest, digits) })
	if len(found) > 1 { // a file can be made to have the digits of another one
		return Part{}, Errorf(CodeInvalidInput, "several files are %.100q: %s", name, named(found, len(found[0].File.Digest)))
	}
	if len(found) == 0 {
		found = matching(all, func(f *File) bool { return name != "" && (f.Name == name || f.plainName() == name) })
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Part{}, Errorf(CodeInvalidInput, "several files are %.100q: %s", name, named(found, handleDigits))
	case len(all) == 0:
		return Part{}, Errorf(CodeNotFound, "there is no file %.100q, nor any other", name)
	}
	return Part{}, Errorf(CodeNotFound, "there is no file %.100q; there are: %s", name, named(all, handleDigits))
}

// newestFirst returns the parts with files, the newest first, and of equal files only the newest.
func newestFirst(parts []Part) (all []Part) {
	seen := map[string]bool{}
	for _, p := range slices.Backward(parts) {
		if p.File != nil && !seen[p.File.Digest] {
			seen[p.File.Digest] = true
			all = append(all, p)
		}
	}
	return all
}

// digitsOf returns the digits of a digest in a handle, or in the line of a request that has it; empty if it has none.
func digitsOf(name string) string {
	digits, _, _ := strings.Cut(name[strings.LastIndex(name, "#")+1:], " ")
	digits = strings.ToLower(strings.TrimRight(digits, "]"))
	if len(digits) < handleDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return ""
	}
	return digits
}

func matching(parts []Part, is func(*File) bool) (found []Part) {
	for _, p := range parts {
		if is(p.File) {
			found = append(found, p)
		}
	}
	return found
}

// named lists files by their handles.
func named(parts []Part, digits int) string {
	var names []string
	for _, p := range parts[:min(len(parts), maxNamed)] {
		names = append(names, fmt.Sprintf("%s (%s, %d bytes)", p.File.handle(digits), p.File.MediaType, p.File.Size))
	}
	if left := len(parts) - len(names); left > 0 {
		names = append(names, fmt.Sprintf("and %d older ones", left))
	}
	return strings.Join(names, ", ")
}
