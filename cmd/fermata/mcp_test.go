package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveMCP is an MCP server with one tool, on standard input and output.
func serveMCP() {
	type args struct {
		Number int `json:"number"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "title", Description: "the title of a ticket"},
		func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "The till is wrong"}}}, nil, nil
		})
	_ = s.Run(context.Background(), &mcp.StdioTransport{}) // its end is the client's to choose
}
