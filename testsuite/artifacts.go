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

// NewArtifactCall returns a call for a unit test of a tool, like [NewCall]. artifacts returns what the
// tool has saved with [tool.Call.SaveArtifact], in order, each with the type that was found. A tool that
// also shows files needs a test with each of both calls.
func NewArtifactCall(c tool.Call) (call *tool.Call, artifacts func() []agent.FileInput) {
	h, stored := hooks(c)
	return c.With(h), func() (all []agent.FileInput) {
		for _, f := range h.Artifacts() {
			all = append(all, agent.FileInput{Name: f.Name, MediaType: f.MediaType, Data: stored[f.Digest]})
		}
		return all
	}
}

// hooks are those of a call without a run. stored are the bytes of its files, by digest.
func hooks(c tool.Call) (h *toolcall.Hooks, stored map[string][]byte) {
	stored = map[string][]byte{}
	return &toolcall.Hooks{PutFile: func(_ context.Context, name, mediaType string, data []byte) (*agent.File, error) {
		sum := sha256.Sum256(data)
		f := &agent.File{Session: cmp.Or(c.Session, "session"), Digest: hex.EncodeToString(sum[:]), Size: len(data), MediaType: mediaType, Name: name}
		stored[f.Digest] = bytes.Clone(data)
		return f, f.Check()
	}}, stored
}
