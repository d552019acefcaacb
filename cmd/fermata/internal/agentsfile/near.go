package agentsfile

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// meant suggests the known name that is nearest to an unknown one; empty if none is near.
func meant(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return "; did you mean " + quote(best) + "?"
	}
	return ""
}

// Nearest returns the known name that differs from name by at most two letters, and by
// the fewest; empty if there is none.
func Nearest(name string, known []string) string {
	best, least := "", 3 // at most two letters differ
	for _, k := range known {
		// A name that is wholly different is no suggestion, however short it is.
		if d := distance(name, k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance returns how many letters to insert, delete, replace or swap with a neighbour
// to turn one word into another.
func distance(a, b string) int {
	// Three rows are enough: a swap looks two rows back.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			other := 1
			if a[i] == b[j] {
				other = 0
			}
			row[j+1] = min(last[j]+other, last[j+1]+1, row[j]+1)
			// Two neighbours were swapped: the commonest typing mistake.
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// fieldNames returns the names of a type's fields in the file.
func fieldNames(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// usual returns a typical field of a type. An agent's name is its key, so name does not
// count.
func usual(t reflect.Type) string {
	names := slices.DeleteFunc(fieldNames(t), func(name string) bool { return name == "name" })
	return names[0]
}

// meantIn suggests a field for an unknown one, in the type that the path leads to.
func meantIn(t reflect.Type, path string) string {
	for {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		name, rest, index := step(path)
		if rest == "" {
			return meant(name, fieldNames(t))
		}
		if path = rest; index >= 0 || t.Kind() != reflect.Struct {
			continue
		}
		i := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == name
		})
		// An unknown name on the way: stay in this type.
		if i < 0 {
			continue
		}
		t = reflect.VisibleFields(t)[i].Type
	}
}

// Place returns the line of a path in a YAML document, zero if it is unknown, and what an
// unknown field there was meant to be, as the end of an error's text. t is the document's
// type.
func Place(document []byte, path string, t reflect.Type) (line int, meant string) {
	var doc yaml.Node
	room := maxNodes
	if yaml.Load(document, &doc) != nil || len(doc.Content) != 1 || !fits(doc.Content[0], 0, &room) {
		return 0, ""
	}
	if at := (entry{value: doc.Content[0]}).at(path); at != nil {
		line = at.Line
	}
	return line, meantIn(t, path)
}
