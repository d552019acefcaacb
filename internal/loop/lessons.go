package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Lessons is the part that keeps what has failed, for the end of each request. It is zero unless
// the Spec names lessons. The session's next run reads them from the log.
type Lessons struct {
	List []agent.Lesson `json:"list,omitempty"`
}

// maxLesson bounds a lesson, in JSON bytes.
const maxLesson = 1 << 10

func (l Lessons) clone() Lessons {
	l.List = slices.Clip(l.List)
	return l
}

func (l *Lessons) add(one agent.Lesson) { l.List = agent.AddLesson(l.List, one) }
func (l *Lessons) inherit(lessons []agent.Lesson) {
	l.List = lessons[max(0, len(lessons)-agent.MaxLessons):]
}

// text returns the lessons as the last message of a request; empty if there are none.
func (l Lessons) text(spec *agent.Spec) string {
	if len(l.List) == 0 {
		return ""
	}
	lines := []string{spec.Text(agent.TextLessons)}
	for _, one := range l.List {
		lines = append(lines, fmt.Sprintf("- %s: %s", one.Kind, one.Text))
	}
	return strings.Join(lines, "\n")
}

// learn keeps a failure as a lesson, if the Spec names lessons and the run has not ended. A lesson
// has no words of tools: it is recited to the model as a message of role user.
func (s *step) learn(kind agent.FailureKind, err *agent.Error) {
	if !s.Spec.Lessons || s.End.Stopping != nil || s.outcomeDecided() || s.isFlow() {
		return
	}
	l := agent.Lesson{Kind: kind, Text: fit(faultForModel(kind, err), maxLesson), Turn: s.Turn.N}
	s.Lessons.add(l)
	s.Counters.Lesson++
	s.record(agent.Event{Type: agent.EventLessonLearned, Lesson: &l})
}

// inheritLessons takes over what the session's earlier runs have learned.
func (s *step) inheritLessons(list []agent.Lesson) {
	if s.Spec.Lessons {
		s.Lessons.inherit(list)
	}
}
