package agent

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// An agent that works in a loop has the tool await_resumption unnamed, and each agent can
// turn it on or off (HL-17, HL-18).
func TestWhoHasAwaitResumption(t *testing.T) {
	on, off := true, false
	for name, c := range map[string]struct {
		def  Definition
		want bool
	}{
		"a tool":            {Definition{Tools: []string{"look"}}, true},
		"an MCP server":     {Definition{Tools: []string{"mcp:bank"}}, true},
		"a skill":           {Definition{Skills: []string{"*"}}, true},
		"a client tool":     {Definition{ClientTools: []ToolSpec{{Name: "camera"}}}, true},
		"a sub-agent":       {Definition{Agents: []SubAgent{{Agent: "b"}}}, true},
		"a notebook":        {Definition{Notebook: &NotebookPolicy{}}, true},
		"completion tool":   {Definition{Completion: CompletionTool}, true},
		"a sentinel":        {Definition{DoneSentinel: "##DONE##"}, true},
		"a daemon":          {Definition{Daemon: &Daemon{}}, true},
		"a check":           {Definition{Verify: Verify{Checks: []Check{{Name: "c", Tool: "look"}}}}, true},
		"a hook":            {Definition{Hooks: Hooks{AfterTurn: TurnHooks{Checks: []Check{{Name: "c", Tool: "look"}}}}}, true},
		"an output":         {Definition{Output: []byte(`{"type":"object"}`)}, false},
		"a profile":         {Definition{Profile: ProfileResearcher, Tools: []string{"look"}}, true},
		"nothing":           {Definition{}, false},
		"one turn":          {Definition{Tools: []string{"look"}, Limits: Limits{OwnTurns: 1}}, false},
		"one turn in all":   {Definition{Tools: []string{"look"}, Limits: Limits{Turns: 1}}, false},
		"a completer":       {Definition{Tools: []string{"look"}, Profile: ProfileCompleter}, false},
		"a flow":            {Definition{Model: FlowModel, Tools: []string{"look"}}, false},
		"nothing, on":       {Definition{AwaitResumption: &on}, true},
		"a completer, on":   {Definition{Profile: ProfileCompleter, AwaitResumption: &on}, true},
		"a tool, off":       {Definition{Tools: []string{"look"}, AwaitResumption: &off}, false},
		"a daemon, off":     {Definition{Daemon: &Daemon{}, AwaitResumption: &off}, false},
		"named by itself":   {Definition{Tools: []string{AwaitResumptionTool}, Profile: ProfileCompleter}, true},
		"named, and is on":  {Definition{Tools: []string{AwaitResumptionTool}, AwaitResumption: &on}, true},
		"the defaults of d": {Definition{Tools: []string{"look"}}.WithDefaults(), true},
	} {
		named := slices.Clone(c.def.Tools)
		got := c.def.WithDefaults()
		n := 0
		for _, tool := range got.Tools {
			if tool == AwaitResumptionTool {
				n++
			}
		}
		want := 0
		if c.want {
			want = 1
		}
		require.Equal(t, want, n, name)
		require.Equal(t, named, c.def.Tools, "%s: the caller's list stays", name)
	}
}

// An agent that names the tool and turns it off is refused.
func TestAwaitResumptionNamedAndOff(t *testing.T) {
	d := Definition{Name: "a", Model: "m", Tools: []string{AwaitResumptionTool}, AwaitResumption: new(bool)}
	for _, d := range []Definition{d, d.WithDefaults()} {
		err := d.Check()
		require.ErrorIs(t, err, CodeInvalidInput)
		require.ErrorContains(t, err, "leave one of them out")
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "await_resumption", e.Path)
	}
	d.Tools = []string{"look"}
	require.NoError(t, d.WithDefaults().Check())
}
