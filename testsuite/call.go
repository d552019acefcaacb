package testsuite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
)

// NewCall returns a call for a unit test of a tool, without a run and its store. files returns
// what the tool has added to its result with [tool.Call.AddFile], in order, each with the type
// that was found.
func NewCall(c tool.Call) (call *tool.Call, files func() []agent.FileInput) {
	stored := map[string][]byte{}
	h := &toolcall.Hooks{PutFile: func(_ context.Context, name, mediaType string, data []byte) (*agent.File, error) {
		sum := sha256.Sum256(data)
		f := &agent.File{Session: cmp.Or(c.Session, "session"), Digest: hex.EncodeToString(sum[:]), Size: len(data), MediaType: mediaType, Name: name}
		stored[f.Digest] = bytes.Clone(data)
		return f, f.Check()
	}}
	return c.With(h), func() (all []agent.FileInput) {
		for _, p := range h.Files() {
			all = append(all, agent.FileInput{Name: p.File.Name, MediaType: p.File.MediaType, Text: p.Text, Data: stored[p.File.Digest]})
		}
		return all
	}
}
