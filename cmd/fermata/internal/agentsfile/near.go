package agentsfile

import (
	"reflect"
	"strings"
)

// meant suggests the name that is nearest to one that is not known; empty where none is
// near.
func meant(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return "; is " + quote(best) + " meant?"
	}
	return ""
}

// Nearest is the known name that differs from another one by at most two letters, and by the
// fewest; empty if there is none.
func Nearest(name string, known []string) string {
	best, least := "", 3 // at most two letters are other ones
	for _, k := range known {
		if d := distance(name, k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters have to be put in, taken out, replaced or exchanged with
// their neighbour to make one word of another.
func distance(a, b string) int {
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
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// fieldNames are the names of a type's fields in the file.
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
