package client

import (
	"context"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
)

// FileInput is a file to be sent with a message. Its bytes go into the store, and the
// message only names them.
type FileInput = agent.FileInput

// PutFiles stores files with a session and returns the parts of a message that name them. The
// session need not exist yet. Each is stored durably, and however often it is put, only
// once. What no message names is deleted with the session, or collected after
// [store.UnusedFile]. Start and Send store the files of their options.
//
// Errors are [agent.CodeNotSetUp] without a store, [agent.CodeInvalidInput] with the path of
// the file, also if the bytes are of another type than the one that is named, and those of
// the store.
func (c *Client) PutFiles(ctx context.Context, session string, files ...FileInput) ([]agent.Part, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if c.log == nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "storing files: %w", ErrNoStore)
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

// File returns the bytes of a file that a message names. Errors are [agent.CodeNotSetUp]
// without a store, and those of [store.Log.File]: [agent.CodeChunkMissing] for one that was
// deleted.
func (c *Client) File(ctx context.Context, f *agent.File) ([]byte, error) {
	if c.log == nil {
		return nil, agent.Errorf(agent.CodeNotSetUp, "reading a file: %w", ErrNoStore)
	}
	return c.log.File(ctx, f)
}
