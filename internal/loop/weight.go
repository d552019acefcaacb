package loop

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// When the log is sealed depends on how much of it is open. That is counted in what
// histories have recorded: what a model, a tool or a person said. Sentences of the
// runtime's own, and the texts of errors, count as frames: to reword one must not move a
// seal in a history that is replayed.

// frame is what an event counts beside what was said.
const frame = 256

// weight is what an event counts that has no message.
func weight(e agent.Event) int {
	n := frame
	switch {
	case e.Started != nil:
		n += len(e.Started.Spec.Instructions)
		n += weightOf(e.Started.Spec.Toolset)
	case e.ToolsChange != nil:
		n += weightOf(e.ToolsChange.Tools)
	case e.Outcome != nil:
		n += len(e.Outcome.Text) + len(e.Outcome.Output)
	case e.Request != nil:
		n += requestSize(*e.Request)
	case e.Suspension != nil:
		for _, r := range e.Suspension.Requests {
			n += frame + requestSize(r)
		}
	case e.Snapshot != nil:
		n += changesSize(e.Snapshot.StateChanges)
	case e.Migrated != nil:
		n += changesSize(e.Migrated.State)
	}
	return n
}

func weightOf(tools []agent.ToolSpec) (n int) {
	for _, t := range tools {
		if t.Executor == "" || t.Executor == agent.ExecutorClient {
			n += len(t.Name) + len(t.Description) + len(t.Input)
		}
	}
	return n
}

// requestSize is what a request counts.
func requestSize(r agent.Request) int {
	n := 0
	if r.Type != agent.RequestLimit { // whose words are ours
		n += len(r.Context)
	}
	if r.Type == agent.RequestQuestion {
		n += len(r.Text)
	}
	if r.Call != nil {
		n += len(r.Call.Arguments)
	}
	return n
}

// outcomeSize is what a sub-agent's outcome counts.
func outcomeSize(o *agent.Outcome) int {
	n := len(o.Text) + len(o.Output)
	if o.Handoff != nil {
		n += len(o.Handoff.Summary)
	}
	return n
}

func changesSize(set map[string]json.RawMessage) (n int) {
	keys := slices.Collect(maps.Keys(set)) //workflowcheck:ignore a sum has no order
	for _, k := range keys {
		n += len(k) + len(set[k])
	}
	return n
}
