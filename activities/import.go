package activities

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/export"
	"github.com/fermata-agents/fermata/internal/loop"
)

// Import reads the state of a run that was suspended elsewhere, from a signed export in
// the store. Anybody who may start workflows can name an export. So it is accepted only
// with a signature by one of the worker's keys, only for its own session, and only once.
var Import = durable.Activity[loop.ImportArgs, ImportResult]{Name: "fermata.import"}

// ImportResult is recorded. The state has none of the log's messages, and says where the
// log ends in this store.
type ImportResult struct {
	Export string     `json:"export"`
	State  loop.State `json:"state"`
	Spec   agent.Spec `json:"spec"`
}

func (d *Activities) importRun(ctx context.Context, in loop.ImportArgs) (out ImportResult, err error) {
	defer heartbeat(ctx)()
	c, version, err := d.claimed(ctx, in)
	if err != nil {
		return out, err
	}
	if out.State, err = c.Machine(); err != nil {
		return out, err
	}
	if err := out.State.CheckLength(); err != nil {
		return out, err
	}
	if name := out.State.Spec.Name; name != in.Agent {
		return out, agent.Errorf(agent.CodeInvalidInput, "import refused: the export is of agent %s, not of %s", name, in.Agent).WithPath("agent")
	}
	// Here, since an import that fails here is not used up.
	if _, err := d.Model(out.State.Spec.Model); err != nil {
		return out, err
	}
	view, err := d.Log.Known(ctx, c.Head.Digest, nil)
	if err != nil {
		return out, err
	}
	spec := view.Spec()
	if spec == nil {
		return out, agent.Errorf(agent.CodeIncompatible, "import refused: the log of session %s has no run", in.Session)
	}
	// The export has the bytes of what its log names, and of nothing else.
	if out.State.Artifacts.Foreign(in.Session, view.Artifacts()) {
		return out, agent.Errorf(agent.CodeIncompatible, "import refused: session %s has an artifact of another session that its log does not have", in.Session).WithPath("import")
	}
	out.Export, out.Spec = c.ID, *spec
	out.State.Log = loop.Log{Head: c.Head.Digest, Seq: c.Head.Seq, Version: version}
	return out, nil
}

// claimed verifies an export. It also checks that the session's head came with it and
// that no run has continued from there. It returns the head's version.
func (d *Activities) claimed(ctx context.Context, in loop.ImportArgs) (c export.Content, version int64, err error) {
	blob, err := d.Log.Blob(ctx, in.Digest)
	if err != nil {
		return c, 0, err
	}
	if c, err = export.Open(blob, d.ExportKeys); errors.Is(err, agent.CodeBadSignature) {
		return c, 0, agent.Errorf(agent.CodeBadSignature, "%w: this is what the worker says, which verifies again; see that it has the key that %s names", err, "FERMATA_EXPORT_KEYS")
	} else if err != nil {
		return c, 0, err
	}
	head, err := d.Log.Head(ctx, in.Session)
	switch {
	case errors.Is(err, agent.CodeNotFound):
		return c, 0, agent.Errorf(agent.CodeStale, "import refused: session %s is not in the store; fermata import puts it there", in.Session)
	case err != nil:
		return c, 0, err
	case c.Session != in.Session:
		return c, 0, agent.Errorf(agent.CodeInvalidInput, "import refused: the export is of session %s, not of %s", c.Session, in.Session).WithPath("import")
	case head.Import != in.Digest || head.Imported != c.ID || head.Digest != c.Head.Digest:
		return c, 0, agent.Errorf(agent.CodeUsed, "import refused: session %s has gone on since, and the export %s is used", in.Session, c.ID)
	}
	return c, head.Version, c.Fresh(head.Updated)
}
