package loop

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// maxLifecycleNames bounds the children and the conditions that an event of a lifecycle call names. Their
// text does not count in the log's weight.
const maxLifecycleNames = 8

// lifecycleCall returns what the log says of a call that suspends its caller or manages its
// sub-agents; nil for other calls. parks has an entry for each call of await_resumption.
func (s *step) lifecycleCall(calls []agent.ToolCall, i int, parks []wire.ParkRequest) *agent.LifecycleCall {
	c := calls[i]
	t, _ := s.Spec.Tool(c.Tool)
	if t.Executor != agent.ExecutorRuntime {
		return nil
	}
	l := &agent.LifecycleCall{Initiator: agent.InitiatorParent, By: "agent:" + s.Session}
	switch {
	case c.Tool == agent.AwaitResumptionTool:
		l.Initiator = agent.InitiatorSelf
		n := 0
		for _, before := range calls[:i] {
			if before.Tool == c.Tool {
				n++
			}
		}
		if n < len(parks) && parks[n].Err == nil {
			l.Reason, l.Conditions = short(parks[n].Reason), conditionNames(parks[n].Conditions)
		}
	case slices.Contains(lifecycleNames, c.Tool):
		var o lifecycleArguments
		if json.Unmarshal(c.Arguments, &o) != nil {
			return l // the call's result says that the arguments do not fit
		}
		l.Reason = short(o.Reason)
		for _, child := range append(o.Children, o.Child) {
			// Of all that a model can write here, only sub-agents' names are bounded.
			if len(l.Children) < maxLifecycleNames && s.Children.find(child) >= 0 && !slices.Contains(l.Children, child) {
				l.Children = append(l.Children, child)
			}
		}
	default:
		return nil
	}
	return l
}

// conditionNames returns what ends a suspension, in the words of listings.
func conditionNames(c agent.Conditions) (names []string) {
	for _, one := range c.List() {
		name := "time"
		if one.Event != nil {
			name = "topic:" + short(one.Event.Topic)
		}
		if len(names) < maxLifecycleNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
