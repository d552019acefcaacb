package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// fileOf is a file of a session, as a tool's result shows it.
func fileOf(session string) agent.Part {
	return agent.Part{Type: agent.PartFile, File: &agent.File{Session: session, Digest: strings.Repeat("0", 64), Size: 5, MediaType: "image/png"}}
}

// manyFiles are files whose names and descriptions are as long in JSON as may be.
func manyFiles(session string, n int) (list []agent.Part) {
	for range n {
		p := fileOf(session)
		p.Text, p.File.Name, p.File.Size, p.File.MediaType = times(agent.MaxFileText), strings.Repeat("<", 255), agent.MaxFile, "a"+strings.Repeat("&", 60)+"/a"+strings.Repeat("&", 120)
		list = append(list, p)
	}
	return list
}

func shows(call string, files ...agent.Part) Input {
	return ToolReturned{Result: agent.ToolResult{Call: call, Tool: "add", Status: agent.CallOK, Text: "drawn", Files: files}}
}

// recorded are the results of the calls in the log's tail.
func recorded(t *testing.T, s State) (list []*agent.ToolResult) {
	t.Helper()
	for _, e := range s.Log.Tail {
		if e.Message != nil && e.Message.Role == agent.RoleTool {
			for _, p := range e.Message.Parts {
				list = append(list, p.Result)
			}
		}
	}
	return list
}

// Whoever makes a call, the run shows only files of its own session that somebody can have stored,
// and says what is missing.
func TestWhichFilesOfAResultAreShown(t *testing.T) {
	broken, text := fileOf("s"), agent.Part{Type: agent.PartText, Text: "no file"}
	broken.File.Digest = "../../etc/passwd"
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}]}`, "calls add {} | add {}")
	p.step(shows("t1.1", fileOf("victim"), fileOf("s"), broken, text, fileOf("s/add-1")))
	require.Equal(t, 1, p.state.waitingFiles())
	p.step(shows("t1.2", make([]agent.Part, agent.MaxFiles+5)...))
	got := recorded(t, p.state)
	require.Equal(t, []agent.Part{fileOf("s")}, got[0].Files)
	require.Equal(t, "drawn\n\n[4 files of this result are not shown: they are not this session's, or more than 200 wait to be stored]", got[0].Text)
	require.Empty(t, got[1].Files)
	require.Positive(t, p.state.Log.SealingSeq, "until a chunk names a file, a collection may take it for unneeded")
}

// calledShowFile is a reply with calls of show_file, and what the activity found.
func (p *player) calledShowFile(shown ...wire.ShownFile) Input {
	r := wire.Reply{Finish: agent.FinishToolCalls, Usage: tokens(), ShownFiles: shown}
	for i := range max(1, len(shown)) {
		r.Parts = append(r.Parts, p.calls(fmt.Sprintf(`show_file {"file":"%d"}`, i))...)
	}
	return p.replied(r)
}

// A file is shown again without an activity, and nobody is asked. A rule can deny the tool, and a
// model that was not offered it can't call it.
func TestAFileIsShownAgainAtOnce(t *testing.T) {
	own, foreign := fileOf("s"), fileOf("victim")
	p := played(t, "begin go", `opened {}`)
	p.step(p.calledShowFile(wire.ShownFile{File: &own}, wire.ShownFile{Err: "there is no file"}, wire.ShownFile{File: &foreign}))
	require.Equal(t, TurnAsking, p.state.Turn.Phase, "the next turn begins in the same task")
	got := recorded(t, p.state)
	require.Len(t, got, 3)
	require.Equal(t, agent.ToolResult{Call: "t1.1", Tool: agent.ShowFileTool, Status: agent.CallOK, Files: []agent.Part{own}}, *got[0])
	require.Equal(t, agent.CallFailed, got[1].Status)
	require.Equal(t, "there is no file", got[1].Text)
	require.Empty(t, got[2].Files)

	p = played(t, "begin go", `opened {}`)
	more := p.calledShowFile(wire.ShownFile{File: &own}, wire.ShownFile{}).(ModelReplied)
	more.Reply.ShownFiles = more.Reply.ShownFiles[:1]
	p.step(more)
	require.Contains(t, recorded(t, p.state)[1].Text, "one reply may ask for 1 files")

	p = played(t, "begin go", `opened {}`)
	p.step(p.calledShowFile())
	require.Contains(t, recorded(t, p.state)[0].Text, "Tool not found: show_file.")

	p = played(t, "begin go", `opened {"rules":[{"do":"deny","tools":["show_file"]}]}`)
	denied := p.calledShowFile(wire.ShownFile{File: &own}).(ModelReplied)
	denied.Reply.RuleMatches = [][]int{{0}}
	p.step(denied)
	require.Equal(t, "Permission denied by rule 0.", recorded(t, p.state)[0].Text)
}

// No model makes files or results. Whoever has asked it, the log gets none of a reply.
func TestAReplyHasNoFiles(t *testing.T) {
	p := played(t, "begin go", opensAdd)
	file := fileOf("victim")
	asText := agent.Part{Type: agent.PartText, Text: "look", File: file.File}
	result := agent.Part{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t1.1", Status: agent.CallOK, Files: []agent.Part{file}}}
	p.step(p.replied(wire.Reply{Finish: agent.FinishToolCalls, Usage: tokens(), Parts: append([]agent.Part{file, asText, result}, p.calls("add {}")...)}))
	for _, e := range p.state.Log.Tail {
		require.Empty(t, e.Files(), e.Type)
		if e.Message != nil && e.Message.Role == agent.RoleAssistant {
			require.Len(t, e.Message.Parts, 1, "the call")
		}
	}
}

// A summary names the files of what it replaces, as many as a chunk of the log may.
func TestASummaryNamesFiles(t *testing.T) {
	p := played(t, `started {"carry":"compact","input":{"text":"and now?"}}`, "opened-old", "located {}")
	reply := wire.Reply{Finish: agent.FinishStop, Usage: tokens(), Parts: []agent.Part{{Type: agent.PartText, Text: "we paid"}}}
	for range MaxNamedFiles + 5 {
		reply.Parts = append(reply.Parts, fileOf("s"))
	}
	reply.Parts[1].File.Name = "oldest.png"
	reply.Parts = append(reply.Parts, fileOf("victim"))
	p.step(p.replied(reply))
	for _, e := range p.state.Log.Tail {
		if e.Type == agent.EventCompacted {
			require.Equal(t, "we paid", e.Message.Text())
			require.Len(t, e.Message.Files(), MaxNamedFiles)
			require.Empty(t, e.Message.Files()[0].Name)
			for _, f := range e.Message.Files() {
				require.Equal(t, "s", f.Session, "whoever has asked the model")
			}
			return
		}
	}
	require.Fail(t, "nothing was compacted")
}

// A chunk of the log names 256 files at most.
func TestFilesOfResultsThatWaitAreFew(t *testing.T) {
	many := strings.Builder{}
	for i := range 12 {
		fmt.Fprintf(&many, `add {"n":%d} | `, i)
	}
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"parallel_tools":64}`, "calls "+strings.TrimSuffix(many.String(), " | "))
	calls := p.state.Calls.List
	require.Len(t, calls, 12)
	var twenty []agent.Part
	for range agent.MaxFiles {
		twenty = append(twenty, fileOf("s"))
	}
	for _, c := range calls {
		p.step(shows(c.ID, twenty...))
	}
	got := recorded(t, p.state)
	require.Len(t, got[9].Files, agent.MaxFiles)
	require.Empty(t, got[10].Files)
	require.Contains(t, got[10].Text, "20 files of this result are not shown")
	require.Equal(t, maxWaitingFiles, p.state.waitingFiles())
	p.line(`send {"parts":[{"type":"file","file":{"session":"s","digest":"` + strings.Repeat("0", 64) + `","size":5,"media_type":"image/png"}}]}`)
	require.ErrorIs(t, p.wrong, agent.CodeTooLarge)
	p.lines("sealed")
	require.Zero(t, p.state.waitingFiles())
}

// A run with a result that shows files can move: the export has them, as the state names them.
func TestAResultWithFilesThatWaitsCanMove(t *testing.T) {
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"client_tools":[{"name":"camera"}]}`, `calls add {} | camera {}`)
	p.step(shows("t1.1", fileOf("s")))
	p.lines("sealed")
	require.Equal(t, agent.StatusSuspended, p.state.Status())
	require.NoError(t, p.state.CheckPortable())
	require.Equal(t, []*agent.File{fileOf("s").File}, p.state.Calls.Files())
}

// The next request is estimated with what a model is charged for a file.
func TestAFileOfAResultHasItsWeight(t *testing.T) {
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}]}`, "calls add {}")
	before := p.state.Budget.BytesSince
	p.step(shows("t1.1", fileOf("s")))
	require.Equal(t, fileOf("s").File.Weight()+len("drawn")+frame, p.state.Budget.BytesSince-before)
}

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

// A flow takes files only with its start, and with no verb.
func TestAFlowTakesNoFilesWithAVerb(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a"}, Flow: true})
	for _, c := range []agent.Command{agent.SendCommand{Parts: shown("s", 1)}, agent.ResumeCommand{Parts: shown("s", 1)}} {
		if _, ok := c.(agent.ResumeCommand); ok {
			d.step(CommandReceived{Command: agent.PauseCommand{}})
		}
		code, path := d.refused(c)
		require.Equal(t, []any{agent.CodeInvalidInput, "parts"}, []any{code, path}, "%T", c)
	}
}

// A run at rest keeps what its results show, and has counted all of it.
func TestFilesOfResultsTakeSpace(t *testing.T) {
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"client_tools":[{"name":"camera"}]}`, `calls add {} | camera {}`)
	space := p.state.space()
	p.step(shows("t1.1", manyFiles("s", agent.MaxFiles)...))
	c := p.state.Calls.List[0]
	require.Len(t, c.Result.Files, agent.MaxFiles)
	require.LessOrEqual(t, written(c), c.Size)
	require.LessOrEqual(t, written(c.Result.Files), space-p.state.space())
}

// What a file weighs decides when a log is stored, so a replay must find the same: another weight
// needs a new Revision.
func TestTheWeightOfFilesIsFixed(t *testing.T) {
	for _, c := range []struct {
		mediaType    string
		size, weight int
	}{
		{"image/png", 5 << 20, 6144}, {"image/svg+xml", 100, 6144}, {"application/pdf", 1, 6144}, {"application/pdf", 600_000, 100_000}, {"application/pdf", 20 << 20, 262144},
		{"text/csv", 1000, 1000}, {"application/json", 262144, 262144}, {"text/plain", 262145, 256}, {"audio/wav", 1 << 20, 256}, {"application/yaml", 7, 7},
	} {
		f := agent.File{MediaType: c.mediaType, Size: c.size}
		require.Equal(t, c.weight, f.Weight(), "%s %d", c.mediaType, c.size)
	}
}

// What the runtime asks counts nothing in the message with an answer's files, whatever its words are.
func TestFilesOfAnAnswerCountNoWordsOfTheRuntime(t *testing.T) {
	d := decision{answer: &agent.AnswerCommand{}}
	for _, asked := range []agent.Request{
		{Type: agent.RequestLimit}, {Type: agent.RequestApproval}, {Type: agent.RequestQuestion, Cause: causeUnknown},
		{Type: agent.RequestClientTool, Call: &agent.RequestCall{Tool: "scan"}},
	} {
		short, long := Request{Request: asked}, Request{Request: asked}
		short.Text, long.Text = "Go on?", "May the agent go on with this?"
		require.Equal(t, []int{short.answerBytes(d), short.answerJSONLen(d)}, []int{long.answerBytes(d), long.answerJSONLen(d)}, asked.Type)
	}
	asked := Request{Request: agent.Request{Type: agent.RequestQuestion, Text: "Which?"}}
	require.Equal(t, len("Which?"), asked.answerBytes(d))
}
