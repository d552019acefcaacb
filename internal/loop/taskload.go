package loop

import (
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/wire"
)

// TaskLoad is the part that bounds the answer to one workflow task. The server ends a run
// whose answer is longer than 4 MB.
type TaskLoad struct {
	// Task is the workflow task that Locals and Starts count in.
	Task int `json:"task,omitempty"`
	// Locals counts the local tool calls of the task, whose results are in its answer.
	// Starts is the length in JSON of the starts of children.
	Locals int `json:"locals,omitempty"`
	Starts int `json:"starts,omitempty"`
}

const (
	// maxLocals is how many tools are called locally in one task. Further calls are regular
	// activities.
	maxLocals = 10
	// maxStarts bounds the starts in one task's answer, in bytes. One start alone may be
	// longer.
	maxStarts = 2 << 20
)

// in returns what a task carries so far.
func (l TaskLoad) in(task int) TaskLoad {
	if l.Task != task || task == 0 { // a new task, or tests, which count none
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

// matchBudget returns what may still be compared with schemas in this task. Without a budget
// in [Moment], each input has one of its own.
func (s *step) matchBudget() *match.Budget {
	if s.MatchBudget == nil {
		return match.NewBudget(match.Looks)
	}
	return s.MatchBudget
}

// mayCallLocally reports whether one more tool may be called locally in this task.
func (s *step) mayCallLocally() bool { return s.TaskLoad.in(s.Task).Locals < maxLocals }

// mayStart reports whether this task's answer has space for the start of a child. The first
// children's starts bring the next task.
func (s *step) mayStart(c Call) bool {
	l := s.TaskLoad.in(s.Task)
	return l.Starts == 0 || l.Starts+s.startJSONLen(c) <= maxStarts
}

// startJSONLen returns the length in JSON of the start of a call's child: its input, and its
// [wire.ChildStart].
func (s *step) startJSONLen(c Call) int {
	sub := s.subAgent(c)
	start := Parent{Start: &wire.ChildStart{Parent: wire.Parent{Session: s.Session}, Ceilings: s.ceilings(sub), Rules: s.Parent.InheritedRules, Output: sub.Output}}
	return 2*rawJSONLen(s.startArguments(c)) + filesJSONLen(c.Files) + start.jsonLen()
}
