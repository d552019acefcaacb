// Package lock pins the tools of sources, such as MCP servers, in a file beside what names
// them: a server that has earned trust could give a tool another description later, which
// models read, or another schema. What a source lists when it is first used is written down,
// as digests. Later on a tool that is new, or is not as it was, is left out until somebody
// accepts it. The file belongs into version control, and into what is deployed. Programs that
// models may run must not be able to write it, nor the same name with ".new" behind.
package lock
