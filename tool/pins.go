package tool

import "github.com/fermata-agents/fermata/agent"

// SignIn is the second part of a tool's name. While nobody has signed in to a source, the
// source lists only this tool.
const SignIn = "sign_in"

// Pins keep a [Source] to the tools that somebody has accepted. Their methods are safe
// for concurrent use. Package tool/lock keeps pins in a file.
type Pins interface {
	// Filter returns the tools that are as they were pinned, and what differs. words is
	// what the source says about its tools; nil means that nobody asked. The first call
	// for a source pins everything. If Filter returns an error, none of the source's
	// tools is used.
	Filter(source string, tools []agent.ToolSpec, words *string) (Held, error)
}

// Held is the result of [Pins.Filter].
type Held struct {
	Tools   []agent.ToolSpec // the tools that are as they were pinned
	Changes []Change         // what is left out
	// New means that this call pinned the source for the first time.
	New bool
}

// Change is a tool that is left out because it differs from what was accepted. If Name is
// the source's own, it is what the source says about its tools. If Name is SOURCE/SKILL, it
// is a skill.
type Change struct {
	Name string
	// New means that nothing was accepted under this name.
	New bool
	// Digest is what to accept, see lock.File.AcceptOne.
	Digest string
}
