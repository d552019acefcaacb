package loop

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Notebook is the part that knows the notebook's version. The log has its text, and the activity that
// calls the model shows it.
type Notebook struct {
	// Version is the last version that this run has written; zero if it has written none.
	Version int `json:"version,omitempty"`
}

// updated remembers a version.
func (n *Notebook) updated(version int) { n.Version = version }

// notebookTool is the tool with which a model writes its notebook.
var notebookTool = agent.ToolSpec{
	Name: agent.NotebookTool, Executor: agent.ExecutorRuntime,
	Description: "Write your notebook. You read it at the end of every request, also after older messages were summed up. Each list that you give replaces the one in the notebook; the others stay. Keep it short, and take out what is done.",
	Input: json.RawMessage(`{"type":"object","properties":{"goals":{"type":"array","items":{"type":"string"},"description":"What you are to achieve"},` +
		`"open_items":{"type":"array","items":{"type":"string"},"description":"What is still to do, or to find out"},` +
		`"facts":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string","description":"What was found"},"source":{"type":"string","description":"Where it was found: one of the sources that the notebook lists, such as t3.1#8"}},"required":["text","source"],"additionalProperties":false},"description":"What you have found, each with its source"},` +
		`"refs":{"type":"array","items":{"type":"string"},"description":"Other sources that you still need word for word"}},"additionalProperties":false}`),
}

// takeNotebook gives the calls of the tool notebook their results. The activity that asked the model
// has made the new version, since it has the log; a reply can have one at most.
func (s *step) takeNotebook(u *wire.NotebookUpdate) {
	if s.Spec.Notebook == nil {
		return
	}
	for i, c := range s.Calls.List {
		if c.State != CallPending || c.Tool != agent.NotebookTool {
			continue
		}
		if u == nil || u.Call != i {
			s.setResult(i, agent.CallRejected, "Not executed: one reply may update the notebook once. Update it again in the next.")
			continue
		}
		next := u.Notebook
		next.Call = c.ID
		// Whoever asked the model, the run decides.
		if err := next.Check(); err != nil || next.Version <= s.Notebook.Version || next.Version > maxHold {
			s.setResult(i, agent.CallRejected, "Not executed: this can't be the notebook's next version. Try again.")
			continue
		}
		s.Notebook.updated(next.Version)
		s.record(agent.Event{Type: agent.EventNotebookUpdated, Notebook: &next})
		s.setResult(i, agent.CallOK, fmt.Sprintf("The notebook has version %d. It has %d of %d bytes.", next.Version, u.Size, agent.MaxNotebook))
	}
}
