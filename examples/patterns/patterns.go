package patterns

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
)

// Chain gives the work of one agent to the next, and stops if a check between them fails.
var Chain = flow.New("chain", func(c flow.Context, subject string) (string, error) {
	outline, err := flow.Agent[string](c, "outliner", subject, nil)
	if err != nil {
		return "", err
	}
	if !strings.Contains(outline, "1.") {
		return "", agent.Errorf(agent.CodeFlowFailed, "the outline has no numbered points: %s", outline)
	}
	return flow.Agent[string](c, "writer", outline, nil)
}, &flow.Options{Agents: agents("outliner", "writer")})

// Kind is what a classifier answers.
type Kind struct {
	Kind string `json:"kind" jsonschema:"refund, or other"`
}

// Route lets one agent decide which other one gets the work.
var Route = flow.New("route", func(c flow.Context, mail string) (string, error) {
	k, err := flow.Agent[Kind](c, "classifier", mail, nil)
	if err != nil {
		return "", err
	}
	switch k.Kind {
	case "refund":
		return flow.Agent[string](c, "cashier", "Pay back: "+mail, nil)
	default:
		return flow.Agent[string](c, "desk", mail, nil)
	}
}, &flow.Options{Agents: agents("classifier", "cashier", "desk")})

// Verdict is what a voter answers.
type Verdict struct {
	Unsafe bool `json:"unsafe"`
}

// Vote asks three agents at once, and is done when two have answered.
var Vote = flow.New("vote", func(c flow.Context, text string) (bool, error) {
	votes, err := flow.Map(c, "voter", []string{"law", "tone", "facts"}, func(c flow.Context, about string) (Verdict, error) {
		return flow.Agent[Verdict](c, "voter", about+": "+text, nil)
	}, &flow.MapOptions{Need: 2})
	if err != nil {
		return false, err
	}
	for _, v := range flow.Values(votes) {
		if v.Unsafe {
			return false, nil
		}
	}
	return true, nil
}, &flow.Options{Agents: agents("voter")})

// Plan is what an orchestrator answers.
type Plan struct {
	Tasks []string `json:"tasks"`
}

// Orchestrate lets one agent split the work, and others do it, three at once.
var Orchestrate = flow.New("orchestrate", func(c flow.Context, goal string) (string, error) {
	plan, err := flow.Agent[Plan](c, "planner", goal, nil)
	if err != nil {
		return "", err
	}
	done, err := flow.Map(c, "task", plan.Tasks, func(c flow.Context, task string) (string, error) {
		return flow.Agent[string](c, "hand", task, nil)
	}, &flow.MapOptions{Width: 3})
	if err != nil {
		return "", err
	}
	return flow.Agent[string](c, "editor", strings.Join(flow.Values(done), "\n"), nil)
}, &flow.Options{Agents: agents("planner", "hand", "editor")})

// Judgement is what a judge answers.
type Judgement struct {
	Good   bool   `json:"good"`
	Advice string `json:"advice"`
}

// Improve lets a judge send the work back until it is good, four times at most.
var Improve = flow.New("improve", func(c flow.Context, subject string) (string, error) {
	advice := ""
	for range 4 {
		draft, err := flow.Agent[string](c, "writer", subject, &flow.AgentOptions{Context: advice})
		if err != nil {
			return "", err
		}
		j, err := flow.Agent[Judgement](c, "judge", draft, nil)
		if err != nil {
			return "", err
		}
		if j.Good {
			return draft, nil
		}
		advice = j.Advice
	}
	return "", agent.Errorf(agent.CodeFlowFailed, "the judge was never content")
}, &flow.Options{Agents: agents("writer", "judge")})

func agents(names ...string) (list []agent.SubAgent) {
	for _, name := range names {
		list = append(list, agent.SubAgent{Agent: name})
	}
	return list
}
