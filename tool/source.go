package tool

// Optional is a [Source] that may be one which runs can do without.
type Optional interface {
	Source
	// Optional reports whether a run begins without the source's tools where List fails.
	// Its model is told so.
	Optional() bool
}

// Instructed is a [Source] that says how its tools are meant to be used, as an MCP server
// may.
type Instructed interface {
	Source
	// Instructions are for the model, as of the last List; empty if it has none.
	// The model reads them as the source's own words, 4 KiB of them at most.
	Instructions() string
}
