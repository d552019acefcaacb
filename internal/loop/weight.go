package loop

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// When the log is sealed depends on how much of it is not stored. That is counted in what
// the history has recorded: text that a tool, model or person wrote. The runtime's own
// sentences and the texts of errors count as frames: else a new wording would move a seal
// in a replay.

// frame is how many bytes an event counts beside such text.
const frame = 256

// weight returns how many bytes an event without a message counts.
func weight(e agent.Event) int {
	n := frame
	switch {
	case e.Started != nil:
		n += len(e.Started.Spec.Instructions)
		n += weightOf(e.Started.Spec.Toolset)
		for _, k := range e.Started.Spec.Skillset {
			n += len(k.Description) + len(k.WhenToUse)
		}
	case e.Skill != nil:
		n += len(e.Skill.Instructions)
	case e.ToolsChange != nil:
		n += weightOf(e.ToolsChange.Tools)
	case e.Instructions != nil:
		n += len(e.Instructions.Text)
	case e.Outcome != nil:
		n += len(e.Outcome.Text) + len(e.Outcome.Output) + agent.CitationsSize(e.Outcome.Citations)
	case e.Check != nil && e.Check.Verdict != nil && e.Check.Error == "" && e.Check.Status != "": // without a call it is the runtime's
		n += verdictSize(*e.Check.Verdict)
	case e.Check != nil && e.Check.Decision != nil:
		n += len(e.Check.Decision.Reason) + len(e.Check.Decision.Message)
	case e.Notebook != nil:
		n += notebookSize(*e.Notebook)
	case e.Progress != nil:
		n += len(e.Progress.Message)
		for _, one := range e.Progress.Entries {
			n += len(one.Text)
		}
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

// notebookSize returns how many bytes a notebook counts: its texts, which a model wrote.
func notebookSize(n agent.Notebook) (size int) {
	for _, f := range n.Facts {
		size += len(f.Text) + len(f.Source)
	}
	for _, text := range slices.Concat(n.Goals, n.OpenItems, n.Refs) {
		size += len(text)
	}
	return size
}

func weightOf(tools []agent.ToolSpec) (n int) {
	for _, t := range tools {
		if t.Executor == "" || t.Executor == agent.ExecutorClient {
			n += len(t.Name) + len(t.Description) + len(t.Input)
		}
	}
	return n
}

// foreignText returns the text of a request, if a model, a tool or a flow wrote it; empty if the runtime did.
func foreignText(r agent.Request) string {
	if r.Type != agent.RequestQuestion || ownContext(r) > 0 || handsOver(r) {
		return ""
	}
	return r.Text
}

// requestSize returns how many bytes a request counts.
func requestSize(r agent.Request) int {
	n := len(foreignText(r))
	if ownContext(r) == 0 {
		n += len(r.Context)
	}
	if r.Call != nil {
		n += len(r.Call.Arguments)
	}
	return n
}

// outcomeSize returns how many bytes a child's outcome counts.
func outcomeSize(o *agent.Outcome) int {
	n := len(o.Text) + len(o.Output)
	if o.Handoff != nil {
		n += len(o.Handoff.Summary)
	}
	if o.Unsaved != nil {
		n += len(o.Unsaved.Message)
	}
	if w := o.Workspace; w != nil {
		n += len(w.Branch) + len(w.Error)
		for _, path := range w.Paths {
			n += len(path)
		}
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
