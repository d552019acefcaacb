package client

import (
	"context"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Whole is a run's outcome with all that was said in the run.
type Whole struct {
	// Outcome has the part of the text that is meant for people, the last answer.
	Outcome *agent.Outcome
	// Text is all that the run's model wrote, with a blank line between two replies: also what
	// it wrote beside calls, and a done_sentinel.
	Text string
	// Messages are those of the run alone, in the order of the log: its input, the model's
	// replies, and the results of calls. No summary replaces any of them.
	Messages []agent.Message
}

// Whole waits for the run's end, as [Run.Result] does, and reads what was said in it. An Outcome has
// the last answer alone, because it has to fit into one payload of Temporal. Errors are those of Result
// and of [Run.Follow]. If the run has ended and its log can't be read, the Outcome comes beside the error.
func (r *Run) Whole(ctx context.Context) (*Whole, error) {
	if r.client.log == nil { // before the wait, which may be long
		return nil, agent.Errorf(agent.CodeNotSetUp, "reading the text of a run: %w", ErrNoStore)
	}
	out, err := r.Result(ctx)
	if err != nil {
		return nil, err
	}
	w := &Whole{Outcome: out}
	var texts []string
	for e, err := range r.Follow(ctx, "") {
		if err != nil {
			return &Whole{Outcome: out}, err
		}
		if e.Run != r.ID || e.Message == nil || e.Message.Note == agent.NoteSummary {
			continue
		}
		w.Messages = append(w.Messages, *e.Message)
		if text := e.Message.Text(); text != "" && e.Message.Role == agent.RoleAssistant {
			texts = append(texts, text)
		}
	}
	w.Text = strings.Join(texts, "\n\n")
	return w, nil
}
