// Mcpkit is the client that MCP's conformance kit tests: a worker's use of a server, in
// the package mcp, without the worker. The kit starts it with a server's URL, and names
// the scenario in the environment. `.ci/run mcp` runs all of them.
package main
