package worker_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// preview returns what a run would be. A program starts the worker instead, with
// worker.Run(ctx, server, o) as in ExampleRun.
func preview(o *worker.Options) agent.Spec {
	p, err := worker.DryRun(context.Background(), o, agent.Start{Agent: o.Agents[0].Name, Input: agent.Input{Text: "Begin."}})
	if err != nil {
		log.Fatal(err)
	}
	return p.Spec
}

// A hook after each turn is a Go function that only reads. It may send the model a message.
func ExampleOptions_afterTurn() {
	steer := tool.New("steer", "Looks at a turn.",
		func(_ context.Context, _ *tool.Call, r agent.TurnReport) (agent.TurnDecision, error) {
			if slices.Contains(r.All.Successful, "read_file") {
				return agent.TurnDecision{Message: "You have the file. Answer now."}, nil
			}
			return agent.TurnDecision{}, nil
		}, &tool.Options{ReadOnly: true})
	read := tool.New("read_file", "Reads a file.",
		func(_ context.Context, _ *tool.Call, in struct{ Path string }) (string, error) {
			return "the text of " + in.Path, nil
		}, &tool.Options{ReadOnly: true})
	reader := agent.Definition{Name: "reader", Model: "anthropic/claude-sonnet-5", Tools: []string{"read_file"}}
	reader.Hooks.AfterTurn.Checks = []agent.Check{{Name: "pace", Tool: "steer"}}

	spec := preview(&worker.Options{
		Agents: []agent.Definition{reader},
		Tools:  []tool.Tool{read, steer}, // the agent itself has no tool steer
		Models: map[string]model.Model{"anthropic": claude},
		Store:  transcripts,
	})
	fmt.Println(spec.Hooks.AfterTurn.Checks[0].Tool, "looks at each turn of", spec.Name)
	// Output: steer looks at each turn of reader
}

// A custom compaction is a Go function that writes the summary of older messages.
func ExampleOptions_customCompaction() {
	sumUp := tool.New("sum_up", "Sums up a conversation.",
		func(_ context.Context, _ *tool.Call, in agent.CompactionInput) (agent.CompactionSummary, error) {
			var lines []string
			for _, p := range in.Archived {
				if p.Role == agent.RoleUser && p.Text != "" {
					lines = append(lines, "- the user said: "+p.Text)
				}
			}
			return agent.CompactionSummary{Summary: "Before this:\n" + strings.Join(lines, "\n")}, nil
		}, &tool.Options{ReadOnly: true})

	spec := preview(&worker.Options{
		Agents: []agent.Definition{{
			Name: "talker", Model: "anthropic/claude-sonnet-5", Tools: []string{},
			Compaction: agent.CompactionPolicy{Strategy: agent.CompactionCustom, Tool: "sum_up"},
		}},
		Tools:  []tool.Tool{sumUp},
		Models: map[string]model.Model{"anthropic": claude},
		Store:  transcripts,
	})
	fmt.Println(spec.Compaction.Tool, "writes the summaries of", spec.Name)
	// Output: sum_up writes the summaries of talker
}

// Of what tools keep in the session, later runs of this agent find the key paid alone.
func ExampleOptions_persistState() {
	const paid tool.Key[[]int] = "paid"
	pay := tool.New("pay", "Pays an invoice once.",
		func(ctx context.Context, c *tool.Call, in struct{ Number int }) (string, error) {
			before, _, err := paid.Get(ctx, c) // nil in a new session
			switch {
			case err != nil:
				return "", err
			case slices.Contains(before, in.Number):
				return "it is paid already", nil
			}
			return "paid", paid.Set(c, append(before, in.Number))
		}, nil)

	spec := preview(&worker.Options{
		Agents: []agent.Definition{{Name: "payer", Model: "anthropic/claude-sonnet-5", Tools: []string{"pay"}, PersistState: []string{"paid"}}},
		Tools:  []tool.Tool{pay},
		Models: map[string]model.Model{"anthropic": claude},
		Store:  transcripts,
	})
	fmt.Println(spec.Name, "finds", spec.PersistState, "of earlier runs")
	// Output: payer finds [paid] of earlier runs
}
