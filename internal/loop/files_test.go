package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// shown returns parts with so many files of a session.
func shown(session string, n int) (parts []agent.Part) {
	for i := range n {
		f := &agent.File{Session: session, Digest: fmt.Sprintf("%064x", i), Size: 1, MediaType: "image/png", Name: "a.png"}
		parts = append(parts, agent.Part{Type: agent.PartFile, File: f})
	}
	return parts
}

// refused says a command that is to be refused, and returns its code and path.
func (d *drive) refused(c agent.Command) (agent.Code, string) {
	d.t.Helper()
	_, _, err := Step(d.state, Moment{}, CommandReceived{Command: c})
	var e *agent.Error
	require.ErrorAs(d.t, err, &e)
	return e.Code, e.Path
}

// Files of an answer follow the result of the call, each with its question. Nothing changes if they
// can't be shown.
func TestFilesOfAnswers(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m", Tools: []string{agent.AskUserTool}}, Toolset: []agent.ToolSpec{{Name: "paint"}}})
	ask := func(id, question string) agent.ToolCall {
		return agent.ToolCall{ID: id, Tool: agent.AskUserTool, Arguments: json.RawMessage(`{"question":"` + question + `"}`)}
	}
	d.asks(ask("t1.1", "Which chart?"), ask("t1.2", "Which page?"))
	code, path := d.refused(agent.AnswerCommand{Request: "q-1", Text: "This", Parts: shown("other", 1)})
	require.Equal(t, []any{agent.CodeInvalidInput, "parts[0].file.session"}, []any{code, path})
	d.step(CommandReceived{Command: agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: "ana"}, Request: "q-1", Text: "This", Parts: shown("s", 2)}})
	d.step(CommandReceived{Command: agent.AnswersCommand{Answers: []agent.AnswerTo{{Request: "q-2", Answer: &agent.AnswerCommand{Request: "q-2", Parts: shown("s", 1)}}}}})
	var said []string
	for _, e := range d.state.Log.Tail {
		switch m := e.Message; {
		case m == nil:
		case m.Role == agent.RoleTool:
			said = append(said, m.Parts[0].Result.Text, m.Parts[1].Result.Text)
		default:
			said = append(said, fmt.Sprintf("%s%s %d", m.By, m.Text(), len(m.Files())))
		}
	}
	require.Equal(t, []string{"This", answeredByFiles, "anaFiles with the answer to: Which chart? 2", "Files with the answer to: Which page? 1"}, said[len(said)-4:])

	d.asks(agent.ToolCall{ID: "t2.1", Tool: "paint", Arguments: json.RawMessage(`{}`)})
	d.step(ToolReturned{Result: agent.ToolResult{Call: "t2.1", Tool: "paint", Status: agent.CallOK}, Question: &agent.ToolQuestion{Text: "Which?"}})
	code, path = d.refused(agent.AnswerCommand{Request: "q-3", Text: "This", Parts: shown("s", 1)})
	require.Equal(t, []any{agent.CodeInvalidInput, "parts"}, []any{code, path}, "a tool gets none")
}

// The answer to a limit may show files, unless it stops the run.
func TestFilesOfLimits(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m", OnLimit: agent.LimitActionAsk, Limits: agent.Limits{Turns: 1}}, Toolset: []agent.ToolSpec{{Name: "add"}}})
	d.asks(agent.ToolCall{ID: "t1.1", Tool: "nope", Arguments: json.RawMessage(`{}`)})
	require.Equal(t, agent.RequestLimit, d.state.Requests.Open[0].Type)
	code, _ := d.refused(agent.AnswerCommand{Request: "q-1", Text: choiceStop, Parts: shown("s", 1)})
	require.Equal(t, agent.CodeInvalidInput, code)
	d.step(CommandReceived{Command: agent.AnswerCommand{Request: "q-1", Text: choiceContinue, Parts: shown("s", 1)}})
	require.Equal(t, shown("s", 1), d.said().Parts)
}

// A resume shows files of its own session, bounded as a message's.
func TestFilesOfResumes(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m"}})
	d.step(CommandReceived{Command: agent.PauseCommand{}})
	d.asks(agent.ToolCall{ID: "t1.1", Tool: "nope", Arguments: json.RawMessage(`{}`)})
	require.NotNil(t, d.state.Holds.own())
	code, path := d.refused(agent.ResumeCommand{Parts: shown("s/b-1", 1)})
	require.Equal(t, []any{agent.CodeInvalidInput, "parts[0].file.session"}, []any{code, path})
	for range maxWaitingFiles / agent.MaxFiles {
		d.step(CommandReceived{Command: agent.SendCommand{Parts: shown("s", agent.MaxFiles)}})
	}
	code, path = d.refused(agent.ResumeCommand{Parts: shown("s", 1)})
	require.Equal(t, []any{agent.CodeTooLarge, "parts"}, []any{code, path})
	code, path = d.refused(agent.ResumeCommand{Message: strings.Repeat("x", pendingShare)})
	require.Equal(t, []any{agent.CodeTooLarge, "message"}, []any{code, path})

	d = newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m"}})
	d.step(CommandReceived{Command: agent.PauseCommand{}})
	d.asks(agent.ToolCall{ID: "t1.1", Tool: "nope", Arguments: json.RawMessage(`{}`)})
	d.step(CommandReceived{Command: agent.ResumeCommand{CommandHeader: agent.CommandHeader{By: "ana"}, Parts: shown("s", 1)}})
	require.Equal(t, agent.Message{Role: agent.RoleUser, By: "ana", Parts: shown("s", 1)}, *d.said())
}

// A flow takes no files, in whatever verb.
func TestAFlowTakesNoFiles(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a"}, Flow: true})
	for _, c := range []agent.Command{agent.SendCommand{Parts: shown("s", 1)}, agent.ResumeCommand{Parts: shown("s", 1)}} {
		if _, ok := c.(agent.ResumeCommand); ok {
			d.step(CommandReceived{Command: agent.PauseCommand{}})
		}
		code, path := d.refused(c)
		require.Equal(t, []any{agent.CodeInvalidInput, "parts"}, []any{code, path}, "%T", c)
	}
}
