package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
)

type payIn struct {
	To     string  `json:"to" jsonschema:"who is paid"`
	Amount float64 `json:"amount"`
	Note   string  `json:"note,omitempty"`
}

func pay(_ context.Context, c *tool.Call, in payIn) (map[string]string, error) {
	switch {
	case in.Amount > 100:
		return nil, tool.Refuse("at most 100 may be paid")
	case in.To == "nobody":
		return nil, errors.New("no such account")
	}
	return map[string]string{"paid": in.To, "key": c.Key}, nil
}

func TestTheSchemaComesFromTheTypes(t *testing.T) {
	p := tool.New("pay", "pays", pay, nil)
	require.NoError(t, p.Err())
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["to","amount"],"properties":{
		"to":{"type":"string","description":"who is paid"},"amount":{"type":"number"},"note":{"type":"string"}}}`, string(p.Spec().Input))
}

func TestArgumentsAreCheckedBeforeTheCall(t *testing.T) {
	called := false
	p := tool.New("pay", "", func(context.Context, *tool.Call, payIn) (string, error) { called = true; return "", nil }, nil)
	for _, arguments := range []string{`{}`, `{"to":"a"}`, `{"to":1,"amount":2}`, `{"to":"a","amount":2,"x":1}`, `[]`, `nope`} {
		_, err := p.Call(context.Background(), &tool.Call{Arguments: json.RawMessage(arguments)})
		require.ErrorIs(t, err, agent.CodeDenied, arguments)
	}
	require.False(t, called)

	// Where nothing is required, what is no object is still refused.
	look := tool.New("look", "", func(context.Context, *tool.Call, struct{}) (string, error) { called = true; return "", nil }, nil)
	for _, arguments := range []string{`null`, `[]`, ``} {
		_, err := look.Call(context.Background(), &tool.Call{Arguments: json.RawMessage(arguments)})
		require.ErrorIs(t, err, agent.CodeDenied, arguments)
	}
	require.False(t, called)
}

func TestResultsAndFailures(t *testing.T) {
	p := tool.New("pay", "", pay, nil)
	call := func(arguments string) (string, error) {
		return p.Call(context.Background(), &tool.Call{Key: "run/t1.1", Arguments: json.RawMessage(arguments)})
	}
	text, err := call(`{"to":"ana","amount":1}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"paid":"ana","key":"run/t1.1"}`, text)
	_, err = call(`{"to":"ana","amount":101}`)
	require.ErrorIs(t, err, agent.CodeDenied)
	_, err = call(`{"to":"nobody","amount":1}`)
	require.EqualError(t, err, "no such account")
}

func TestFaultyToolsSayWhatIsWrong(t *testing.T) {
	for name, broken := range map[string]tool.Tool{
		"a bad name":        tool.New("no spaces", "", pay, nil),
		"a number as input": tool.New("n", "", func(context.Context, *tool.Call, int) (int, error) { return 0, nil }, nil),
		"a channel":         tool.New("c", "", func(context.Context, *tool.Call, struct{ C chan int }) (int, error) { return 0, nil }, nil),
		"the zero tool":     {},
	} {
		require.ErrorIs(t, broken.Err(), agent.CodeInvalidInput, name)
	}
}

// answered makes a call again, with an answer, as the runtime does. ExampleCall_Ask uses it.
func answered(c tool.Call, text string) *tool.Call {
	return c.With(&toolcall.Hooks{Answers: []agent.ToolAnswer{{Text: text}}})
}

func TestWhatTemporalCalls(t *testing.T) {
	at := tool.ActivityTarget{Type: "Pay", TaskQueue: "bank", Heartbeat: time.Second}
	p := tool.Activity[payIn]("pay", "pays", at, &tool.Options{Attempts: 3, Secrets: []string{"to"}})
	require.NoError(t, p.Err())
	require.Equal(t, &agent.TemporalCall{Kind: agent.TemporalActivity, Type: "Pay", TaskQueue: "bank", Heartbeat: agent.Duration(time.Second)}, p.Spec().Temporal)
	require.Equal(t, 3, p.Spec().Attempts)
	require.JSONEq(t, string(tool.New("pay", "pays", pay, nil).Spec().Input), string(p.Spec().Input))
	_, err := p.Call(t.Context(), &tool.Call{Arguments: json.RawMessage(`{"to":"ada","amount":1}`)})
	require.ErrorIs(t, err, agent.CodeDenied, "only a run can call it")

	long := strings.Repeat("q", 201)
	for says, wrong := range map[string]tool.Tool{
		"needs a type":                  tool.Activity[payIn]("pay", "", tool.ActivityTarget{TaskQueue: "bank"}, nil),
		"needs a task queue":            tool.Workflow[payIn]("pay", "", tool.WorkflowTarget{Type: "Pay", TaskQueue: " "}, nil),
		"needs an operation":            tool.Nexus[payIn]("pay", "", tool.NexusTarget{Endpoint: "bank", Service: "pay"}, nil),
		"needs an endpoint":             tool.Nexus[payIn]("pay", "", tool.NexusTarget{Service: "pay", Operation: "pay"}, nil),
		"never local":                   tool.Activity[payIn]("pay", "", at, &tool.Options{Local: true}),
		"has 201 bytes":                 tool.Workflow[payIn]("pay", "", tool.WorkflowTarget{Type: "Pay", TaskQueue: long}, nil),
		"timeouts must be positive":     tool.Activity[payIn]("pay", "", tool.ActivityTarget{Type: "Pay", TaskQueue: "bank", StartTimeout: -1}, nil),
		"its input must be a struct or": tool.Activity[string]("pay", "", at, nil),
		"use 1 to 64 letters":           tool.Activity[payIn]("pay!", "", at, nil),
	} {
		require.ErrorIs(t, wrong.Err(), agent.CodeInvalidInput)
		require.ErrorContains(t, wrong.Err(), says)
	}
}
