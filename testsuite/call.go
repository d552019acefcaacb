package testsuite

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// NewCall returns a call for a unit test of a tool, without a run and its store. files returns
// what the tool has added to its result with [tool.Call.AddFile], in order, each with the type
// that was found.
func NewCall(c tool.Call) (call *tool.Call, files func() []agent.FileInput) {
	h, stored := hooks(c)
	return c.With(h), func() (all []agent.FileInput) {
		for _, p := range h.Files() {
			all = append(all, agent.FileInput{Name: p.File.Name, MediaType: p.File.MediaType, Text: p.Text, Data: stored[p.File.Digest]})
		}
		return all
	}
}
