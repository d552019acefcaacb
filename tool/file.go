package tool

import (
	"context"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
)

// AddFile stores a file with the call's session and shows it to the model with the call's
// result, also if the tool returns an error. The result's text should say what it is. A model
// that can't read it gets its name, type, size and Text. It may be called from any goroutine.
//
// If the call is made again, nothing of this attempt is shown. The bytes are in no history, log
// or event; they are stored once in a session, and deleted with it.
//
// Errors are [agent.CodeInvalidInput] if nothing, or another type than the bytes have, is
// named; [agent.CodeTooLarge] for more than [agent.MaxFile], [agent.MaxFileText] or
// [agent.MaxFiles]; [agent.CodeNotSetUp] without a run; and those of the store.
func (c *Call) AddFile(ctx context.Context, f agent.FileInput) error {
	kind, err := c.mayStore(f)
	if err != nil {
		return err
	}
	if err := c.hooks.AddFile(ctx, f, kind); err != nil {
		return fmt.Errorf("storing %q: %w", f.BaseName(), err)
	}
	return nil
}

// SaveArtifact stores a file with the call's session and saves it as an artifact: a named result
// of the run, also if the tool returns an error. f.Name is the artifact's name: without folders, and
// without spaces at its ends ([agent.CheckArtifactName]). Saving other bytes under the same name makes
// its next version; saving the same bytes again makes none. f.Text is not used. It may be called
// from any goroutine.
//
// If the call is made again, nothing of this attempt is saved: a version exists once the run has
// the call's result. The model reads in the result which versions were made, and which artifacts the run
// refused because it has no space for more names: see [agent.MaxArtifacts].
//
// Errors are those of [Call.AddFile], [agent.CodeInvalidInput] for a name that no artifact can have,
// and [agent.CodeTooLarge] for more than [agent.MaxFiles] in one call.
func (c *Call) SaveArtifact(ctx context.Context, f agent.FileInput) error {
	if err := agent.CheckArtifactName(f.Name); err != nil {
		return err
	}
	kind, err := c.mayStore(f)
	if err != nil {
		return err
	}
	if err := c.hooks.SaveArtifact(ctx, f, kind); err != nil {
		return fmt.Errorf("saving the artifact %q: %w", f.Name, err)
	}
	return nil
}

// mayStore returns the type of a file that the call may store.
func (c *Call) mayStore(f agent.FileInput) (kind string, err error) {
	if c.hooks == nil || c.hooks.PutFile == nil {
		return "", agent.Errorf(agent.CodeNotSetUp, "a call's file is stored with a run's session, and this call is no run's; in a test, make the call with testsuite.NewCall, or with testsuite.NewArtifactCall for artifacts")
	}
	if len(f.Data) > agent.MaxFile || len(f.Text) > agent.MaxFileText {
		return "", agent.Errorf(agent.CodeTooLarge, "the file has %d bytes and a description of %d; at most %d and %d are taken", len(f.Data), len(f.Text), agent.MaxFile, agent.MaxFileText)
	}
	kind, bad := f.Type()
	if bad != nil {
		return "", bad.WithPath("media_type")
	}
	return kind, nil
}
