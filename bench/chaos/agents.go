package main

import (
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// The agents of the stories.
const (
	leadAgent   = "lead"
	helperAgent = "helper"
	scoutAgent  = "scout"
	daemonAgent = "watcher"
)

// The tools of the stories; see tools.go for what they do.
const (
	payTool    = "pay"    // an effect that must not happen twice
	wireTool   = "wire"   // the same, after an approval
	bookTool   = "book"   // an effect that may be repeated, thanks to its key
	ponderTool = "ponder" // takes long, and changes nothing
	lookTool   = "look"   // local
	signTool   = "sign"   // run by the client
)

// silence is how long a model may say nothing. It is short, since many hang.
const silence = 2 * time.Second

// definitions are the agents of every worker.
func definitions() []agent.Definition {
	approval := []agent.Rule{{Do: agent.RulingAsk, Tools: []string{wireTool}, Reason: "money goes out"}}
	list := []agent.Definition{
		{
			Name: leadAgent, Tools: []string{payTool, wireTool, bookTool, ponderTool, lookTool, agent.AskUserTool, agent.AwaitResumptionTool},
			ClientTools: []agent.ToolSpec{{Name: signTool, Input: json.RawMessage(`{"type":"object"}`)}}, Rules: approval,
			Agents: []agent.SubAgent{{Agent: helperAgent}, {Agent: scoutAgent}}, Lifecycle: true,
			Limits: agent.Limits{Turns: 30}, OnLimit: agent.LimitActionAsk, OnLoop: agent.LimitActionAsk,
		},
		{
			Name: helperAgent, Tools: []string{payTool, wireTool, bookTool, ponderTool, agent.AskUserTool}, Rules: approval,
			Agents: []agent.SubAgent{{Agent: scoutAgent, Tools: []string{payTool, bookTool, ponderTool}}}, Limits: agent.Limits{Turns: 20},
			AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(15 * time.Second), Default: "Nobody is there."},
		},
		{Name: scoutAgent, Tools: []string{payTool, bookTool, ponderTool, lookTool}, Limits: agent.Limits{Turns: 20}},
		{
			Name: daemonAgent, Tools: []string{payTool, bookTool, lookTool}, Daemon: &agent.Daemon{Every: agent.Duration(20 * time.Second)},
			Limits: agent.Limits{Turns: 20},
		},
	}
	for i := range list {
		list[i].Model, list[i].ModelSilence, list[i].ModelTimeout = modelName, agent.Duration(silence), agent.Duration(20*time.Second)
	}
	return list
}

// modelName is the model of all agents, which the stand-in serves.
const modelName = "standin/m"
