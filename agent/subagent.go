package agent

import (
	"encoding/json"
	"path"
)

// SubAgent is an agent that another agent may give work to. The parent's model gets the tool
// subagent__NAME for it.
type SubAgent struct {
	// Agent is the sub-agent's name.
	Agent string `json:"agent"`
	// Description tells the parent's model when to use the sub-agent; empty means the
	// sub-agent's own description.
	Description string `json:"description,omitempty"`
	// Tools are names and patterns of the sub-agent's tools that it may use here; empty means
	// those that its parent has too. Agents below it may use no others.
	Tools []string `json:"tools,omitempty"`
	// Limits may lower the sub-agent's own limits.
	Limits Limits `json:"limits,omitzero"`
	// Output is a JSON Schema of the answer; empty means the sub-agent's own.
	Output json.RawMessage `json:"output,omitempty"`
	// Workspace gives the sub-agent a directory, a git worktree or environment variables of its own;
	// nil means that it works where its parent works.
	Workspace *OwnWorkspace `json:"workspace,omitempty"`
}

// Tool returns the name of the tool that starts the sub-agent.
func (a SubAgent) Tool() string { return SubAgentPrefix + a.Agent }

// SubAgentPrefix begins the names of tools that start sub-agents.
const SubAgentPrefix = "subagent__"

// ServerToolPrefix begins the names of the provider's tools in a ceiling, and in the tools of a
// sub-agent's entry: "server_tools:web_search".
const ServerToolPrefix = "server_tools:"

// checkBound refuses a list of tools that bounds nothing, though it is there, and what is no pattern.
func checkBound(list []string, at string) error {
	if list != nil && len(list) == 0 {
		return Errorf(CodeInvalidInput, "%s is an empty list, which bounds nothing; leave it out, or name tools", at).WithPath(at)
	}
	for i, name := range list {
		if _, err := path.Match(name, ""); err != nil {
			return Errorf(CodeInvalidInput, "%s[%d]: %q is not a name or a pattern", at, i, name).WithPath(at)
		}
	}
	return nil
}

// ChildSuspendAction says what a call that waits for a sub-agent does when that one is suspended.
type ChildSuspendAction string

// The actions. The zero value means wait.
const (
	// ChildSuspendWait lets the call wait on. If the suspension's owner fails (see [OwnerFailure]), it
	// returns, too.
	ChildSuspendWait ChildSuspendAction = "wait"
	// ChildSuspendReturn answers the call with the status suspended. The sub-agent is in the background
	// then, and the model has the tools that manage sub-agents from the run's start.
	ChildSuspendReturn ChildSuspendAction = "return"
)

func (d Definition) checkOnChildSuspend() error {
	switch a := d.OnChildSuspend; {
	case a != "" && a != ChildSuspendWait && a != ChildSuspendReturn:
		return Errorf(CodeInvalidInput, "agent %s: on_child_suspend must be wait or return, not %q", d.Name, a).WithPath("on_child_suspend")
	case a == ChildSuspendReturn && d.Model == FlowModel:
		return Errorf(CodeInvalidInput, "agent %s: on_child_suspend: return is for a model, and a flow has none; leave on_child_suspend out", d.Name).WithPath("on_child_suspend")
	}
	return nil
}
