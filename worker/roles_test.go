package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// levels is a table of models, as providers have one.
var levels = model.MustTable([]byte(`{
	"as_of": "2026-11-21",
	"sources": ["https://example.com/models"],
	"models": {
		"thinker": {"price": {"input": 1, "output": 5}, "reasoning": ["off", "low", "medium", "high"]},
		"always": {"price": {"input": 1, "output": 5}, "reasoning": ["low", "medium", "high"]},
		"plain": {"price": {"input": 1, "output": 5}}
	}
}`))

// listed is a model of which the table tells what it is.
type listed struct {
	model.Model
	name string
}

func (l listed) Info(string) model.Info {
	return levels.Info(l.name, time.Now(), model.PriceTerms{})
}

// What a model is asked has the effort that the role chooses, if the provider's table says that the
// model can think. The author's own choice stands, whatever the model (HA-151).
func TestARoleChoosesTheEffortOfARequest(t *testing.T) {
	for role, chosen := range map[string]agent.Reasoning{
		"": "", "reviewer": agent.ReasoningMedium, "researcher": agent.ReasoningMedium, "auditor": agent.ReasoningMedium,
		"on_call": agent.ReasoningLow, "releaser": agent.ReasoningLow, "summarizer": agent.ReasoningOff,
	} {
		for name, thinks := range map[string]bool{"thinker": true, "always": true, "plain": false, "unknown": false} {
			for _, own := range []agent.Reasoning{"", agent.ReasoningOff, agent.ReasoningHigh, agent.ReasoningAuto} {
				want := own
				if own == "" && thinks {
					want = chosen
				}
				script := testsuite.NewScript(testsuite.Reply{Text: "done", Repeat: 9})
				o := &worker.Options{
					Agents: []agent.Definition{{Name: "a", Model: "house/m", Role: role, Reasoning: own, Completion: agent.CompletionNatural}},
					Models: map[string]model.Model{"house": listed{script, name}},
				}
				run := testsuite.New(t, &testsuite.Options{Worker: o}).Start("a", "go", nil).Ended()
				require.NoError(t, run.Err())
				require.NotEmpty(t, script.Requests())
				for _, req := range script.Requests() {
					require.Equal(t, want, req.Reasoning, "role %q, model %s, own %q", role, name, own)
				}
			}
		}
	}
}
