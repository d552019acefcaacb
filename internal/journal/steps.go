package journal

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// IsFlow reports whether a function decided the steps of a log's last run, and no model.
func IsFlow(v *store.View) bool {
	spec := v.Spec()
	return spec != nil && spec.Flow
}

// Steps returns the steps that a log's last run has asked for, in that order, with those that it
// has taken over from the run that it forks. A step that was not made and is asked for again is
// there once. There are none if the run is no flow's.
func Steps(v *store.View) []agent.StepRecord {
	var w steps
	for _, e := range store.KnownEvents(v.Events()) {
		w.read(e)
	}
	return w.list
}

// steps reads a log's events. before are the steps of the run before, list those of this one, and
// at the places of these by path.
type steps struct {
	run          string
	before, list []agent.StepRecord
	at           map[string]int
}

func (w *steps) read(e agent.Event) {
	switch {
	case e.Started != nil && e.Started.HasFirstTurn():
		w.run, w.before, w.list, w.at = e.Started.Run, w.list, nil, map[string]int{}
	case e.Forked != nil:
		w.fork(*e.Forked)
	case e.Call != nil && e.Call.Step != "":
		w.call(e)
	case e.Request != nil && e.Request.Step != "":
		if s := w.open(e.Request.Step); s != nil {
			s.Request, s.Answered = e.Request.ID, false
		}
	case e.Answer != nil && (e.Type == agent.EventRequestAnswered || e.Type == agent.EventRequestExpired):
		w.answered(e.Answer.Request)
	case e.Child != nil && e.Child.Step != "":
		if s := w.open(e.Child.Step); s != nil {
			s.Session, s.Agent, s.Tokens, s.Cost = e.Child.Session, e.Child.Agent, e.Child.Tokens, e.Child.Cost
		}
	}
}

// fork takes over what was done, as package play does.
func (w *steps) fork(f agent.Forked) {
	w.list = slices.DeleteFunc(slices.Clone(w.before), func(s agent.StepRecord) bool {
		return noResult(s) || !f.Keeps(s.Path, s.Tool, s.Status, s.Dropped)
	})
	for i, s := range w.list {
		w.at[s.Path] = i
	}
}

// noResult reports whether a step is open, or was not made.
func noResult(s agent.StepRecord) bool { return s.Status == "" || s.Status == agent.CallSkipped }

// call reads what happened to a step's call.
func (w *steps) call(e agent.Event) {
	switch e.Type {
	case agent.EventCallRequested:
		next := agent.StepRecord{Path: e.Call.Step, Tool: e.Call.Tool, Call: e.Call.Call, Run: w.run, Asked: e.Time}
		if again := w.open(next.Path); again != nil {
			*again = next
			return
		}
		w.at[next.Path] = len(w.list)
		w.list = append(w.list, next)
	case agent.EventCallStarted:
		s := w.open(e.Call.Step)
		if s == nil {
			return
		}
		if s.Answers = e.Call.Answers; s.Started.IsZero() {
			s.Started = e.Time
		}
	default:
		if s := w.open(e.Call.Step); s != nil && e.Call.Status != "" {
			s.Status, s.Ended, s.Dropped = e.Call.Status, e.Time, e.Call.Dropped
		}
	}
}

// answered notes that a request of one of the run's own steps is not open any more.
func (w *steps) answered(request string) {
	for i := range w.list {
		if s := &w.list[i]; s.Run == w.run && s.Request == request {
			s.Answered = true
		}
	}
}

// open returns a step to change; nil if the run has not asked for it.
func (w *steps) open(path string) *agent.StepRecord {
	if i, ok := w.at[path]; ok {
		return &w.list[i]
	}
	return nil
}

// FlowInput returns the message with the input of a log's last run, which is a flow's: its own first
// message, or the input of the run that it forks. It finds the message that package play reads. It is
// the zero value if the log has none yet.
func FlowInput(v *store.View) (input agent.Message) {
	var before agent.Message
	var flow, flowBefore string // "" is no flow's name
	known := false
	for _, e := range store.KnownEvents(v.Events()) {
		switch {
		case e.Started != nil && e.Started.HasFirstTurn():
			before, flowBefore = input, flow
			input, flow, known = agent.Message{}, "", false
			if s := e.Started.Spec; s != nil && s.Flow {
				flow = s.Name
			}
		case e.Forked != nil && !e.Forked.ReplaceInput && flow == flowBefore:
			input, known = before, len(before.Parts) > 0
		case e.Message != nil && e.Message.Role == agent.RoleUser && !known:
			input, known = *e.Message, true
		}
	}
	return input
}
