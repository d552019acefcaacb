package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// todoList has the arguments of the tool todo.
type todoList struct {
	Items []todoItem `json:"items,omitempty" jsonschema:"All steps in order, each with text and with state: pending, in_progress or done. They replace the list. An empty list clears it; left out, the list stays as it is"`
}

type todoItem struct {
	Text  string `json:"text" jsonschema:"What is to do, in a few words"`
	State string `json:"state,omitempty" jsonschema:"How far it is: pending, in_progress or done; pending if left out"`
}

// Limits of a list.
const (
	maxTodoItems = 100
	maxTodoText  = 500 // bytes of one step
)

var todoKey = Key[[]agent.TodoItem](agent.TodoKey)

// Todo returns the tool todo, with which a model keeps a list of its steps. The list is part of
// the session's state: it lasts over suspensions and runs, and a fork has that of its
// checkpoint. A worker has the tool without being given it: an agent has it if its tools name it.
func Todo() Tool {
	return New(agent.TodoTool, "Keeps the list of your steps. Use it for work with several steps: write all steps first, mark one as in_progress before you begin it, and as done at once when it is done. People see the list. The answer is the list as it is now.", todo, &Options{Local: true, Attempts: 3})
}

func todo(ctx context.Context, c *Call, in todoList) (string, error) {
	if in.Items == nil {
		list, _, err := todoKey.Get(ctx, c)
		if err != nil {
			return "", err
		}
		return todoText(list), nil
	}
	if len(in.Items) > maxTodoItems {
		return "", Refuse("the list has %d steps; at most %d are taken: put small ones together", len(in.Items), maxTodoItems)
	}
	list := make([]agent.TodoItem, 0, len(in.Items))
	for i, one := range in.Items {
		item := agent.TodoItem{Text: strings.Join(strings.Fields(one.Text), " "), State: agent.TodoState(one.State)}
		if item.State == "" {
			item.State = agent.TodoPending
		}
		switch {
		case item.Text == "":
			return "", Refuse("items[%d].text is blank", i)
		case len(item.Text) > maxTodoText:
			return "", Refuse("items[%d].text has %d bytes; at most %d are taken", i, len(item.Text), maxTodoText)
		case !slices.Contains([]agent.TodoState{agent.TodoPending, agent.TodoInProgress, agent.TodoDone}, item.State):
			return "", Refuse("items[%d].state must be pending, in_progress or done, not %q", i, one.State)
		}
		list = append(list, item)
	}
	if len(list) == 0 {
		return todoText(nil), todoKey.Delete(c)
	}
	return todoText(list), todoKey.Set(c, list)
}

// todoText shows the list to the model, and to people who follow the run.
func todoText(list []agent.TodoItem) string {
	if len(list) == 0 {
		return "The list is empty."
	}
	marks := map[agent.TodoState]string{agent.TodoPending: "[ ]", agent.TodoInProgress: "[>]", agent.TodoDone: "[x]"}
	done := 0
	var lines strings.Builder
	for _, one := range list {
		if one.State == agent.TodoDone {
			done++
		}
		lines.WriteString("\n" + marks[one.State] + " " + one.Text)
	}
	return fmt.Sprintf("%d of %d done:%s", done, len(list), lines.String())
}
