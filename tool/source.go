package tool

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
)

// Optional is a [Source] that runs may be able to do without.
type Optional interface {
	Source
	// Optional reports whether a run begins without the source's tools if List fails. The
	// model is then told that they are missing.
	Optional() bool
}

// Changing is a [Source] whose tools may change while runs use them.
type Changing interface {
	Source
	// Relist returns the tools as they are now, if the source knows that they differ from
	// those that it last listed for a session's run. The runtime calls it after each call
	// of the source's tools, so it must be quick if nothing has changed.
	Relist(ctx context.Context, session, run string) (tools []agent.ToolSpec, changed bool)
}

// Instructed is a [Source] that says how to use its tools, as an MCP server may.
type Instructed interface {
	Source
	// Instructions returns the text for the model, as of the last List; empty if there is
	// none. The model reads it as the source's own words. At most 4 KiB are used.
	Instructions() string
}
