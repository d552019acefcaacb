// Mcpkit is the client that MCP's conformance kit tests. It uses a server through package
// mcp as a worker does, without the worker. The kit starts it with a server's URL, and
// names the scenario in the environment. `.ci/run mcp` runs all of them.
package main
