package agent

import "slices"

// Lesson is a failure that an agent with [Definition.Lessons] tells its model with each request.
type Lesson struct {
	Kind FailureKind `json:"kind"`
	Text string      `json:"text"` // one line in the runtime's words; what the model itself said is quoted, 200 characters at most
	Turn int         `json:"turn,omitempty"`
}

// MaxLessons is how many lessons are kept: the newest of each kind, and of these the newest.
const MaxLessons = 5

// AddLesson returns the lessons with one more, the newest last.
func AddLesson(list []Lesson, l Lesson) []Lesson {
	list = slices.DeleteFunc(slices.Clone(list), func(o Lesson) bool { return o.Kind == l.Kind })
	list = append(list, l)
	return list[max(0, len(list)-MaxLessons):]
}
