package toolcall

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/fermata-agents/fermata/agent"
)

// Hooks connect a call to the runtime. All fields may be zero.
type Hooks struct {
	// Answers are the answers to earlier attempts' questions, in their order.
	Answers []agent.ToolAnswer
	// Waits means that the call may wait for an event or a time: it is a step of a flow.
	Waits bool
	// Progress receives the tool's notes. It may be called from any goroutine.
	Progress func(string)
	// State returns the session's state as of the turn's beginning.
	State func(context.Context) (map[string]json.RawMessage, error)
	// PutFile stores a file of the result with the call's session.
	PutFile func(ctx context.Context, name, mediaType string, data []byte) (*agent.File, error)

	// Question is set by the call: the question that has no answer yet.
	Question *agent.ToolQuestion
	// StateChanges is set by the call: the keys that it has changed. A deleted key is
	// null.
	StateChanges map[string]json.RawMessage

	// ExitStatus is set by the call: the exit status of the command that it has run.
	ExitStatus *int

	// Skill is set by a call of the tool skill.
	Skill *agent.SkillUpdate

	mu        sync.Mutex
	files     []agent.Part
	adding    int // files that are being stored
	artifacts []agent.File
	saving    int // artifacts that are being stored
}

// AddFile stores a file and adds it to the result. It may be called from any goroutine.
func (h *Hooks) AddFile(ctx context.Context, f agent.FileInput, mediaType string) error {
	h.mu.Lock()
	full := len(h.files)+h.adding >= agent.MaxFiles
	if !full {
		h.adding++
	}
	h.mu.Unlock()
	if full {
		return agent.Errorf(agent.CodeTooLarge, "a result has at most %d files", agent.MaxFiles)
	}
	file, err := h.PutFile(ctx, f.BaseName(), mediaType, f.Data) // unlocked: a slow store must not hold up Files
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.adding--; err == nil {
		h.files = append(h.files, agent.Part{Type: agent.PartFile, Text: f.Text, File: file})
	}
	return err
}

// Files returns the files of the result. A goroutine that the tool has left may still add one.
func (h *Hooks) Files() []agent.Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.files)
}

// SaveArtifact stores a file and adds it to the artifacts of the call. It may be called from any
// goroutine.
func (h *Hooks) SaveArtifact(ctx context.Context, f agent.FileInput, mediaType string) error {
	h.mu.Lock()
	full := len(h.artifacts)+h.saving >= agent.MaxFiles
	if !full {
		h.saving++
	}
	h.mu.Unlock()
	if full {
		return agent.Errorf(agent.CodeTooLarge, "a call saves at most %d artifacts", agent.MaxFiles)
	}
	file, err := h.PutFile(ctx, f.Name, mediaType, f.Data) // unlocked, as in AddFile
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.saving--; err == nil {
		h.artifacts = append(h.artifacts, *file)
	}
	return err
}

// Artifacts returns the files that the call has saved as artifacts.
func (h *Hooks) Artifacts() []agent.File {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.artifacts)
}
