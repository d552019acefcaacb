package tool

import "github.com/fermata-agents/fermata/agent"

// SignIn is the name of the tool, behind the source's, that a source lists alone as long as
// nobody has signed in to it.
const SignIn = "sign_in"

// Pins keep a [Source] to what it was when somebody accepted it. Their methods may be called
// from many goroutines at once. The package tool/lock has a file of them.
type Pins interface {
	// Filter tells which of a source's tools are as they were pinned, and what differs.
	// Words are what the source says of its tools; nil means that they were not asked for. A
	// source that is held for the first time is pinned as it is. An error means that
	// nothing is known: then none of the tools is used.
	Filter(source string, tools []agent.ToolSpec, words *string) (Held, error)
}

// Held is what pins say of what a source lists.
type Held struct {
	Tools   []agent.ToolSpec // those that are as they were pinned
	Changes []Change         // what is left out
	// New means that nothing was pinned of the source so far: all that it lists is now.
	New bool
}

// Change is a tool that is left out since it is not as it was accepted, or what a source says
// of its tools: then Name is the source's.
type Change struct {
	Name string
	// New means that nothing was accepted under that name.
	New bool
	// Digest is what to accept, as pins have it.
	Digest string
}
