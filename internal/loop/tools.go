package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
)

// OwnTools returns the tools of a Spec that no worker has: the runtime's own, those of its
// sub-agents, and those that a client carries out.
func OwnTools(spec agent.Spec) (tools []agent.ToolSpec) {
	if spec.Flow {
		tools = append(tools, askTool, parkTool, approveTool, doTool, generateTool, temporalTool)
	}
	if slices.Contains(spec.Tools, agent.AskUserTool) {
		tools = append(tools, askTool)
	}
	if slices.Contains(spec.Tools, agent.AwaitResumptionTool) {
		tools = append(tools, parkTool)
	}
	for _, t := range spec.ClientTools {
		t.Executor = agent.ExecutorClient
		tools = append(tools, t)
	}
	for _, a := range spec.Agents {
		tools = append(tools, subAgentTool(a, spec.Lifecycle))
	}
	if spec.Lifecycle && len(spec.Agents) > 0 {
		tools = append(tools, lifecycleTools()...)
	}
	if spec.Completion == agent.CompletionTool {
		tools = append(tools, finishTool(spec))
	}
	if _, named := spec.Recovery[agent.FailureUnable]; named && spec.Completion == agent.CompletionTool {
		tools = append(tools, unableTool)
	}
	return tools
}

// finishTool returns the tool with which a model ends its run under `completion: tool`. If
// the agent has a schema for its output, the arguments are the output.
func finishTool(spec agent.Spec) agent.ToolSpec {
	output, means := spec.Output, "Call this once, when the task is done. It ends your work."
	if spec.Daemon != nil {
		means = "Call this when you are done with the last message or event. Then you wait for the next one."
	}
	if len(output) == 0 {
		output = json.RawMessage(`{"type":"object","properties":{"summary":{"type":"string","description":"What you did, and the result"}},"required":["summary"]}`)
	}
	return agent.ToolSpec{Name: agent.FinishTool, Executor: agent.ExecutorRuntime, Description: means, Input: output}
}

var unableTool = agent.ToolSpec{
	Name: agent.ReturnUnableTool, Executor: agent.ExecutorRuntime,
	Description: "Call this once, if you can't do the task. It ends your work, and what you say goes to whoever continues it.",
	Input: json.RawMessage(`{"type":"object","properties":{"blockers":{"type":"array","items":{"type":"string"},"description":"What keeps you from the task, one by one"},` +
		`"rationale":{"type":"string","description":"Why you can't go on"},` +
		`"next_steps":{"type":"array","items":{"type":"string"},"description":"What somebody else could do next"}},` +
		`"required":["blockers","rationale"],"additionalProperties":false}`),
}

// subAgentTool returns the tool that gives work to a sub-agent. Only an agent with lifecycle
// tools can wait for a background child, so only it is offered background.
func subAgentTool(a agent.SubAgent, lifecycle bool) agent.ToolSpec {
	background := ""
	if lifecycle {
		background = `,"background":{"type":"boolean","description":"True does not wait for the result; see ` + waitTool + `"}`
	}
	return agent.ToolSpec{
		Name: a.Tool(), Executor: agent.ExecutorSubAgent, Description: strings.TrimSpace("Give work to the agent " + a.Agent + ". " + a.Description),
		Input: json.RawMessage(`{"type":"object","properties":{"task":{"type":"string","description":"What to do. The agent knows only this and the context"},` +
			`"context":{"type":"string","description":"What the agent has to know"},` + filesProperty + background + `},"required":["task"],"additionalProperties":false}`),
	}
}

var askTool = agent.ToolSpec{
	Name: agent.AskUserTool, Executor: agent.ExecutorRuntime,
	Description: "Ask the user a question that only they can answer. You are suspended until the answer comes. The answer is the result of this call. Other calls of the same turn are not made.",
	Input: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string","description":"The question"},` +
		`"context":{"type":"string","description":"What the user has to know to answer"},` +
		`"choices":{"type":"array","items":{"type":"string"},"description":"The possible answers, if there are few"}},` +
		`"required":["question"],"additionalProperties":false}`),
}

var parkTool = agent.ToolSpec{
	Name: agent.AwaitResumptionTool, Executor: agent.ExecutorRuntime,
	Description: "Suspend yourself until a condition is met: a time, an event, or the first of several. Without conditions you wait until somebody resumes you. Other calls of the same turn are not made.",
	Input: json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","description":"Why you wait"},"conditions":{"type":"object","description":"What ends the wait","properties":{` +
		`"after":{"type":"string","description":"A duration such as 90s, 2h or 168h"},"at":{"type":"string","description":"A time, RFC 3339"},` +
		`"event":{"type":"object","description":"An event","properties":{"topic":{"type":"string","description":"The event's topic"},"match":{"type":"object","description":"A JSON Schema for the event's payload"}},"required":["topic"]},` +
		`"any":{"type":"array","items":{"type":"object"},"description":"Several conditions; the first one that is met ends the wait"},` +
		`"on_timeout":{"type":"string","enum":["resume_with_summary","resume_with_input","fail","cancel"],"description":"What happens when the time has come; resume_with_summary if left out"},` +
		`"input":{"type":"string","description":"What you are told under resume_with_input"}}}},"required":["reason"]}`),
}

// ShowFileTool is the tool with which a model sees a file of its conversation again. It is in no
// Spec: the activity that calls the model offers it where files of the conversation are not shown
// any more, and finds the file.
func ShowFileTool() agent.ToolSpec {
	return agent.ToolSpec{
		Name: agent.ShowFileTool, Executor: agent.ExecutorRuntime, ReadOnly: true,
		Description: "Shows you a file of this conversation again, if only its name is left here.",
		Input:       json.RawMessage(`{"type":"object","properties":{"file":{"type":"string","description":"The file's name, with the digits, such as chart.png#3f9a0c1b"}},"required":["file"],"additionalProperties":false}`),
	}
}

// malformed returns what the model is told if its arguments are not a JSON object.
func malformed(text string) string {
	if rawjson.Depth([]byte(text)) > rawjson.MaxWrittenDepth {
		return fmt.Sprintf("The arguments are nested more than %d levels deep. Call the tool again with flatter ones.", rawjson.MaxWrittenDepth)
	}
	return "The arguments are not a JSON object. Call the tool again with arguments that are."
}

// The tools of a flow's function alone. No model sees them.
var (
	approveTool = agent.ToolSpec{Name: agent.ApproveTool, Executor: agent.ExecutorRuntime, Description: "Asks a person to approve something."}
	doTool      = agent.ToolSpec{Name: agent.DoTool, Executor: agent.ExecutorRuntime, Description: "Runs code of the flow's own."}
	// A model changes nothing, so its call may be made again.
	generateTool = agent.ToolSpec{Name: agent.GenerateTool, Executor: agent.ExecutorRuntime, Description: "Calls a model once.", ReadOnly: true, Attempts: 4}
	// What it calls is in the step's options.
	temporalTool = agent.ToolSpec{Name: agent.TemporalTool, Executor: agent.ExecutorRuntime, Description: "Calls an activity or a workflow of the namespace."}
)
