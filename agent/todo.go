package agent

// TodoItem is a step of the list that a model keeps with the tool todo.
type TodoItem struct {
	Text  string    `json:"text"`
	State TodoState `json:"state"`
}

// TodoState is how far a step is.
type TodoState string

// The states.
const (
	TodoPending    TodoState = "pending"
	TodoInProgress TodoState = "in_progress"
	TodoDone       TodoState = "done"
)

// TodoKey is the key of the list in the session's state.
const TodoKey = "fermata.todo"
