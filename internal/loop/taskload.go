package loop

import (
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/wire"
)

// TaskLoad is the part that bounds what the run's answer to one workflow task carries. The
// server ends a run whose answer is longer than 4 MB.
type TaskLoad struct {
	// Task is the workflow task that Locals and Starts are of.
	Task int `json:"task,omitempty"`
	// Locals counts tool calls within the task, whose results are in its answer; Starts is
	// the length in JSON of the sub-agents' starts.
	Locals int `json:"locals,omitempty"`
	Starts int `json:"starts,omitempty"`
}

const (
	// maxLocals is how many tools are called within one task; the others take a step of
	// their own.
	maxLocals = 10
	// maxStarts is how long the starts in one answer are in all, unless it is one.
	maxStarts = 2 << 20
)

// in is what one task carries so far.
func (l TaskLoad) in(task int) TaskLoad {
	if l.Task != task || task == 0 { // tests count no tasks
		return TaskLoad{Task: task}
	}
	return l
}

func (l *TaskLoad) local(task int) {
	*l = l.in(task)
	l.Locals++
}

func (l *TaskLoad) start(task, length int) {
	*l = l.in(task)
	l.Starts += length
}

// matchBudget are what may still be compared with schemas in the present task.
func (s *step) matchBudget() *match.Budget {
	if s.MatchBudget == nil {
		return match.NewBudget(match.Looks)
	}
	return s.MatchBudget
}

// mayCallLocally reports whether one more tool may be called within the present task.
func (s *step) mayCallLocally() bool { return s.TaskLoad.in(s.Task).Locals < maxLocals }

// mayStart reports whether the present task's answer can carry one more start of a
// sub-agent. What comes of those that it has brings the next task.
func (s *step) mayStart(c Call) bool {
	l := s.TaskLoad.in(s.Task)
	return l.Starts == 0 || l.Starts+s.startJSONLen(c) <= maxStarts
}

// startJSONLen is the length of the start of a call's sub-agent: its input, and its birth
// with all that bounds it.
func (s *step) startJSONLen(c Call) int {
	sub := s.subAgent(c.Tool)
	birth := Parent{Start: &wire.ChildStart{Parent: wire.Parent{Session: s.Session}, Ceilings: s.ceilings(sub), Rules: s.Parent.InheritedRules, Output: sub.Output}}
	return 2*rawJSONLen(c.Arguments) + birth.jsonLen()
}
