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
		tools = append(tools, described(askTool, spec, agent.TextAskUser), described(parkTool, spec, agent.TextAwaitResumption), approveTool, doTool, generateTool, temporalTool)
	}
	if slices.Contains(spec.Tools, agent.AskUserTool) {
		tools = append(tools, described(askTool, spec, agent.TextAskUser))
	}
	if slices.Contains(spec.Tools, agent.AwaitResumptionTool) {
		tools = append(tools, described(parkTool, spec, agent.TextAwaitResumption))
	}
	if slices.Contains(spec.Tools, agent.WaitForUserTool) {
		tools = append(tools, described(waitForUserTool, spec, agent.TextWaitForUser))
	}
	if slices.Contains(spec.Tools, agent.ReportProgressTool) {
		tools = append(tools, described(progressTool, spec, agent.TextReportProgress))
	}
	if len(spec.Skillset) > 0 {
		tools = append(tools, skillTool)
	}
	if spec.Notebook != nil {
		tools = append(tools, notebookTool)
	}
	for _, t := range spec.ClientTools {
		t.Executor = agent.ExecutorClient
		tools = append(tools, t)
	}
	for _, a := range spec.Agents {
		tools = append(tools, subAgentTool(a, spec.Lifecycle))
	}
	if (spec.Lifecycle || spec.OnChildSuspend == agent.ChildSuspendReturn) && len(spec.Agents) > 0 {
		tools = append(tools, lifecycleTools()...)
	}
	if spec.HidesTools() {
		tools = append(tools, described(searchTool, spec, agent.TextToolSearch))
	}
	if spec.Completion == agent.CompletionTool {
		tools = append(tools, finishTool(spec))
	}
	if _, named := spec.Recovery[agent.FailureUnable]; named && spec.Completion == agent.CompletionTool {
		tools = append(tools, unableTool)
	}
	return tools
}

// described returns a tool with its description, which the agent may have replaced.
func described(t agent.ToolSpec, spec agent.Spec, name agent.TextName) agent.ToolSpec {
	t.Description = spec.Text(name)
	return t
}

// finishTool returns the tool with which a model ends its run under `completion: tool`. If
// the agent has a schema for its output, the arguments are the output.
func finishTool(spec agent.Spec) agent.ToolSpec {
	output, means := spec.Output, agent.TextFinish
	if spec.Daemon != nil {
		means = agent.TextFinishDaemon
	}
	if len(output) == 0 {
		output = json.RawMessage(`{"type":"object","properties":{"summary":{"type":"string","description":"What you did, and the result"}},"required":["summary"]}`)
	}
	return agent.ToolSpec{Name: agent.FinishTool, Executor: agent.ExecutorRuntime, Description: spec.Text(means), Input: output}
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
	Input: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string","description":"The question"},` +
		`"context":{"type":"string","description":"What the user has to know to answer"},` +
		`"choices":{"type":"array","items":{"type":"string"},"description":"The possible answers, if there are few"}},` +
		`"required":["question"],"additionalProperties":false}`),
}

var searchTool = agent.ToolSpec{
	Name: agent.ToolSearchTool, Executor: agent.ExecutorRuntime, ReadOnly: true,
	Input: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"Words of what you need, or a tool's name"}},"required":["query"],"additionalProperties":false}`),
}

var parkTool = agent.ToolSpec{
	Name: agent.AwaitResumptionTool, Executor: agent.ExecutorRuntime,
	Input: json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","description":"Why you wait"},"conditions":{"type":"object","description":"What ends the wait","properties":{` +
		`"after":{"type":"string","description":"A duration such as 90s, 2h or 168h"},"at":{"type":"string","description":"A time, RFC 3339"},` +
		`"event":{"type":"object","description":"An event","properties":{"topic":{"type":"string","description":"The event's topic"},"match":{"type":"object","description":"A JSON Schema for the event's payload"}},"required":["topic"]},` +
		`"any":{"type":"array","items":{"type":"object"},"description":"Several conditions; the first one that is met ends the wait"},` +
		`"on_timeout":{"type":"string","enum":["resume_with_summary","resume_with_input","fail","cancel"],"description":"What happens when the time has come; resume_with_summary if left out"},` +
		`"input":{"type":"string","description":"What you are told under resume_with_input"}}}},"required":["reason"]}`),
}

// skillTool loads a skill. It only reads, so it may be a local activity. Another attempt may meet
// a worker that has the files with which the run began.
var skillTool = agent.ToolSpec{
	Name: agent.SkillTool, Executor: agent.ExecutorRuntime, ReadOnly: true, Local: true, Attempts: 4,
	Description: "Loads a skill: from the next turn on, its instructions stand with your own, and if it lists tools, only these are offered to you. With path it shows another file of the skill instead. With end it ends a skill that you have loaded.",
	Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"The skill's name"},` +
		`"path":{"type":"string","description":"A file of the skill, such as references/forms.md"},"end":{"type":"boolean","description":"True ends the skill"}},"required":["name"],"additionalProperties":false}`),
}

// ShowFileTool is the tool with which a model sees a file of its conversation again. It is in no
// Spec: the activity that calls the model offers it where files of the conversation are not shown
// any more, and finds the file.
func ShowFileTool(spec *agent.Spec) agent.ToolSpec {
	return agent.ToolSpec{
		Name: agent.ShowFileTool, Executor: agent.ExecutorRuntime, ReadOnly: true,
		Description: spec.Text(agent.TextShowFile),
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

// hasOwnTool reports whether a tool is the run's own here, and not a worker's of the same name.
func (s *State) hasOwnTool(name string) bool {
	tool, ok := s.Spec.Tool(name)
	return ok && tool.Executor == agent.ExecutorRuntime
}
