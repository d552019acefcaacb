package loop

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// The parent hears of a suspension again if it is another, of another kind or owner, asks
// for more, or if half of what is open is decided.
func TestWhatIsNewsToTheParent(t *testing.T) {
	p, n := Parent{}, agent.SuspensionSummary{ID: "s-1", Kind: agent.SuspensionInputRequired, Owner: agent.OwnerOperator, Open: 8}
	require.True(t, p.isNews(n))
	p.reported(n, 9)
	for name, c := range map[string]struct {
		change func(*agent.SuspensionSummary)
		news   bool
	}{
		"the same":     {func(*agent.SuspensionSummary) {}, false},
		"another":      {func(n *agent.SuspensionSummary) { n.ID = "s-2" }, true},
		"held":         {func(n *agent.SuspensionSummary) { n.Kind = agent.SuspensionHeld }, true},
		"more":         {func(n *agent.SuspensionSummary) { n.Open = 9 }, true},
		"a few fewer":  {func(n *agent.SuspensionSummary) { n.Open = 5 }, false},
		"half is left": {func(n *agent.SuspensionSummary) { n.Open = 4 }, true},
	} {
		now := n
		c.change(&now)
		require.Equal(t, c.news, p.isNews(now), name)
	}
	p.reportedResumed()
	require.True(t, p.isNews(n))
}

// A run that rests looks for its parent ever more seldom.
func TestLooksForTheParent(t *testing.T) {
	p, since := Parent{}, time.Unix(0, 0)
	for rested, wait := range map[time.Duration]time.Duration{time.Second: parentCheckFirst, time.Hour: time.Hour, 100 * time.Hour: parentCheckMax} {
		p.startCheck()
		p.parentAlive(since, since.Add(rested))
		require.False(t, p.Checking)
		require.Equal(t, wait, p.CheckAt.Sub(since.Add(rested)))
	}
}

// Nobody is asked about a check's call, so a run whose check calls a tool that a rule of an agent above
// denies, or asks about, fails before its first turn.
func TestInheritedRulesBoundChecks(t *testing.T) {
	tests, build := agent.Check{Name: "tests", Tool: "run_tests"}, agent.Check{Name: "build", Command: "make"}
	own := agent.Check{Name: "own", Tool: "run_tests", Arguments: json.RawMessage(`{}`)}
	allow, otherwise := agent.Rule{Do: agent.RulingAllow, Tools: []string{"run_tests"}}, agent.Rule{Do: agent.RulingAsk, Otherwise: true}
	for name, tt := range map[string]struct {
		rules  []agent.Rule
		check  agent.Check
		denied bool
	}{
		"denied":                         {[]agent.Rule{{Do: agent.RulingDeny, Tools: []string{"run_*"}}}, tests, true},
		"asked about":                    {[]agent.Rule{{Do: agent.RulingAsk, Tools: []string{"shell_run"}}}, build, true},
		"another tool":                   {[]agent.Rule{{Do: agent.RulingDeny, Tools: []string{"shell_run"}}}, tests, false},
		"for some arguments":             {[]agent.Rule{{Do: agent.RulingDeny, Tools: []string{"run_tests"}, Arguments: json.RawMessage(`{}`)}}, tests, true},
		"writers":                        {[]agent.Rule{{Do: agent.RulingDeny, Class: agent.ClassWrites}}, tests, false},
		"a writer, perhaps":              {[]agent.Rule{{Do: agent.RulingDeny, Class: agent.ClassWrites}}, own, true},
		"allowed, and all else asks":     {[]agent.Rule{allow, otherwise}, tests, false},
		"not allowed, and all else asks": {[]agent.Rule{allow, otherwise}, build, true},
		"the agent's own rules":          {nil, tests, false},
	} {
		d := &drive{t: t}
		d.step(Begin{Session: "s/b-1", Run: "r", Start: agent.Start{Agent: "b", Input: agent.Input{Text: "go"}}, ChildStart: &wire.ChildStart{Parent: wire.Parent{Session: "s", Run: "p"}, Depth: 1, Rules: tt.rules}})
		spec := agent.Spec{Definition: agent.Definition{Name: "b", Rules: []agent.Rule{{Do: agent.RulingDeny}}, Verify: agent.Verify{Checks: []agent.Check{tt.check}}}.WithDefaults()}
		d.step(Opened{Spec: &spec})
		require.Equal(t, tt.denied, d.state.End.Outcome != nil, name)
		if tt.denied {
			require.ErrorIs(t, d.state.End.Outcome.Error, agent.CodeDenied, name)
			require.ErrorContains(t, d.state.End.Outcome.Error, "a rule of an agent above", name)
		}
	}
}

// An answer that is too long for the agent that looks at it is vetoed, and the agent is not started.
func TestAnAgentDoesNotSeeAPartOfAnAnswer(t *testing.T) {
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a", Model: "m", Verify: agent.Verify{Checks: []agent.Check{{Name: "review", Agent: "b", Task: "Look."}}}}})
	d.says(strings.Repeat("x", maxChecked+1), nil)
	require.Nil(t, d.state.Checks.Proposal)
	require.Nil(t, d.state.Checks.Current)
	require.Equal(t, 1, d.state.Checks.Vetoes)
	require.Equal(t, 2, d.state.Turn.N, "the model goes on")
	d.says(strings.Repeat("x", maxChecked), nil)
	require.NotNil(t, d.state.Checks.Current, "the agent looks")
}
