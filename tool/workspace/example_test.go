package workspace_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w, err := workspace.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	tools := map[string]tool.Tool{}
	for _, t := range w.Tools() {
		tools[t.Spec().Name] = t
	}
	for _, call := range []tool.Call{
		{Tool: workspace.WriteTool, Arguments: []byte(`{"path":"notes/today.md","content":"tea\nbread\n"}`)},
		{Tool: workspace.WriteTool, Arguments: []byte(`{"path":"notes/today.md","old":"tea","new":"coffee"}`)},
		{Tool: workspace.GrepTool, Arguments: []byte(`{"pattern":"cof+ee"}`)},
		{Tool: workspace.ReadTool, Arguments: []byte(`{"path":"../../etc/passwd"}`)},
	} {
		text, err := tools[call.Tool].Call(context.Background(), &call)
		if err != nil {
			text = err.Error()
		}
		fmt.Println(text)
	}
	// Output:
	// notes/today.md: created, 2 lines, 10 B
	// notes/today.md: replaced 1 line by 1 line at line 1, now 13 B
	// [1 match in 1 file]
	// notes/today.md:1: coffee
	// fs_read refused: ../../etc/passwd is outside the workspace
}
