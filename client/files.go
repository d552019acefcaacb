package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/fermata-agents/fermata/agent"
)

// FileInput is a file to be sent with a message. Its bytes go into the store, and the
// message only names them.
type FileInput = agent.FileInput

// PutFiles stores files with a session and returns the parts of a message that name them. The
// session need not exist yet. Each is stored durably, and however often it is put, only
// once. What no message names is deleted with the session, or collected after
// [store.UnusedFile]. Start, Send, Answer and Resume store the files of their options.
//
// Errors are [agent.CodeNotSetUp] without a store, [agent.CodeInvalidInput] for a run of a
// stateless agent and, with the path of the file, also if the bytes are of another type than
// the one that is named, and those of the store.
func (c *Client) PutFiles(ctx context.Context, session string, files ...FileInput) ([]agent.Part, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if c.log == nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "storing files: %w", ErrNoStore)
	}
	info, err := c.last(ctx, session)
	if err != nil && !errors.Is(err, agent.CodeNotFound) {
		return nil, err
	}
	if err := keepsSession(info); err != nil {
		return nil, err
	}
	if len(files) > agent.MaxFiles {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%d files are sent; a message has at most %d", len(files), agent.MaxFiles).WithPath("files")
	}
	var parts []agent.Part
	for i, a := range files {
		kind, bad := a.Type()
		if bad != nil {
			return nil, bad.WithPath(fmt.Sprintf("files[%d].media_type", i))
		}
		f, err := c.log.PutFile(ctx, session, a.BaseName(), kind, a.Data)
		if err != nil {
			return nil, fmt.Errorf("storing %q: %w", a.BaseName(), err)
		}
		parts = append(parts, agent.Part{Type: agent.PartFile, Text: a.Text, File: f})
	}
	return parts, nil
}

// fileParts returns the parts of a message with files.
func fileParts(m agent.Message) (parts []agent.Part) {
	for _, p := range m.Parts {
		if p.File != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

// ownParts returns parts with files as a session may show them: those of other sessions are stored
// once more.
func (c *Client) ownParts(ctx context.Context, session string, parts []agent.Part) (own []agent.Part, err error) {
	for _, p := range parts {
		if f := p.File; f.Session != session {
			data, err := c.File(ctx, f)
			if errors.Is(err, agent.CodeChunkMissing) { // it was deleted, which stops no conversation
				own = append(own, agent.Part{Type: agent.PartText, Text: fmt.Sprintf("[%s: it was deleted]", f)})
				continue
			}
			if err != nil {
				return nil, err
			}
			if p.File, err = c.log.PutFile(ctx, session, f.Name, f.MediaType, data); err != nil {
				return nil, fmt.Errorf("storing %q: %w", f.Name, err)
			}
		}
		own = append(own, p)
	}
	return own, nil
}

// SessionFile is a file as one message of a session shows it.
type SessionFile struct {
	// Seq is the number of the event with the message, and Turn that of its turn.
	Seq  int64      `json:"seq"`
	Turn int        `json:"turn,omitempty"`
	Role agent.Role `json:"role"`
	agent.File
}

// Files lists the files that a session's messages show, in the order of the log: once for
// each message, also if the conversation has been compacted, or a fork has left the message
// out. It needs what [Client.Transcript] needs, with the same errors.
func (c *Client) Files(ctx context.Context, session string) iter.Seq2[SessionFile, error] {
	return func(yield func(SessionFile, error) bool) {
		view, err := c.view(ctx, session)
		if err != nil {
			yield(SessionFile{}, err)
			return
		}
		for _, e := range view.Events() {
			if e.Message == nil || e.Message.Note == agent.NoteSummary { // it names files of messages before it
				continue
			}
			for _, f := range e.Message.Files() {
				if !yield(SessionFile{Seq: e.Seq, Turn: e.Turn, Role: e.Message.Role, File: *f}, nil) {
					return
				}
			}
		}
	}
}

// File returns the bytes of a file that a message, an outcome or an artifact names
// ([Client.Files], [agent.Outcome], [Client.Artifacts]). Errors are [agent.CodeNotSetUp] without a
// store, and those of [store.Log.File]: [agent.CodeChunkMissing] for one that was deleted.
func (c *Client) File(ctx context.Context, f *agent.File) ([]byte, error) {
	if c.log == nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "reading a file: %w", ErrNoStore)
	}
	return c.log.File(ctx, f)
}
