package agent

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// The default of an agent is its last rule; both are checked.
func TestDefaultOfRules(t *testing.T) {
	d := Definition{Name: "a", Model: "m", Rules: []Rule{{Do: Allow, Class: ClassReads}}, Default: Ask}
	require.NoError(t, d.Check())
	d = d.WithDefaults().WithDefaults()
	require.NoError(t, d.Check())
	require.Equal(t, []Rule{{Do: Allow, Class: ClassReads}, {Do: Ask, Otherwise: true}}, d.Rules)
	require.Equal(t, []Rule(nil), Definition{Default: Allow}.WithDefaults().Rules)
	for path, d := range map[string]Definition{
		"default":   {Default: "maybe"},
		"otherwise": {Rules: []Rule{{Do: Ask, Otherwise: true, Tools: []string{"x"}}}},
	} {
		d.Name, d.Model = "a", "m"
		require.Equal(t, path, faultyField(d.Check()))
		require.Error(t, d.WithDefaults().Check())
	}
	require.ErrorContains(t, Asking{Approvers: []string{}}.Check(), "approvers is empty: name some")
	for _, rules := range [][]Rule{{{Do: Ask, Otherwise: true}, {Do: Deny}}, {{Do: Ask, Otherwise: true}, {Do: Ask, Otherwise: true}}} {
		require.ErrorContains(t, Definition{Name: "a", Model: "m", Rules: rules}.Check(), "otherwise belongs to the last rule")
	}
	require.Error(t, Definition{Name: "a", Model: "m", Default: Deny, Rules: []Rule{{Do: Ask, Otherwise: true}}}.Check())
	otherwise := Rule{Do: Deny, Otherwise: true}
	require.True(t, otherwise.Covers(ToolSpec{Name: "pay"}))
	require.False(t, otherwise.Covers(ToolSpec{Name: FinishTool, By: ByRuntime}))
}

// In JSON true asks anybody.
func TestAskingInJSON(t *testing.T) {
	var got struct{ Ask *Asking }
	require.NoError(t, json.Unmarshal([]byte(`{"ask":true}`), &got))
	require.Equal(t, &Asking{}, got.Ask)
	require.NoError(t, json.Unmarshal([]byte(`{"ask":{"approvers":["ana"],"deadline":"1h"}}`), &got))
	require.Equal(t, Rule{Do: Ask, Approvers: []string{"ana"}, Patience: Patience{Deadline: Duration(3600e9)}}, got.Ask.Rule())
	for _, bad := range []string{`{"ask":false}`, `{"ask":{"tools":[]}}`, `{"ask":"yes"}`} {
		require.ErrorContains(t, json.Unmarshal([]byte(bad), &got), "ask wants true", bad)
	}
	require.Error(t, Asking{Confirm: "x"}.Check())
}

func faultyField(err error) string {
	e, _ := errors.AsType[*Error](err)
	return e.Path
}
