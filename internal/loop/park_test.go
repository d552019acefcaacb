package loop

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/match"
)

// A parked run waits for the earliest of its times and for events that fit; what came
// first ends it.
func TestWhatAParkWaitsFor(t *testing.T) {
	at := time.Unix(100, 0)
	p := &Park{Conditions: agent.Conditions{Any: []agent.Condition{
		{At: at.Add(time.Hour)}, {At: at}, {Event: &agent.EventCondition{Topic: "paid", Match: json.RawMessage(`{"required":["order"]}`)}},
	}}}
	require.Equal(t, at, p.due())
	for payload, waits := range map[string]bool{`{"order":1}`: true, `{}`: false} {
		require.Equal(t, waits, p.waitsFor(agent.EmitCommand{Topic: "paid", Payload: json.RawMessage(payload)}, match.NewBudget(match.Looks)), payload)
	}
	require.False(t, p.waitsFor(agent.EmitCommand{Topic: "other", Payload: json.RawMessage(`{"order":1}`)}, match.NewBudget(match.Looks)))
	require.Equal(t, agent.OwnerRuntime, p.reasons().owner())
	met := conditionMetBy(agent.EmitCommand{Topic: "paid"})
	p.Met = &met
	require.Zero(t, p.due())
	require.False(t, p.waitsFor(agent.EmitCommand{Topic: "paid", Payload: json.RawMessage(`{"order":2}`)}, match.NewBudget(match.Looks)))

	var none *Park
	require.Zero(t, none.due())
	require.Empty(t, none.reasons())
	require.Equal(t, agent.OwnerOperator, (&Park{}).reasons().owner(), "only somebody's resume ends it")
}

// Whoever emits learns whether the run waits for another topic or for another payload.
func TestWhyAnEventIsNotTaken(t *testing.T) {
	p := played(t, `begin go`, `opened {"tools":["await_resumption"]}`, `calls await_resumption {"reason":"not paid","conditions":{"event":{"topic":"paid","match":{"type":"object"}}}}`, `sealed`)
	for _, c := range []struct{ event, path, says string }{
		{`{"topic":"paid","payload":"118"}`, "payload", "with another payload"},
		{`{"topic":"lost"}`, "topic", "does not wait for topic lost; it waits for paid"},
	} {
		p.line("emit " + c.event)
		require.ErrorIs(t, p.wrong, agent.CodeStale)
		require.ErrorContains(t, p.wrong, c.says)
		require.Equal(t, c.path, asError(p.wrong).Path)
	}
	p.lines("pause {}", `emit {"topic":"paid","payload":{}}`)
	p.line(`emit {"topic":"paid","payload":{}}`)
	require.ErrorContains(t, p.wrong, "has come already")
}

// What comes in one workflow task is compared within one budget, however much it is and
// whatever the model asked for: what is beyond it is refused with the advice to come again, and
// the next task has a budget of its own.
func TestATasksComparisonsAreBounded(t *testing.T) {
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	p := played(t, `begin go`, `opened {"tools":["await_resumption"]}`,
		`calls await_resumption {"reason":"not paid","conditions":{"event":{"topic":"paid","match":{"anyOf":[`+many(80, `{"items":{"type":"null"}}`)+`,{"type":"object"}]}}}}`, `sealed`)
	parked := p.state
	payload, _ := json.Marshal(strings.Split(many(4_000, "1.5"), ","))
	looks := match.NewBudget(match.Looks)
	emit := func(payload string, b *match.Budget) error {
		_, _, err := Step(parked, Moment{At: p.now, MatchBudget: b}, CommandReceived{Command: agent.EmitCommand{Topic: "paid", Payload: json.RawMessage(payload)}})
		return err
	}
	var codes []agent.Code
	for range 1_000 {
		codes = append(codes, agent.CodeOf(emit(string(payload), looks)))
	}
	require.Equal(t, agent.CodeStale, codes[0])
	require.Equal(t, agent.CodeQueueFull, codes[999])
	require.LessOrEqual(t, looks.Spent(), match.Looks+100_000, "only the last may be counted beyond")
	err := asError(emit(`{}`, looks))
	require.Equal(t, agent.CodeQueueFull, err.Code)
	require.True(t, err.Retryable)
	require.NoError(t, emit(`{}`, looks.Renew(match.Looks)), "the next task compares it")

	// One that can't be compared in any task is refused for good.
	huge := "[" + many(30_000, "1") + "]"
	err = asError(emit(huge, looks.Renew(match.Looks)))
	require.Equal(t, agent.CodeStale, err.Code)
	require.False(t, err.Retryable)
	require.ErrorContains(t, err, "too many parts")
}

// A daemon that parks has its queue compared within the task's budget: what is left over waits
// on, and the model is told.
func TestADaemonsQueueIsComparedWithinABudget(t *testing.T) {
	many := "[" + strings.TrimSuffix(strings.Repeat("1,", 9_000), ",") + "]"
	lines := []string{`begin watch`, `opened {"daemon":{},"tools":["await_resumption"]}`}
	for range 10 {
		lines = append(lines, `emit {"topic":"paid","payload":`+many+`}`)
	}
	d := played(t, append(lines, `emit {"topic":"paid","payload":{}}`, `calls await_resumption {"reason":"not paid","conditions":{"event":{"topic":"paid","match":{"type":"object"}}}}`)...)
	require.Nil(t, d.state.Park.Met)
	require.Len(t, d.state.Messages.Emitted, 11, "none is lost")
	log, err := json.Marshal(d.state.Log.Tail)
	require.NoError(t, err)
	require.Contains(t, string(log), "10 events that waited already have too many parts")
}

// Conditions that can't be kept arm nothing: the call is rejected, the model reads why, and the
// run goes on with its next turn. It is never suspended without what would wake it (HL-14).
func TestAParkThatCantBeKept(t *testing.T) {
	// The conditions are about as long as their reader takes. Each "<" takes six bytes in the state.
	park := func(n int) string {
		return `calls await_resumption {"reason":"wait","conditions":{"after":"1h","on_timeout":"resume_with_input","input":"` + strings.Repeat("<", n) + `"}}`
	}
	lines := []string{`begin watch`, `opened {"daemon":{},"tools":["await_resumption"]}`}
	for range 6 { // wait for the daemon beside it
		lines = append(lines, `emit {"topic":"paid","payload":"`+strings.Repeat("x", 60<<10)+`"}`)
	}
	p := played(t, append(lines, park(64_000))...)
	var results []string
	for _, e := range p.state.Log.Tail {
		require.NotEqual(t, agent.EventRunSuspended, e.Type)
		if e.Message != nil && e.Message.Role == agent.RoleTool {
			results = append(results, string(e.Message.Parts[0].Result.Status), e.Message.Parts[0].Result.Text)
		}
	}
	require.Equal(t, []string{string(agent.CallRejected), tooLongToWait}, results)
	require.Nil(t, p.state.Park)
	require.Equal(t, agent.StatusRunning, p.state.Status())
	require.True(t, p.state.Turn.inFlight(), "its next turn")
	require.Equal(t, 2, p.state.Turn.N)

	p.line(park(10))
	require.NotNil(t, p.state.Park, "shorter ones are kept")
}
