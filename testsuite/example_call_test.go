package testsuite_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// A tool that shows files is tested without a run.
func ExampleNewCall() {
	export := tool.New("export", "Exports the orders.", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		err := c.AddFile(ctx, agent.FileInput{Name: "orders.csv", Data: []byte("number,eur\n7,80\n")})
		return "1 order", err
	}, nil)
	call, files := testsuite.NewCall(tool.Call{Arguments: []byte("{}")})
	text, err := export.Call(context.Background(), call)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files() {
		fmt.Printf("%s: %s, %s, %q\n", text, f.Name, f.MediaType, f.Data)
	}
	// Output: 1 order: orders.csv, text/csv, "number,eur\n7,80\n"
}

// A tool that saves artifacts is tested without a run.
func ExampleNewArtifactCall() {
	report := tool.New("report", "Reports the orders.", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		err := c.SaveArtifact(ctx, agent.FileInput{Name: "orders.md", Data: []byte("# Orders\n")})
		return "1 order", err
	}, nil)
	call, artifacts := testsuite.NewArtifactCall(tool.Call{Arguments: []byte("{}")})
	text, err := report.Call(context.Background(), call)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range artifacts() {
		fmt.Printf("%s: %s, %s, %q\n", text, a.Name, a.MediaType, a.Data)
	}
	// Output: 1 order: orders.md, text/markdown, "# Orders\n"
}
