package patterns_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/examples/patterns"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// says makes replies that are given by what an agent reads.
func says(pairs ...string) *testsuite.Script {
	var replies []testsuite.Reply
	for i := 0; i < len(pairs); i += 2 {
		replies = append(replies, testsuite.Reply{Match: pairs[i], Text: pairs[i+1]})
	}
	return testsuite.NewScript(replies...)
}

func TestPatterns(t *testing.T) {
	server := devserver.ForTest(t)
	for name, c := range map[string]struct {
		flow   flow.Flow
		script *testsuite.Script
		input  string
		output string
	}{
		"chain":       {patterns.Chain, says("^bread$", "1. flour 2. water", "^1. flour", "Mix them."), "bread", "Mix them."},
		"route":       {patterns.Route, says("^my money", `{"kind":"refund"}`, "^Pay back", "Here it is."), "my money back", "Here it is."},
		"vote":        {patterns.Vote, says("^law", `{"unsafe":false}`, "^tone", `{"unsafe":true}`, "^facts", `{"unsafe":true}`), "hello", "false"},
		"orchestrate": {patterns.Orchestrate, says("^a cake$", `{"tasks":["bake","glaze"]}`, "^bake$", "baked", "^glaze$", "glazed", "baked\nglazed", "A cake."), "a cake", "A cake."},
		"improve":     {patterns.Improve, says("^a poem$", "Roses", "^Roses$", `{"good":false,"advice":"Rhyme."}`, "Rhyme", "Roses, noses", "^Roses, noses$", `{"good":true,"advice":""}`), "a poem", "Roses, noses"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &worker.Options{Flows: []flow.Flow{c.flow}}
			for _, sub := range c.flow.Definition().Agents {
				o.Agents = append(o.Agents, agent.Definition{Name: sub.Agent, Model: "script"})
			}
			s := testsuite.New(t, &testsuite.Options{Worker: o, Model: c.script, Server: server.Client(t)})
			require.Equal(t, c.output, s.Start(c.flow.Definition().Name, c.input, nil).Completed().Text)
		})
	}
}
