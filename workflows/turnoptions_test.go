package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// namedTools are tools whose results are their names.
func namedTools(readOnly bool, names ...string) (all []tool.Tool) {
	for _, name := range names {
		about := "Handles " + strings.ReplaceAll(name, "_", " ") + "."
		all = append(all, tool.New(name, about, func(context.Context, *tool.Call, struct{}) (string, error) { return name, nil }, &tool.Options{ReadOnly: readOnly}))
	}
	return all
}

func offeredIn(r model.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// A successful call of a named tool ends the run: the others of its turn are made, no model is asked
// any more, and the call's result is the answer (HA-58).
func TestStopAfter(t *testing.T) {
	edit := tool.New("edit", "", func(context.Context, *tool.Call, struct{}) (map[string]int, error) {
		return map[string]int{"changed": 3}, nil
	}, nil)
	tools := append(namedTools(false, "lint"), edit)
	b := setup(t, agent.Definition{StopAfter: []string{"edit"}, Require: []agent.OneOf{{"lint"}}}, testsuite.NewScript(testsuite.Reply{Calls: calls("edit", "lint")}), tools...)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, agent.ReasonStopAfter, o.Reason)
	require.JSONEq(t, `{"changed":3}`, string(o.Output))
	require.JSONEq(t, `{"changed":3}`, o.Text)
	require.Len(t, o.Tools, 2)
	require.Equal(t, 1, o.Tools[1].OK, "the sibling ran")
	require.Len(t, b.script.Requests(), 1)
}

// The instructions end with how long to work, in the words of what ends the run; the value
// "-" leaves it out (HA-07).
func TestTheLoopContract(t *testing.T) {
	for name, c := range map[string]struct {
		def  agent.Definition
		says string
	}{
		"no tools": {agent.Definition{}, ""},
		"text":     {agent.Definition{Tools: []string{agent.AskUserTool}}, "a reply without a tool call ends your work"},
		"tool":     {agent.Definition{Completion: agent.CompletionTool}, "call the tool finish"},
		"sentinel": {agent.Definition{DoneSentinel: "##DONE##"}, "end it with ##DONE##"},
		"own":      {agent.Definition{Completion: agent.CompletionTool, Texts: map[agent.TextName]string{agent.TextLoopContractTool: "Never rest."}}, "Never rest."},
		"none":     {agent.Definition{Completion: agent.CompletionTool, Texts: map[agent.TextName]string{agent.TextLoopContractTool: agent.NoText}}, ""},
	} {
		c.def.Instructions = "Be brief."
		b := setup(t, c.def, testsuite.NewScript(testsuite.Reply{Text: "All is well. ##DONE##", Calls: nil}, testsuite.Reply{Calls: []testsuite.Call{{Tool: "finish", Arguments: map[string]any{"summary": "done"}}}}))
		o := b.run(t, "go")
		require.Equal(t, agent.StatusCompleted, o.Status, "%s: %+v", name, o.Error)
		said := b.script.Requests()[0].Instructions
		require.True(t, strings.HasPrefix(said, "Be brief."), said)
		require.Contains(t, said, c.says, name)
		require.Equal(t, c.says == "", said == "Be brief.", name)
	}
}

// With a sentinel a text without it is answered, and the outcome's text has none of it (HA-03, HA-40).
func TestDoneSentinel(t *testing.T) {
	b := setup(t, agent.Definition{DoneSentinel: "##DONE##"}, testsuite.NewScript(testsuite.Reply{Text: "I begin."}, testsuite.Reply{Text: "It is 3.\n##DONE##\n"}))
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "It is 3.", o.Text)
	asked := b.script.Requests()[1].Messages
	require.Contains(t, asked[len(asked)-1].Text(), "##DONE##")

	b = setup(t, agent.Definition{DoneSentinel: "##DONE##", TextCalls: agent.TextCallsAllow}, testsuite.NewScript(
		testsuite.Reply{Text: "<tool_call>{\"name\": \"look\"}</tool_call>"}, testsuite.Reply{Text: "I have seen it."}, testsuite.Reply{Text: "It is 4. ##DONE##"}), namedTools(true, "look")...)
	o = b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, []any{"It is 4.", 3, 1}, []any{o.Text, o.Turns, o.Tools[0].OK}, "with calls as text the sentinel alone ends it, too")
}

// A text where each turn needs a call, and one that is too long, are answered with a correction (HA-56).
func TestTurnPolicy(t *testing.T) {
	def := agent.Definition{TurnPolicy: &agent.TurnPolicy{RequireAction: true, MaxProseChars: 20}, DoneSentinel: "END"}
	def.Texts = map[agent.TextName]string{agent.TextMaxProse: "Use {max}, not {chars}."}
	b := setup(t, def, testsuite.NewScript(testsuite.Reply{Text: "I think about it."}, testsuite.Reply{Text: "This is a very long answer. END"}, testsuite.Reply{Text: "Short. END"}))
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "Short.", o.Text)
	last := b.script.Requests()[2].Messages
	require.Equal(t, "Use 20, not 27.", last[len(last)-1].Text())
}

// The request says when each message was written, and the transcript does not (HA-52).
func TestTimestampMessages(t *testing.T) {
	b := setup(t, agent.Definition{TimestampMessages: true}, testsuite.NewScript(testsuite.Reply{Text: "I look.", Calls: calls("look")}, testsuite.Reply{Text: "done"}), namedTools(true, "look")...)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	head, err := b.acts.Log.Store().Head(t.Context(), o.Session)
	require.NoError(t, err)
	view, err := b.acts.Log.View(t.Context(), head.Digest)
	require.NoError(t, err)
	events, shown := view.Events(), b.script.Requests()[1].Messages
	var said []agent.Event
	for _, e := range events {
		if e.Message != nil {
			said = append(said, e)
		}
	}
	stamp := func(i int) string { return said[i].Time.UTC().Format("2006-01-02T15:04:05Z") }
	require.Equal(t, fmt.Sprintf("[%s] go", stamp(0)), shown[0].Text())
	require.Equal(t, "I look.", shown[1].Text(), "what the model wrote stays as it was")
	require.Equal(t, fmt.Sprintf("[%s; your message before: %s]\nlook", stamp(2), stamp(1)), shown[2].Parts[0].Result.Text)
	require.Equal(t, "go", said[0].Message.Text())
	require.Equal(t, "look", said[2].Message.Parts[0].Result.Text)
}

// With tool_search only the tools that are always shown and the runtime's own are offered. A hidden
// one that is called is refused, and is offered once it was found (HA-133).
func TestToolSearch(t *testing.T) {
	def := agent.Definition{ToolSearch: &agent.ToolSearch{Always: []string{"read_*"}}, Tools: []string{agent.AskUserTool}}
	b := setup(t, def, testsuite.NewScript(
		testsuite.Reply{Calls: calls("send_invoice")},
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "tool_search", Arguments: map[string]any{"query": "invoices, or an invoice"}}}},
		testsuite.Reply{Calls: calls("send_invoice")},
		testsuite.Reply{Text: "done"},
	), append(namedTools(true, "read_mail"), namedTools(false, "send_invoice", "book_flight")...)...)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	asked := b.script.Requests()
	require.ElementsMatch(t, []string{"read_mail", "ask_user", "await_resumption", "tool_search"}, offeredIn(asked[0]))
	refused := asked[1].Messages[2].Parts[0].Result
	require.Equal(t, agent.CallRejected, refused.Status)
	require.Contains(t, refused.Text, "tool_search")
	require.Equal(t, offeredIn(asked[0]), offeredIn(asked[1]), "a refused call finds nothing")
	found := asked[2].Messages[4].Parts[0].Result
	require.Equal(t, []string{"send_invoice"}, found.Tools)
	require.Contains(t, found.Text, "send_invoice: Handles send invoice.")
	require.ElementsMatch(t, []string{"read_mail", "ask_user", "await_resumption", "tool_search", "send_invoice"}, offeredIn(asked[2]))
	require.Equal(t, "send_invoice", asked[3].Messages[6].Parts[0].Result.Text)
}

// A tool that only reads vanishes after some turns without a call. One that was called stays as long,
// and tools that change something or always need an approval, and the runtime's own, stay (HA-47,
// HA-133).
func TestToolNarrowing(t *testing.T) {
	def := agent.Definition{ToolNarrowing: &agent.ToolNarrowing{WindowTurns: 2}, Tools: []string{agent.AwaitResumptionTool}}
	var script []testsuite.Reply
	for range 2 {
		script = append(script, testsuite.Reply{Calls: calls("grep")})
	}
	for range 2 {
		script = append(script, testsuite.Reply{Calls: calls("write")})
	}
	script = append(script, testsuite.Reply{Calls: []testsuite.Call{{Tool: "tool_search", Arguments: map[string]any{"query": "grep"}}}}, testsuite.Reply{Text: "done"})
	b := setup(t, def, testsuite.NewScript(script...), append(namedTools(true, "grep", "list"), namedTools(false, "write")...)...)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	asked := b.script.Requests()
	require.Contains(t, offeredIn(asked[1]), "list")
	require.NotContains(t, offeredIn(asked[2]), "list", "unused for two turns")
	require.Contains(t, offeredIn(asked[3]), "grep", "used a turn ago")
	require.ElementsMatch(t, []string{"write", "await_resumption", "tool_search"}, offeredIn(asked[4]))
	require.Contains(t, offeredIn(asked[5]), "grep", "found again")

	guarded := tool.New("payroll", "", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, &tool.Options{ReadOnly: true, Approval: &agent.ToolApproval{}})
	script = nil
	for i := range 5 {
		script = append(script, testsuite.Reply{Calls: []testsuite.Call{{Tool: "write", Arguments: map[string]any{"n": i}}}})
	}
	script = append(script, testsuite.Reply{Text: "done"})
	b = setup(t, agent.Definition{ToolNarrowing: &agent.ToolNarrowing{}}, testsuite.NewScript(script...), append(namedTools(true, "grep"), append(namedTools(false, "write"), guarded)...)...)
	o = b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	asked = b.script.Requests()
	require.Contains(t, offeredIn(asked[4]), "grep", "four turns: the window is five unless said")
	require.NotContains(t, offeredIn(asked[5]), "grep")
	require.Subset(t, offeredIn(asked[5]), []string{"write", "payroll"}, "what changes something, and what always needs an approval, stays")

	b = setup(t, agent.Definition{ToolNarrowing: &agent.ToolNarrowing{WindowTurns: 1}, Require: []agent.OneOf{{"verify"}}, StopAfter: []string{"hand_in"}}, testsuite.NewScript(
		testsuite.Reply{Calls: calls("write")}, testsuite.Reply{Calls: calls("verify")}, testsuite.Reply{Calls: calls("hand_in")}), append(namedTools(true, "verify", "hand_in", "grep"), namedTools(false, "write")...)...)
	o = b.run(t, "go")
	require.Equal(t, agent.ReasonStopAfter, o.Reason, "%+v", o.Error)
	for _, r := range b.script.Requests()[1:] {
		require.Subset(t, offeredIn(r), []string{"verify", "hand_in"}, "without them the run can't complete")
		require.NotContains(t, offeredIn(r), "grep")
	}
}

// Calls that are written as text are made, made once, or refused; without the option they are text
// (HA-57). A report counts those that were refused (HA-31).
func TestTextCalls(t *testing.T) {
	written := func(i int) testsuite.Reply {
		return testsuite.Reply{Text: fmt.Sprintf("Once more.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"N\": %d}}\n</tool_call>", i)}
	}
	for policy, want := range map[agent.TextCalls][2]int{agent.TextCallsAllow: {3, 0}, agent.TextCallsAllowOnce: {1, 2}, agent.TextCallsReject: {0, 3}} {
		look := tool.New("look", "", func(context.Context, *tool.Call, struct{ N int }) (string, error) { return "seen", nil }, nil)
		b := setup(t, agent.Definition{TextCalls: policy}, testsuite.NewScript(written(1), written(2), written(3), testsuite.Reply{Text: "done"}), look)
		o := b.run(t, "go")
		require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
		require.Equal(t, want, [2]int{o.Tools[0].OK, o.Tools[0].Rejected}, policy)
		require.Equal(t, "Once more.", b.script.Requests()[1].Messages[1].Text())
	}
	b := setup(t, agent.Definition{}, testsuite.NewScript(written(1)), namedTools(true, "look")...)
	require.Contains(t, b.run(t, "go").Text, "<tool_call>")

	b = setup(t, agent.Definition{Report: true, TextCalls: agent.TextCallsReject, Nudges: 1}, testsuite.NewScript(written(1), written(2)), namedTools(true, "look")...)
	o := b.run(t, "go")
	require.ErrorIs(t, o.Error, agent.CodeStuck)
	require.Equal(t, [2]int{0, 2}, [2]int{o.Report.TextCalls, o.Report.TextCallsRejected})
}

// slow is a model that takes answerTime of the bench's clock to answer.
type slow struct {
	model.Model
	b *bench
}

const answerTime = 20 * time.Millisecond

func (s slow) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	passed := make(chan struct{})
	s.b.RegisterDelayedCallback(func() { close(passed) }, answerTime)
	<-passed
	return s.Model.Generate(ctx, req, emit)
}

// slowly makes the bench's model slow.
func (b *bench) slowly() *bench {
	b.acts.Model = func(name string) (activities.Model, error) {
		return activities.Model{Model: slow{b.script, b}, Name: name}, nil
	}
	return b
}

// With report the outcome has the turns with their times and sizes (HA-12), counts of events and of
// calls that were written as text (HA-31), and repeated calls with the remarks about them (HA-34). An
// agent that does not ask for it has none.
func TestReport(t *testing.T) {
	script := []testsuite.Reply{{Text: "", Calls: nil}, {Text: "Look!", Calls: calls("look")}, {Calls: calls("look")}, {Text: "<tool_call>{\"name\": \"look\"}</tool_call>"}, {Text: "It is größer."}}
	b := setup(t, agent.Definition{Report: true, TextCalls: agent.TextCallsAllow}, testsuite.NewScript(script...), namedTools(true, "look")...).slowly()
	begun := b.Now().Truncate(time.Millisecond)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	r := o.Report
	require.Len(t, r.Iterations, 5)
	for i, one := range r.Iterations {
		require.Equal(t, i+1, one.Iteration)
		require.False(t, one.Started.IsZero())
		require.GreaterOrEqual(t, one.Ended.Sub(one.Started), answerTime, "the model has answered meanwhile")
		require.False(t, i > 0 && one.Started.Before(r.Iterations[i-1].Ended), "one after the other")
	}
	require.WithinRange(t, r.Iterations[0].Started, begun, b.Now())
	require.True(t, r.Iterations[0].Retried)
	require.Equal(t, [2]int{1, 5}, [2]int{r.Iterations[1].ToolCount, r.Iterations[1].ProseChars})
	require.Equal(t, [2]int{0, 13}, [2]int{r.Iterations[4].ToolCount, r.Iterations[4].ProseChars})
	require.Equal(t, [3]int{1, 1, 0}, [3]int{r.RetriedReplies, r.TextCalls, r.TextCallsRejected})
	require.Equal(t, 2, r.RepeatedCalls, "three equal calls repeat two times")
	require.Equal(t, []agent.StallWarning{{Tool: "look", Iteration: 4, Times: 3}}, r.StallWarnings)
	require.False(t, r.SuspectedLoop)
	require.Contains(t, r.Events, agent.EventCount{Type: agent.EventTurnStarted, Count: 5})
	require.Contains(t, r.Events, agent.EventCount{Type: agent.EventCallDone, Count: 3})

	b = setup(t, agent.Definition{Report: true}, testsuite.NewScript(slices.Repeat([]testsuite.Reply{{Calls: calls("look")}}, 6)...), namedTools(true, "look")...)
	o = b.run(t, "go")
	require.ErrorIs(t, o.Error, agent.CodeLoopDetected)
	require.True(t, o.Report.SuspectedLoop)

	b = setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	require.Nil(t, b.run(t, "go").Report)
}

// With report the outcome has what the checks said, each with its turn, its reasons and how long it
// took (HA-12).
func TestJudgeDecisions(t *testing.T) {
	script := testsuite.NewScript(
		testsuite.Reply{Match: `(?s)Is the work done.*"answer":\{"text":"Three risks, see`, Text: `{"verdict":"accept","reasoning":"It cites the log."}`},
		testsuite.Reply{Match: "Is the work done", Text: `{"verdict":"veto","reasoning":"` + strings.Repeat("No evidence. ", 100) + `","next_step":"Cite the log."}`},
		testsuite.Reply{Text: "Three risks."},
		testsuite.Reply{Text: "Three risks, see the log."},
	)
	b := setup(t, agent.Definition{Report: true, Verify: agent.Verify{Checks: []agent.Check{{Name: "rubric", Judge: &agent.Judge{Instructions: "Is there evidence?"}}}}}, script).slowly()
	o := b.run(t, "Sum up the risks")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Len(t, o.Report.Iterations, 2)
	said := o.Report.JudgeDecisions
	require.Len(t, said, 2)
	require.Less(t, len(said[0].Reasoning), 520, "the log has it whole")
	for i := range said {
		require.GreaterOrEqual(t, said[i].JudgeDurationMS, answerTime.Milliseconds())
		said[i].JudgeDurationMS, said[i].Reasoning = 0, strings.Fields(said[i].Reasoning)[0]
	}
	require.Equal(t, []agent.JudgeDecision{
		{Iteration: 1, Check: "rubric", Verdict: agent.DecisionVeto, Reasoning: "No", NextStep: "Cite the log.", Trigger: agent.PointVerify},
		{Iteration: 2, Check: "rubric", Verdict: agent.DecisionAccept, Reasoning: "It", Trigger: agent.PointVerify},
	}, said)
}

// A start with a number that can't be meant fails before its model is asked, also if nothing of ours has
// sent it (HA-38).
func TestStartsWithNumbersThatCantBeMeant(t *testing.T) {
	for path, part := range map[string]string{
		"limits.turns":            `"limits":{"turns":0}`,
		"limits.own_turns":        `"limits":{"own_turns":-1}`,
		"limits.tokens":           `"limits":{"tokens":"x"}`,
		"limits.cost_usd":         `"limits":{"cost_usd":1e-9}`,
		"judge.max_output_tokens": `"judge":{"max_output_tokens":0}`,
	} {
		t.Run(path, func(t *testing.T) {
			script := testsuite.NewScript(testsuite.Reply{Text: "done"})
			b := setup(t, agent.Definition{}, script)
			payload, err := converter.GetDefaultDataConverter().ToPayload(json.RawMessage(`{"agent":"tester","input":{"text":"go"},` + part + `}`))
			require.NoError(t, err)
			b.play(payload)
			o := b.outcome(t)
			require.Equal(t, agent.StatusFailed, o.Status)
			require.Equal(t, agent.CodeInvalidInput, o.Error.Code)
			require.Equal(t, path, o.Error.Path)
			require.Empty(t, script.Requests())
		})
	}
}
