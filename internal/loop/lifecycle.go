package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Names of the tools with which a model manages its sub-agents.
const (
	listTool   = "subagent_list"
	waitTool   = "subagent_wait"
	pauseTool  = "subagent_pause"
	resumeTool = "subagent_resume"
	stopTool   = "subagent_stop"
)

var lifecycleNames = []string{listTool, waitTool, pauseTool, resumeTool, stopTool}

// IsLifecycleTool reports whether a tool of that name manages sub-agents.
func IsLifecycleTool(name string) bool { return slices.Contains(lifecycleNames, name) }

const childProperty = `"child":{"type":"string","description":"The child's name, from the result of the call that started it"}`

// lifecycleTools returns the tools of an agent with `lifecycle: true`.
func lifecycleTools() []agent.ToolSpec {
	own := func(name, description, schema string) agent.ToolSpec {
		return agent.ToolSpec{Name: name, Description: description, Input: json.RawMessage(schema), Executor: agent.ExecutorRuntime}
	}
	return []agent.ToolSpec{
		own(listTool, "List the agents that you gave work to, with their states.", `{"type":"object","properties":{},"additionalProperties":false}`),
		own(waitTool, "Wait until agents have ended, or wait for somebody themselves. What you have read of them already does not count.",
			`{"type":"object","properties":{"children":{"type":"array","items":{"type":"string"},"description":"The children's names; all children if left out"}},"additionalProperties":false}`),
		own(pauseTool, "Pause an agent at the end of its turn.",
			`{"type":"object","properties":{`+childProperty+`,"reason":{"type":"string","description":"Why"}},"required":["child","reason"],"additionalProperties":false}`),
		own(resumeTool, "Let an agent that you paused continue, or wake one that waits.",
			`{"type":"object","properties":{`+childProperty+`,"input":{"type":"string","description":"What to tell the agent first"},`+filesProperty+`,"continue_transcript":{"type":"boolean","description":"False lets the agent continue from a summary of its conversation instead of all of it"}},"required":["child"],"additionalProperties":false}`),
		own(stopTool, "End an agent. It hands over its results, unless graceful is false.",
			`{"type":"object","properties":{`+childProperty+`,"graceful":{"type":"boolean","description":"False ends the agent at once; true if left out"},"reason":{"type":"string","description":"Why"}},"required":["child"],"additionalProperties":false}`),
	}
}

// lifecycleArguments are the arguments of all lifecycle tools.
type lifecycleArguments struct {
	Child    string   `json:"child"`
	Children []string `json:"children"`
	Reason   string   `json:"reason"`
	Input    *string  `json:"input"`
	Continue *bool    `json:"continue_transcript"`
	Graceful *bool    `json:"graceful"`
	Files    []string `json:"files"`
}

// callLifecycleTool makes a call of a lifecycle tool. The run does it itself, without an
// activity. All but subagent_wait have their result at once.
func (s *step) callLifecycleTool(i int) {
	c := s.Calls.List[i]
	s.record(agent.Event{Type: agent.EventCallStarted, Call: &agent.CallUpdate{Call: c.ID, Tool: c.Tool}})
	var o lifecycleArguments
	if err := json.Unmarshal(c.Arguments, &o); err != nil {
		s.setResult(i, agent.CallRejected, "The arguments do not fit: "+err.Error())
		return
	}
	switch c.Tool {
	case listTool:
		s.listChildren(i)
		return
	case waitTool:
		s.awaitChildren(i, o.Children)
		return
	}
	n := s.Children.find(o.Child)
	switch {
	case n < 0:
		s.setResult(i, agent.CallFailed, s.noChild(o.Child))
	case !s.Children.List[n].notEnded():
		s.setResult(i, agent.CallFailed, fmt.Sprintf("%s has ended (%s).", o.Child, s.Children.List[n].Status))
	// Child.PendingOrders keeps only the newest hold order. This one would replace the order
	// that has the ancestors' holds.
	case !s.Children.List[n].Started:
		s.setResult(i, agent.CallFailed, o.Child+" has not started yet.")
	case c.Tool == pauseTool && strings.TrimSpace(o.Reason) == "":
		s.setResult(i, agent.CallRejected, "A reason is required: set reason.")
	case c.Tool == resumeTool && o.Input != nil && strings.TrimSpace(*o.Input) == "":
		s.setResult(i, agent.CallRejected, "The input is blank: say something, or leave input out.")
	default:
		order := s.orderOf(c.Tool, o)
		if c.Tool == resumeTool && len(o.Files) > 0 {
			files, refused := s.filesToPass(c, o.Files)
			if refused != "" {
				s.setResult(i, agent.CallRejected, refused)
				return
			}
			order.Files = fileParts(files)
		}
		s.orderChild(n, order)
		if c.Tool != pauseTool && s.waitsForNews() {
			s.Children.ordered(n)
		}
		s.setResult(i, agent.CallOK, fmt.Sprintf("%s was told to %s.", o.Child, strings.TrimPrefix(c.Tool, "subagent_")))
	}
}

// orderOf makes an order of a lifecycle tool's call. Own makes a hold the child's own: the
// parent's resume does not remove it.
func (s *step) orderOf(tool string, o lifecycleArguments) wire.ParentOrder {
	order := wire.ParentOrder{Verb: agent.VerbPause, Own: true, By: "agent:" + s.Session, Reason: strings.TrimSpace(o.Reason)}
	switch {
	case tool == resumeTool:
		order.Verb, order.Reason, order.FromSummary = agent.VerbResume, "", o.Continue != nil && !*o.Continue
		if o.Input != nil {
			order.Reason = *o.Input
		}
	case tool == stopTool && o.Graceful != nil && !*o.Graceful:
		order.Verb, order.Reason = agent.VerbCancel, firstOf(order.Reason, "parent requested stop")
	case tool == stopTool:
		order.Verb, order.Reason = agent.VerbStop, firstOf(order.Reason, "parent requested stop")
	}
	return order
}

func (s *step) noChild(name string) string {
	names := "none"
	if all := s.Children.sessions(); len(all) > 0 {
		names = strings.Join(all, ", ")
	}
	return fmt.Sprintf("There is no child %q. Yours are: %s.", name, names)
}
