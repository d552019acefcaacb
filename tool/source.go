package tool

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
)

// Optional is a [Source] that may be one which runs can do without.
type Optional interface {
	Source
	// Optional reports whether a run begins without the source's tools where List fails.
	// Its model is told so.
	Optional() bool
}

// Changing is a [Source] whose tools may change while runs use them.
type Changing interface {
	Source
	// Relist returns the tools as they are now, where the source knows that they are others
	// than those that it last listed for a session's run. The runtime calls it after each
	// call of the source's; it must be quick where nothing has changed.
	Relist(ctx context.Context, session, run string) (tools []agent.ToolSpec, changed bool)
}

// Instructed is a [Source] that says how its tools are meant to be used, as an MCP server
// may.
type Instructed interface {
	Source
	// Instructions are for the model, as of the last List; empty if it has none.
	// The model reads them as the source's own words, 4 KiB of them at most.
	Instructions() string
}
