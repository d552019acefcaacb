package agent

import (
	"slices"
	"strings"
)

// Models returns the full names of the agent's model and of its fallbacks, in the order
// in which they are called.
func (d Definition) Models() []string { return append([]string{d.Model}, d.Fallbacks...) }

func (d Definition) checkFallbacks() error {
	for i, name := range d.Fallbacks {
		if strings.TrimSpace(name) == "" {
			return Errorf(CodeInvalidInput, "agent %s: fallbacks[%d] is empty; name a model", d.Name, i).WithPath("fallbacks")
		}
		if slices.Contains(d.Models()[:i+1], name) {
			return Errorf(CodeInvalidInput, "agent %s: fallbacks[%d]: %s is asked already; name another model", d.Name, i, name).WithPath("fallbacks")
		}
	}
	return nil
}
