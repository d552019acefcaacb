package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestWhoMaySayWhat(t *testing.T) {
	var p agent.Policy
	require.NoError(t, json.Unmarshal([]byte(`[
		{"verbs": ["stop", "cancel"], "agents": ["pay*"], "principals": ["ana", "bo"]},
		{"verbs": ["stop"], "labels": {"team": "travel"}, "principals": ["cy"]},
		{"verbs": ["resume"], "principals": ["*"]},
		{"verbs": ["*"], "agents": ["vault"], "principals": []}
	]`), &p))
	require.NoError(t, p.Check())
	travel := map[string]string{"team": "travel", "x": "y"}
	for _, c := range []struct {
		agent  string
		labels map[string]string
		verb   agent.Verb
		who    string
		ok     bool
	}{
		{"payer", nil, agent.VerbStop, "ana", true}, {"payer", nil, agent.VerbStop, "cy", false}, {"payer", nil, agent.VerbStop, "", false},
		{"payer", travel, agent.VerbStop, "cy", true}, {"payer", travel, agent.VerbCancel, "cy", false},
		{"greeter", nil, agent.VerbStop, "", true}, {"greeter", travel, agent.VerbStop, "", false}, {"greeter", map[string]string{"team": "x"}, agent.VerbStop, "", true},
		{"greeter", nil, agent.VerbResume, "", false}, {"greeter", nil, agent.VerbResume, "whoever", true},
		{"payer", nil, agent.VerbPause, "", true}, {"vault", nil, agent.VerbPause, "ana", false}, {"vault", nil, agent.VerbApprove, "", false},
	} {
		err := p.For(c.agent).Refuses(c.labels, c.verb, c.who)
		require.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
		if err != nil {
			require.Equal(t, agent.CodeDenied, err.Code)
		}
	}
	require.ErrorContains(t, p.For("payer").Refuses(nil, agent.VerbStop, "cy"), "cy may not say it; it takes a token of ana or bo")
	require.ErrorContains(t, p.For("payer").Refuses(nil, agent.VerbStop, ""), "make one with fermata token, and say the verb with fermata and --token-file")
	nobody := p.For("vault").Refuses(nil, agent.VerbSend, "")
	require.ErrorContains(t, nobody, "nobody may say it")
	require.NotContains(t, nobody.Error(), "fermata token", "there is none to make")
}

// What can't be meant is refused: what is misspelt would bind nothing.
func TestPoliciesThatCantBeMeant(t *testing.T) {
	for text, says := range map[string]string{
		`[{"verbs":["stop"]}]`:                                    "principals is missing",
		`[{"principals":["ana"]}]`:                                "verbs is missing",
		`[{"verbs":["halt"],"principals":[]}]`:                    `"halt" is no verb`,
		`[{"verbs":["answers"],"principals":[]}]`:                 "bind answer, approve and reject",
		`[{"verbs":["stop"],"principals":[""]}]`:                  "one has no name",
		`[{"verbs":["stop"],"agents":["["],"principals":[]}]`:     "not a name or a pattern",
		`[{"verbs":["stop"],"principals":[]},{"verbs":["stop"]}]`: "policy[1]: principals is missing",
	} {
		var p agent.Policy
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		err := p.Check()
		require.ErrorIs(t, err, agent.CodeInvalidInput, text)
		require.ErrorContains(t, err, says)
	}
}
