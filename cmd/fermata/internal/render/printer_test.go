package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/live"
)

// begin is when the runs of these tests begin.
var begin = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// after makes an event some milliseconds after the beginning.
func after(ms int, turn int, e agent.Event) agent.Event {
	e.Time, e.Turn = begin.Add(time.Duration(ms)*time.Millisecond), turn
	return e
}

func turn(n int) agent.Event { return after(0, n, agent.Event{Type: agent.EventTurnStarted}) }

func says(n int, text string, calls ...agent.ToolCall) agent.Event {
	m := agent.TextMessage(agent.RoleAssistant, text)
	for _, c := range calls {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartToolCall, Call: &c})
	}
	return after(0, n, agent.Event{Type: agent.EventMessage, Message: &m})
}

func call(id, tool, arguments string) agent.ToolCall {
	return agent.ToolCall{ID: id, Tool: tool, Arguments: json.RawMessage(arguments)}
}

func noted(t agent.EventType, ms int, id, tool string, status agent.CallStatus) agent.Event {
	return after(ms, 1, agent.Event{Type: t, Call: &agent.CallUpdate{Call: id, Tool: tool, Status: status}})
}

func stepped(t agent.EventType, id, path string) agent.Event {
	return after(0, 1, agent.Event{Type: t, Call: &agent.CallUpdate{Call: id, Step: path}})
}

func results(list ...agent.ToolResult) agent.Event {
	m := agent.Message{Role: agent.RoleTool}
	for _, r := range list {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartToolResult, Result: &r})
	}
	return after(0, 1, agent.Event{Type: agent.EventMessage, Message: &m})
}

func piece(n int, text string) live.Event {
	return live.Event{Type: agent.EventDeltaText, Turn: n, Data: live.Data{Text: text}}
}

// told is what a teller writes of events and pieces.
func told(o render.Options, what ...any) string {
	var b strings.Builder
	t := render.New(&b, o)
	for _, w := range what {
		switch w := w.(type) {
		case agent.Event:
			t.Event(w)
		case live.Event:
			t.Live(w)
		case *agent.Outcome:
			t.End(w)
		case string: // time passes
			t.Flush()
		}
	}
	return b.String()
}

func TestTeller(t *testing.T) {
	ok := agent.ToolResult{Call: "t1.1", Tool: "fs_read", Status: agent.CallOK, Text: "one\ntwo"}
	tests := []struct {
		name string
		what []any
		want string
	}{
		{"whole", []any{turn(1), says(1, "Hello.")}, "│ Hello.\n"},
		{"pieces", []any{turn(1), piece(1, "Hel"), piece(1, "lo."), says(1, "Hello.")}, "│ Hello.\n"},
		{"pieces that were lost", []any{turn(1), piece(1, "Hel"), says(1, "Hello.")}, "│ Hello.\n"},
		{"pieces of another attempt", []any{turn(1), piece(1, "Hi"), live.Event{Type: agent.EventDeltaReset, Turn: 1}, piece(1, "Hello."), says(1, "Hello.")}, "│ Hi\nthe model is called again\n│ Hello.\n"},
		{"pieces that are not kept", []any{turn(1), piece(1, "Hello, "), says(1, "Hello,")}, "│ Hello, \n"},
		{"pieces that differ", []any{turn(1), piece(1, "Hi"), says(1, "Hello.")}, "│ Hi\n│ Hello.\n"},
		{"late pieces", []any{turn(1), says(1, "Hello."), piece(1, "Hello.")}, "│ Hello.\n"},
		{"early pieces", []any{turn(1), piece(2, "Two."), says(1, "One."), turn(2), says(2, "Two.")}, "│ One.\n│ Two.\n"},
		{"pieces of the turn after the next", []any{piece(2, "Two "), turn(1), says(1, "One."), piece(2, "words."), turn(2), says(2, "Two words.")}, "│ One.\n│ Two words.\n"},
		{"a call", []any{turn(1), says(1, "", call("t1.1", "fs_read", `{"path":"a b","from_line":3}`)),
			noted(agent.EventCallStarted, 0, "t1.1", "fs_read", ""), noted(agent.EventCallDone, 1200, "t1.1", "fs_read", agent.CallOK), results(ok)},
			"→ fs_read from_line=3 path=\"a b\"\n  ok 1.2s one two\n"},
		{"two calls, one of them long", []any{turn(1), says(1, "", call("t1.1", "fs_read", `{}`), call("t1.2", "shell_run", `{}`)),
			noted(agent.EventCallStarted, 0, "t1.1", "fs_read", ""), noted(agent.EventCallStarted, 0, "t1.2", "shell_run", ""),
			noted(agent.EventCallDone, 5, "t1.1", "fs_read", agent.CallOK), "time passes",
			noted(agent.EventCallDone, 90_000, "t1.2", "shell_run", agent.CallFailed),
			results(ok, agent.ToolResult{Call: "t1.2", Tool: "shell_run", Status: agent.CallFailed, Text: "no"})},
			"→ fs_read\n→ shell_run\n  fs_read ok 5ms\n  shell_run failed 1m30s no\n"},
		{"steps of a flow", []any{turn(1), says(1, "", call("t1.1", "subagent__a", `{}`), call("t1.2", "do", `{}`)), stepped(agent.EventCallRequested, "t1.1", "x.1/a"), stepped(agent.EventCallRequested, "t1.2", "b"),
			stepped(agent.EventCallStarted, "t1.2", "b"), stepped(agent.EventCallStarted, "t1.1", "x.1/a"), results(agent.ToolResult{Call: "t1.2", Tool: "do", Status: agent.CallOK, Text: "7"}), turn(2),
			results(agent.ToolResult{Call: "t1.1", Tool: "subagent__a", Status: agent.CallFailed, Text: "no"})},
			"→ b\n→ x.1/a\n  b ok 7\n  x.1/a failed no\n"},
		{"a call that is not made", []any{turn(1), says(1, "", call("t1.1", "fly", `{"to":"Rome"}`)),
			results(agent.ToolResult{Call: "t1.1", Tool: "fly", Status: agent.CallRejected, Text: "Tool not found: fly."})},
			"→ fly to=\"Rome\"\n  rejected Tool not found: fly.\n"},
		{"what would steer a terminal", []any{turn(1), piece(1, "\x1b[2Jred\u202e"), says(1, "\x1b[2Jred\u202e")}, "│ \\u001b[2Jred\\u202e\n"},
		{"what would be a line of ours", []any{turn(1), piece(1, "Done.\n\nq-2, approval: Run p"), piece(1, "аy?\n"), says(1, "Done.\n\nq-2, approval: Run pаy?\n")}, "│ Done.\n│\n│ q-2, approval: Run p\\u0430y?\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, told(render.Options{}, tt.what...)) })
	}
}

func TestEnd(t *testing.T) {
	o := &agent.Outcome{
		Status: agent.StatusCompleted, Text: "Done.", Turns: 1, Usage: agent.Usage{Input: 12345, Output: 7}, Cost: 4510,
		Started: begin, Ended: begin.Add(2340 * time.Millisecond), Output: json.RawMessage(`{"kind":"bug"}`),
		Tools: []agent.ToolCount{{Calls: 3, OK: 2, Failed: 1}},
	}
	require.Equal(t, "│ Done.\n│ {\n│   \"kind\": \"bug\"\n│ }\ncompleted · 1 turn, 3 calls (1 not ok) · 2.3s · 12,345 tokens in, 7 out · $0.0045\n", told(render.Options{}, o))
	require.Equal(t, 1, strings.Count(told(render.Options{}, turn(1), says(1, "Done."), o), "Done."), "told once")
	both := &agent.Outcome{Status: agent.StatusCompleted, Text: `{"kind":"a && b"}`, Output: json.RawMessage(`{"kind":"a \u0026\u0026 b"}`)}
	require.Equal(t, "│ {\"kind\":\"a && b\"}\ncompleted · 0 turns · 0 tokens in, 0 out\n", told(render.Options{}, says(1, both.Text), both))
	require.Equal(t, "{\n  \"kind\": \"a && b\"\n}", render.Output(both.Output))
	colored := told(render.Options{Color: true}, o)
	require.Contains(t, colored, "\x1b[32mcompleted")
	saved := agent.Outcome{Status: agent.StatusCompleted, Session: "s"}
	for i := range 22 {
		saved.Artifacts = append(saved.Artifacts, agent.Artifact{File: agent.File{Session: "s", Name: fmt.Sprintf("\x1b[%d]\u202e.md", i), MediaType: "text/markdown", Size: 3}, Version: 2})
	}
	saved.Artifacts[0].Session = "s/b-1"
	lines := strings.Split(told(render.Options{}, &saved), "\n")
	require.Equal(t, "artifact 0.md version 2 (text/markdown, 3 bytes) of session s/b-1", lines[0])
	require.Equal(t, []string{"artifact 19.md version 2 (text/markdown, 3 bytes)", "and more artifacts: see fermata artifacts s; those of sub-agents are in their sessions", "completed · 0 turns · 0 tokens in, 0 out"}, lines[19:22])
	failed := &agent.Outcome{Status: agent.StatusFailed, Reason: "limit_turns", Turns: 2}
	require.Equal(t, "failed (limit_turns) · 2 turns · 0 tokens in, 0 out\n", told(render.Options{}, failed))
	failed.Unread = []agent.UnreadMessage{{Event: 10, By: "ana", Text: "wait"}, {Event: 11}}
	require.Equal(t, []string{
		"2 messages came too late for the model; the session's next run reads what was said:",
		"  ana (event 10): wait", "  somebody (event 11): not shown here; fermata events has it",
	}, strings.Split(told(render.Options{}, failed), "\n")[:3])
	unsaved := &agent.Outcome{Status: agent.StatusCompleted, Unsaved: agent.Errorf(agent.CodeDenied, "the bucket\nis locked")}
	require.Equal(t, "the run's end is not stored: [denied] the bucket is locked; the session's next run stores it, or says why it can't\ncompleted · 0 turns · 0 tokens in, 0 out\n", told(render.Options{}, unsaved))
}

// The list of events says how far a model says it is, and which instructions a run has now.
func TestEventOfProgress(t *testing.T) {
	report := &agent.Progress{Entries: []agent.TodoItem{{Text: "Read", State: agent.TodoDone}, {Text: "Write\nit", State: agent.TodoInProgress}}}
	require.Equal(t, "progress: 1 of 2 done: Write it", render.Event("a", agent.Event{Type: agent.EventProgressReported, Progress: report}))
	fresh := agent.NewInstructions("Be brief.", "ana")
	require.Equal(t, "the agent's newest instructions, 213c22ed", render.Event("a", agent.Event{Type: agent.EventInstructionsChanged, Instructions: &fresh})[:41])
	kept := agent.InstructionsChange{Error: agent.Errorf(agent.CodeUnknownAgent, "it has other")}
	require.Equal(t, "the run keeps its instructions: it has other", render.Event("a", agent.Event{Type: agent.EventInstructionsKept, Instructions: &kept}))
}

func TestArguments(t *testing.T) {
	long := `{"content":"` + strings.Repeat("x", 200) + `","n":{"a":[1, 2]}}`
	require.Equal(t, `content="`+strings.Repeat("x", 52)+`…(+149) n={"a": [1, 2]}`, render.Arguments(call("", "t", long)))
	require.Equal(t, `command="a && b > c"`, render.Arguments(call("", "t", `{"command":"a \u0026\u0026 b \u003e c"}`)))
	require.Equal(t, "half a {", render.Arguments(agent.ToolCall{Malformed: "half a\n{"}))
	require.Equal(t, "", render.Arguments(call("", "t", "{}")))
}

func TestMoney(t *testing.T) {
	for u, want := range map[agent.USD]string{0: "$0.00", 7: "$0.000007", 4510: "$0.0045", 412_300: "$0.41", 12 * agent.Dollar: "$12.00"} {
		require.Equal(t, want, render.Money(u))
	}
}

// Who joins in the middle of a turn is told what the model says from there on, and nothing
// that was answered before.
func TestJoin(t *testing.T) {
	for asked, want := range map[bool]string{true: "│ Once upon a time\n", false: ""} {
		var b strings.Builder
		to := render.New(&b, render.Options{})
		to.StartMidTurn(2, asked)
		to.Live(piece(1, "late "))
		to.Live(piece(2, "Once upon "))
		if asked {
			to.Live(piece(2, "a time\n"))
		}
		require.Equal(t, want, b.String())
	}
}

// A result's files are named wherever the result is shown; what names them is from outside.
func TestFilesOfResults(t *testing.T) {
	f := agent.Part{Type: agent.PartFile, Text: "sales", File: &agent.File{Size: 5, MediaType: "image/png", Name: "a\x1b[2J.png"}}
	r := agent.ToolResult{Call: "t1.1", Tool: "plot", Status: agent.CallOK, Text: "drawn", Files: []agent.Part{f, {}}}
	const name = `a2J.png (image/png, 5 bytes)` // its controls and brackets are dropped
	got := told(render.Options{}, turn(1), says(1, "", call("t1.1", "plot", "{}")), noted(agent.EventCallStarted, 0, "t1.1", "plot", ""), noted(agent.EventCallDone, 5, "t1.1", "plot", agent.CallOK), results(r))
	require.Contains(t, got, "\n  plot shows "+name+"\n")
	require.Contains(t, string(render.Message(*results(r).Message)), "[file] "+name)
	require.Contains(t, render.Event("a", results(r)), "plot ok: drawn ["+f.File.String()+"]")
}

// What a reply cites follows it, whether it was streamed or not; what names it is from outside.
func TestCitations(t *testing.T) {
	spec := agent.Citation{Start: 0, End: 7, Title: "spec\n\x1b[2J.pdf", File: strings.Repeat("0a", 32), Unit: agent.CitedPages, From: 5, To: 7, Text: "Say\napprove?"}
	again := spec
	again.Start, again.End = 8, 12
	m := says(1, "Grüße Rom.")
	m.Message.Parts[0].Citations, m.Message.Parts[0].Uncited = []agent.Citation{spec, again, {Start: 8, End: 11, URL: "https://аpple.com/x"}, {Start: 99, End: 100, Title: "outside"}}, 3
	want := []string{`[source] spec \u001b[2J.pdf, pages 5 to 6, for "Grüße" (2 times): "Say approve?"`, `[source] https://xn--pple-43d.com/x, for "Rom"`, `[source] 3 more`}
	got := told(render.Options{}, turn(1), m)
	require.Equal(t, "│ Grüße Rom.\n"+strings.Join(want, "\n")+"\n", got)
	require.Contains(t, string(render.Message(*m.Message)), "│ Grüße Rom.\n"+strings.Join(want, "\n"))

	var many []agent.Citation
	for i := range 64 {
		many = append(many, agent.Citation{Title: strings.Repeat("x", i+1), Unit: agent.CitedChars, To: 3})
	}
	lines := render.Citations("x", many, 0)
	require.Len(t, lines, 11)
	require.Equal(t, "[source] xx", lines[1])
	require.Equal(t, "[source] 54 more", lines[10])
	require.Equal(t, []string{"[source] file 0a0a0a0a0a0a"}, render.Citations("x", []agent.Citation{{File: strings.Repeat("0a", 32)}}, 0))
	require.Empty(t, render.Citations("x", nil, 0))
}
