//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
)

func ExampleNew() {
	// The command of a real one is something like []string{"npx", "tickets-mcp"}.
	tickets := mcp.New("tickets", []string{os.Args[0]}, &mcp.Options{
		Env: map[string]string{"MCP_TEST_SERVER": "strict"}, AsRoot: true,
	})
	defer tickets.Close()

	specs, err := tickets.List(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range specs {
		answer, err := tickets.Call(context.Background(), &tool.Call{Tool: s.Name, Arguments: []byte(`{}`)})
		fmt.Println(s.Name, answer, err)
	}
	// Output: tickets__one done <nil>
}
