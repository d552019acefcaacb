package agents

import (
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

func TestAnAgent(t *testing.T) {
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{
			Agents: []agent.Definition{{Name: "greeter", Model: "openai/gpt-5.6", Instructions: "Greet."}},
			Models: map[string]model.Model{"openai": openai.New(nil)},
		},
		Model: testsuite.NewScript(testsuite.Reply{Text: "Good morning."}),
	})
	if said := s.Start("greeter", "good morning", nil).Completed().Text; said != "Good morning." {
		t.Fatal(said)
	}
	if client.New(nil, nil) == nil {
		t.Fatal("no client")
	}
}
