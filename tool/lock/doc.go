// Package lock pins the tools and skills of sources, such as MCP servers, in a lock file. A
// trusted server could later change a tool's schema, or the description that models read. So
// the file records digests of what a source lists when it is first used. A tool or skill that
// is new or changed later is left out until somebody accepts it.
//
// Begin with [At], and give the [File] to the worker, which filters tools with it. Call
// [File.FilterSkills] before you give skills of a server to the worker. Commit the file and
// deploy it with the agents file. Programs that models may run must not be able to write it, nor the
// file of the same name with ".new" at its end.
package lock
