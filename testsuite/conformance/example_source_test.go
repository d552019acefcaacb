package conformance_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/conformance"
	"github.com/fermata-agents/fermata/tool"
)

// catalog is a source: its tools are known only when List is called. Here they are Go
// functions.
type catalog struct{ tools []tool.Tool }

func (catalog) Name() string { return "shop" }

func (c catalog) List(ctx context.Context) ([]agent.ToolSpec, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var specs []agent.ToolSpec
	for _, t := range c.tools {
		spec := t.Spec()
		spec.Name = c.Name() + tool.Separator + spec.Name
		specs = append(specs, spec)
	}
	return specs, nil
}

func (c catalog) Call(ctx context.Context, call *tool.Call) (string, error) {
	for _, t := range c.tools {
		if call.Tool == c.Name()+tool.Separator+t.Spec().Name {
			return t.Call(ctx, call)
		}
	}
	return "", agent.Errorf(agent.CodeUnknownTool, "the shop has no tool %q", call.Tool)
}

// A test of a source calls the tools that its options name.
func ExampleSource() {
	TestShop := func(t *testing.T) {
		shop := catalog{[]tool.Tool{payTool(&bank{paid: map[string]int{}})}}
		conformance.Source(t, shop, &conformance.SourceOptions{Tools: map[string]conformance.ToolOptions{
			"shop__pay": {Arguments: `{"to":"Ana","cents":500}`},
		}})
	}
	fmt.Printf("%T\n", TestShop)
	// Output: func(*testing.T)
}
