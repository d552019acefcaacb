package loop

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/wire"
)

// The note after a suspension names what ended it and what came with that, whoever or whatever it was
// (HL-34).
func TestTheNoteNamesItsInput(t *testing.T) {
	park := func(conditions string) string {
		return `calls await_resumption {"reason":"not paid","conditions":` + conditions + `}`
	}
	opened := `opened {"tools":["await_resumption"],"toolset":[{"name":"await_resumption","executor":"runtime"}]}`
	event := `{"event":{"topic":"paid"}}`
	for ends, c := range map[string]struct{ conditions, note string }{
		`emit {"topic":"paid","payload":{"order":7}}`: {event, `The event paid came. The input: "{\"order\":7}"`},
		`resume {"message":"look  again"}`:            {event, `Somebody resumed you. The input: "look again"`},
		`resume {}`:                                   {event, "Somebody resumed you."},
		"after 1h":                                    {`{"after":"1h","on_timeout":"resume_with_input","input":"look once more"}`, `The input: "look once more"`},
	} {
		lines := []string{"begin go", opened, park(c.conditions), "sealed", ends}
		if ends == "after 1h" {
			lines = append(lines, "timer")
		}
		require.Regexp(t, "^You were suspended at turn 1 for the reason \"not paid\" and continue at .*", played(t, lines...).state.Turn.Note, ends)
		require.Contains(t, played(t, lines...).state.Turn.Note, c.note, ends)
	}
}

// beginnings of the runs below: what the model asks people, after which the run rests.
const (
	asksToPay  = `replies {"finish":"tool_calls","parts":[{"type":"tool_call","call":{"tool":"pay","arguments":{"card":"4111"}}}],"rule_matches":[[0]]}`
	payIsAsked = `opened {"tools":["ask_user","wait_for_user"],"toolset":[{"name":"pay"},{"name":"look","read_only":true},{"name":"scan","executor":"client"}],"rules":[{"do":"ask","tools":["pay"],"deadline":"2160h"}],"answer_timeouts":{"deadline":"2160h","default":"home"}}`
)

// noteOf plays a run and returns the note of the model call in flight; empty if that has none.
func noteOf(t *testing.T, lines ...string) string {
	t.Helper()
	p := played(t, lines...)
	require.Equal(t, TurnAsking, p.state.Turn.Phase, p.out.String())
	return p.state.Turn.Note
}

// A run waits three months for people, and then its next request says why it waited, who decided what, what
// came with it and what time it is. What only a tool or a client may read is not in it, and no argument of a
// call (HL-34).
func TestTheNoteNamesTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		asks []string
		note string
	}{
		"a question": {[]string{`calls ask_user {"question":"Where to?"}`, "sealed", "after 2159h", `answer {"request":"q-1","text":"to  Rome","by":"ana"}`},
			`You were suspended at turn 1 for the reason "Where to?" and continue at 2026-03-31T23:00:00Z. Request q-1 (a question), open since 2026-01-01T00:00:00Z, was answered by "ana". The input: "to Rome"`},
		"its deadline": {[]string{`calls ask_user {"question":"Where to?"}`, "sealed", "after 2160h", "timer"},
			`You were suspended at turn 1 for the reason "Where to?" and continue at 2026-04-01T00:00:00Z. Request q-1 (a question), open since 2026-01-01T00:00:00Z, was decided by its deadline, since nobody had answered. The input: "home"`},
		"an approval": {[]string{asksToPay, "sealed", "after 2159h", `approve {"request":"q-1","arguments":{"card":"4222"},"by":"ana"}`, "result t1.1 ok paid"},
			`You were suspended at turn 1 for the reason "Run pay?" and continue at 2026-03-31T23:00:00Z. Request q-1 (the approval of pay), open since 2026-01-01T00:00:00Z, was approved by "ana".`},
		"a denial": {[]string{asksToPay, "sealed", "after 2159h", `reject {"request":"q-1","reason":"too dear"}`},
			`You were suspended at turn 1 for the reason "Run pay?" and continue at 2026-03-31T23:00:00Z. Request q-1 (the approval of pay), open since 2026-01-01T00:00:00Z, was rejected. The input: "too dear"`},
		"the deadline of an approval": {[]string{asksToPay, "sealed", "after 2160h", "timer"},
			`You were suspended at turn 1 for the reason "Run pay?" and continue at 2026-04-01T00:00:00Z. Request q-1 (the approval of pay), open since 2026-01-01T00:00:00Z, was rejected by its deadline, since nobody had answered.`},
		"a tool's question": {[]string{"calls look {}", "asks t1.1 Which password?", "sealed", `answer {"request":"q-1","text":"blue","by":"ana"}`, "result t1.1 ok seen"},
			`You were suspended at turn 1 for a question of a tool and continue at 2026-01-01T00:00:00Z. Request q-1 (a question of the tool look), open since 2026-01-01T00:00:00Z, was answered by "ana". The tool that asked has the answer.`},
		"a client's call": {[]string{"calls scan {}", "sealed", `answer {"request":"q-1","text":"a long page","by":"app"}`},
			`You were suspended at turn 1 for the reason "Run scan and answer with its result." and continue at 2026-01-01T00:00:00Z. Request q-1 (the client's call of scan), open since 2026-01-01T00:00:00Z, was answered by "app".`},
		"the user's next message": {[]string{"calls wait_for_user {}", "sealed", "after 1h", `send {"text":"go on"}`},
			`You were suspended at turn 1 and continue at 2026-01-01T01:00:00Z. The user's next message came, for which you waited.`},
		"a run that did not rest": {[]string{`calls look {} | scan {}`, `answer {"request":"q-1","text":"to Rome"}`, "result t1.1 ok seen"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.note, noteOf(t, append([]string{"begin go", payIsAsked}, c.asks...)...))
		})
	}
}

// Several requests and a hold in one suspension make one note, and the next request has none (HL-34, HL-35).
func TestOneNoteForAllThatWasAsked(t *testing.T) {
	lines := []string{"begin go", payIsAsked, `calls ask_user {"question":"Where to?"} | ask_user {"question":"When?"}`, "sealed",
		`answer {"request":"q-2","text":"today","by":"bo"}`, `interrupt {"by":"cy"}`, `answer {"request":"q-1","text":"to Rome","by":"ana"}`, "after 1h", `resume {"by":"cy"}`}
	require.Equal(t, `You were suspended at turn 1 for the reason "Where to?" and continue at 2026-01-01T01:00:00Z. `+
		`Request q-2 (the question "When?"), open since 2026-01-01T00:00:00Z, was answered by "bo". The input: "today" `+
		`Request q-1 (a question), open since 2026-01-01T00:00:00Z, was answered by "ana". The input: "to Rome" Somebody resumed you.`, noteOf(t, lines...))
	require.Empty(t, noteOf(t, append(lines, "calls look {}", "result t2.1 ok seen")...))
}

// However much is answered in a suspension, the note names the last answers and counts the others (HL-34).
func TestTheNoteIsBounded(t *testing.T) {
	ask, lines := []string(nil), []string{"begin go", payIsAsked}
	for i := range 30 {
		ask = append(ask, `ask_user {"question":"`+strconv.Itoa(i)+strings.Repeat("<", 400)+`"}`)
	}
	lines = append(lines, "calls "+strings.Join(ask, " | "), "sealed")
	for i := range ask {
		lines = append(lines, `answer {"request":"q-`+strconv.Itoa(i+1)+`","text":"`+strings.Repeat("<", 4000)+`"}`)
	}
	p := played(t, lines...)
	require.LessOrEqual(t, jsonLen(p.state.Turn.Note), maxNote)
	require.Regexp(t, `\. \d+ more came before\. Request q-\d+ `, p.state.Turn.Note)
	require.Contains(t, p.state.Turn.Note, "Request q-30 ")
}

// A run that waits for another one of its tree reads what it waited for only if that took long: a grant
// usually comes at once (HL-34).
func TestTheNoteAfterAWaitForTheTree(t *testing.T) {
	for wait, note := range map[string]string{
		"30s":   "",
		"2160h": "You were suspended at turn 1 and continue at 2026-04-01T00:00:00Z. The wait is over.",
	} {
		require.Equal(t, note, noteOf(t, "begin go", `opened {"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"look"}`, "child-started s/b-1", `child-says {"session":"s/b-1","seq":7,"status":"suspended","suspension":{"id":"s-1","kind":"input_required","turn":1}}`, "sealed", "after "+wait, "child-ended s/b-1 completed found"), wait)
	}
}

// A note that the model has not read when the run is suspended again stays, and the later one follows: after
// an approved call that ran into a pause, and after a request that was interrupted (HL-34).
func TestANoteThatNobodyHasRead(t *testing.T) {
	want := `(?s)^You were suspended .* Request q-1 \(.*\n.*Somebody resumed you\.$`
	require.Regexp(t, want, noteOf(t, "begin go", payIsAsked, asksToPay, "sealed", "after 2159h", `approve {"request":"q-1","by":"ana"}`, `pause {"by":"cy"}`, "result t1.1 ok paid", "sealed", "after 1h", `resume {"by":"cy"}`))

	p := played(t, "begin go", payIsAsked, `calls ask_user {"question":"Where to?"}`, "sealed", "after 1h", `answer {"request":"q-1","text":"to Rome","by":"ana"}`, `interrupt {"by":"cy"}`)
	p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld}})
	p.lines("sealed", "after 1h", `resume {"by":"cy"}`)
	require.Regexp(t, want, p.state.Turn.Note)
	for range 30 {
		p.lines(`interrupt {"by":"cy"}`)
		p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: wire.FinishHeld}})
		p.lines("sealed", `resume {"by":"cy"}`)
	}
	require.LessOrEqual(t, jsonLen(p.state.Turn.Note), maxNote)
}

// A text of the agent's own without {input} shows no input, however much ended the suspension.
func TestATextWithoutInputShowsNone(t *testing.T) {
	opened := `opened {"tools":["ask_user"],"toolset":[{"name":"look","read_only":true}],"texts":{"resume_note":"You go on. {cause}"}}`
	note := noteOf(t, "begin go", opened, `calls ask_user {"question":"A?"} | ask_user {"question":"B?"}`, "sealed", `answer {"request":"q-1","text":"in the safe","by":"ana"}`, `answer {"request":"q-2","text":"blue","by":"ana"}`)
	require.Contains(t, note, "Request q-1")
	require.NotContains(t, note, "safe")
}
