package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Names of the tools by which a model looks after the agents that it gave work to.
const (
	listTool   = "subagent_list"
	waitTool   = "subagent_wait"
	pauseTool  = "subagent_pause"
	resumeTool = "subagent_resume"
	stopTool   = "subagent_stop"
)

var lifecycleNames = []string{listTool, waitTool, pauseTool, resumeTool, stopTool}

const childProperty = `"child":{"type":"string","description":"The child's name, as the call that started it told"}`

// lifecycleTools are offered where the Spec says so (catalogue HL-83).
func lifecycleTools() []agent.ToolSpec {
	own := func(name, description, schema string) agent.ToolSpec {
		return agent.ToolSpec{Name: name, Description: description, Input: json.RawMessage(schema), By: agent.ByRuntime}
	}
	return []agent.ToolSpec{
		own(listTool, "List the agents that you gave work to, and how they stand.", `{"type":"object","properties":{},"additionalProperties":false}`),
		own(waitTool, "Wait until agents have ended or wait for somebody themselves; all of yours where none is named.",
			`{"type":"object","properties":{"children":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`),
		own(pauseTool, "Pause an agent at the end of its turn.",
			`{"type":"object","properties":{`+childProperty+`,"reason":{"type":"string"}},"required":["child","reason"],"additionalProperties":false}`),
		own(resumeTool, "Let an agent that you paused go on, or wake one that waits.",
			`{"type":"object","properties":{`+childProperty+`,"input":{"type":"string","description":"What to tell it first"}},"required":["child"],"additionalProperties":false}`),
		own(stopTool, "End an agent. It hands over what it has, unless graceful is false.",
			`{"type":"object","properties":{`+childProperty+`,"graceful":{"type":"boolean"},"reason":{"type":"string"}},"required":["child"],"additionalProperties":false}`),
	}
}

// oversight is what the model says to one of the lifecycle tools.
type oversight struct {
	Child    string   `json:"child"`
	Children []string `json:"children"`
	Reason   string   `json:"reason"`
	Input    string   `json:"input"`
	Graceful *bool    `json:"graceful"`
}

// oversee makes a call of a lifecycle tool. It is done by the run itself, at once
// but for the wait.
func (s *step) oversee(c *Call) {
	i := s.callIndex(c.ID)
	s.record(agent.Event{Type: agent.CallStarted, Call: &agent.CallNote{Call: c.ID, Tool: c.Tool}})
	var o oversight
	if err := json.Unmarshal(c.Arguments, &o); err != nil {
		s.overseen(i, agent.CallRejected, "The arguments do not fit: "+err.Error())
		return
	}
	switch c.Tool {
	case listTool:
		s.overseen(i, agent.CallOK, s.childList(nil))
		return
	case waitTool:
		s.awaitChildren(i, o.Children)
		return
	}
	child := s.below(o.Child)
	switch {
	case child == nil:
		s.overseen(i, agent.CallFailed, fmt.Sprintf("There is no child %q. Yours are: %s.", o.Child, s.childNames()))
	case !child.live():
		s.overseen(i, agent.CallFailed, fmt.Sprintf("%s has ended (%s).", o.Child, child.Status))
	case c.Tool == pauseTool && strings.TrimSpace(o.Reason) == "":
		s.overseen(i, agent.CallRejected, "A reason is wanted: set reason.")
	default:
		s.tellChild(child, s.orderOf(c.Tool, o))
		s.overseen(i, agent.CallOK, fmt.Sprintf("%s was told to %s.", o.Child, strings.TrimPrefix(c.Tool, "subagent_")))
	}
}

func (s *step) overseen(i int, status agent.CallStatus, text string) {
	s.settle(i, agent.ToolResult{Call: s.Calls[i].ID, Tool: s.Calls[i].Tool, Status: status, Text: text})
}

// orderOf makes an order of a lifecycle tool's call. A hold is the child's own then:
// the parent's resume does not lift it.
func (s *step) orderOf(tool string, o oversight) agent.HoldOrder {
	order := agent.HoldOrder{Verb: agent.Pause, Own: true, By: "agent:" + s.Session, Reason: o.Reason}
	switch {
	case tool == resumeTool:
		order.Verb, order.Reason = agent.Resume, o.Input
	case tool == stopTool && o.Graceful != nil && !*o.Graceful:
		order.Verb, order.Reason = agent.Cancel, firstOf(o.Reason, "parent requested stop")
	case tool == stopTool:
		order.Verb, order.Reason = agent.Stop, firstOf(o.Reason, "parent requested stop")
	}
	return order
}

// awaitChildren lets a call wait for children, or answers it where they rest already.
func (s *step) awaitChildren(i int, sessions []string) {
	if len(sessions) == 0 {
		for _, c := range s.Children {
			sessions = append(sessions, c.Session)
		}
	}
	for _, session := range sessions {
		if s.below(session) == nil {
			s.overseen(i, agent.CallFailed, fmt.Sprintf("There is no child %q. Yours are: %s.", session, s.childNames()))
			return
		}
	}
	s.Calls[i].State, s.Calls[i].On, s.Calls[i].Since = Below, sessions, s.At
	s.answerWaits()
}

// answerWaits answers the calls of subagent_wait whose children all rest or have
// ended (catalogue HL-91).
func (s *step) answerWaits() {
	for i := range s.Calls {
		c := s.Calls[i]
		if c.State != Below || c.Tool != waitTool || slices.ContainsFunc(c.On, s.busyBelow) {
			continue
		}
		s.overseen(i, agent.CallOK, s.childList(c.On))
	}
}

func (s *step) busyBelow(session string) bool {
	c := s.below(session)
	return c != nil && c.live() && c.Status != agent.Suspended
}

// childList tells of children as data, in the order of the list; of all where it
// is nil.
func (s *step) childList(sessions []string) string {
	list := []envelope{}
	for _, c := range s.Children {
		if sessions == nil {
			list = append(list, s.envelope(c))
		}
	}
	for _, session := range sessions {
		list = append(list, s.envelope(*s.below(session)))
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *step) envelope(c Child) envelope {
	if c.Outcome != nil {
		e := envelopeOf(c.Outcome)
		e.Child = c.Session
		return e
	}
	return envelope{Child: c.Session, Status: c.Status, Suspension: c.Suspension}
}

func (s *step) childNames() string {
	var names []string
	for _, c := range s.Children {
		names = append(names, c.Session)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Nodes is the run and what it has heard of those below it, for the query tree.
func (s State) Nodes() []agent.Node {
	own := agent.Node{
		Session: s.Session, Run: s.Run, Agent: s.agent(), Status: s.Status(), Suspension: s.Suspension(), Heard: s.Since.UTC().Format(time.RFC3339),
	}
	if s.Birth != nil {
		own.Parent, own.Depth = s.Birth.Parent.Session, s.Birth.Depth
	}
	nodes := []agent.Node{own}
	for _, c := range s.Children {
		nodes = append(nodes, agent.Node{
			Session: c.Session, Run: c.Run, Parent: s.Session, Agent: c.Agent, Depth: own.Depth + 1,
			Status: c.Status, Suspension: c.Suspension, Heard: c.Heard.UTC().Format(time.RFC3339),
		})
	}
	return nodes
}
