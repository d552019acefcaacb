package agent

import (
	"slices"
	"strings"
)

// PersistsState reports whether a value that a tool keeps under a key outlives its run.
func (d Definition) PersistsState(key string) bool {
	return len(d.PersistState) == 0 || slices.Contains(d.PersistState, key) || strings.HasPrefix(key, "fermata.")
}
