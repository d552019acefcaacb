package agent

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// The default of an agent is its last rule; both are checked.
func TestDefaultOfRules(t *testing.T) {
	d := Definition{Name: "a", Model: "m", Rules: []Rule{{Do: RulingAllow, Class: ClassReads}}, Default: RulingAsk}
	require.NoError(t, d.Check())
	d = d.WithDefaults().WithDefaults()
	require.NoError(t, d.Check())
	require.Equal(t, []Rule{{Do: RulingAllow, Class: ClassReads}, {Do: RulingAsk, Otherwise: true}}, d.Rules)
	require.Equal(t, []Rule(nil), Definition{Default: RulingAllow}.WithDefaults().Rules)
	for path, d := range map[string]Definition{
		"default":   {Default: "maybe"},
		"otherwise": {Rules: []Rule{{Do: RulingAsk, Otherwise: true, Tools: []string{"x"}}}},
	} {
		d.Name, d.Model = "a", "m"
		require.Equal(t, path, faultyField(d.Check()))
		require.Error(t, d.WithDefaults().Check())
	}
	require.ErrorContains(t, ToolApproval{Approvers: []string{}}.Check(), "approvers is empty: name some")
	for _, rules := range [][]Rule{{{Do: RulingAsk, Otherwise: true}, {Do: RulingDeny}}, {{Do: RulingAsk, Otherwise: true}, {Do: RulingAsk, Otherwise: true}}} {
		require.ErrorContains(t, Definition{Name: "a", Model: "m", Rules: rules}.Check(), "otherwise belongs to the last rule")
	}
	require.Error(t, Definition{Name: "a", Model: "m", Default: RulingDeny, Rules: []Rule{{Do: RulingAsk, Otherwise: true}}}.Check())
	otherwise := Rule{Do: RulingDeny, Otherwise: true}
	require.True(t, otherwise.Covers(ToolSpec{Name: "pay"}))
	require.False(t, otherwise.Covers(ToolSpec{Name: FinishTool, Executor: ExecutorRuntime}))
}

// In JSON true asks anybody.
func TestAskingInJSON(t *testing.T) {
	var got struct{ Ask *ToolApproval }
	require.NoError(t, json.Unmarshal([]byte(`{"ask":true}`), &got))
	require.Equal(t, &ToolApproval{}, got.Ask)
	require.NoError(t, json.Unmarshal([]byte(`{"ask":{"approvers":["ana"],"deadline":"1h"}}`), &got))
	require.Equal(t, Rule{Do: RulingAsk, Approvers: []string{"ana"}, AnswerTimeouts: AnswerTimeouts{Deadline: Duration(3600e9)}}, got.Ask.Rule())
	for _, bad := range []string{`{"ask":false}`, `{"ask":{"tools":[]}}`, `{"ask":"yes"}`} {
		require.ErrorContains(t, json.Unmarshal([]byte(bad), &got), "approval wants true", bad)
	}
	require.Error(t, ToolApproval{Confirm: "x"}.Check())
}

func faultyField(err error) string {
	e, _ := errors.AsType[*Error](err)
	return e.Path
}
