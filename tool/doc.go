// Package tool makes tools: what a model may call. Begin with [New], which makes a tool
// from a Go function. The tool's JSON Schema comes from the function's types, and
// arguments are checked before the function is called. The [New] example has a whole
// tool.
//
// A function gets a [Call]. Its Key stays the same when the runtime repeats the call:
// pass the key on, so that the work is done once. [Call.Ask] asks a person,
// [Call.AddFile] shows the model a file, [Call.SaveArtifact] saves a named result of the run with
// versions, [Key] reads and writes the session's state, and [Refuse] and [Unknown] say how a call
// failed. A [Source] is a set of tools that is known only at run time, such as an MCP server's.
package tool
