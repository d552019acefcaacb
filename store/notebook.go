package store

import "github.com/fermata-agents/fermata/agent"

// Notebook returns the notebook as the view's last run knows it; the zero value if none was written
// since the conversation began.
func (v *View) Notebook() agent.Notebook { return notebook(v.events) }

func notebook(events []agent.Event) (n agent.Notebook) {
	for _, e := range KnownEvents(events) {
		switch {
		case e.Started != nil && e.Started.Carry == agent.CarryReset:
			n = agent.Notebook{}
		case e.Notebook != nil:
			n = *e.Notebook
		}
	}
	return n
}
