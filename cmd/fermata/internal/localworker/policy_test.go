package localworker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// A policy is read strictly: what is misspelt would bind nothing.
func TestThePolicyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	read := func(text string) (agent.Policy, error) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return (&Host{Policy: path}).ReadPolicy()
	}
	policy, err := read("policy:\n  - {verbs: [stop, cancel], agents: [\"pay*\"], labels: {team: travel}, principals: [ana@acme.com]}\n  - {verbs: [\"*\"], agents: [vault], principals: []}\n")
	require.NoError(t, err)
	require.Equal(t, agent.Policy{
		{Verbs: []agent.Verb{agent.VerbStop, agent.VerbCancel}, Agents: []string{"pay*"}, Labels: map[string]string{"team": "travel"}, Principals: []string{"ana@acme.com"}},
		{Verbs: []agent.Verb{agent.EveryVerb}, Agents: []string{"vault"}, Principals: []string{}},
	}, policy)
	policy, err = read("policy: []\n")
	require.NoError(t, err)
	require.NotNil(t, policy, "it binds nothing, and what runs recorded counts no more")
	for text, says := range map[string]string{
		"":                           "it has no policy",
		"policy:\n":                  "it has no policy",
		"policies: []\n":             "policies is not known here",
		"policy: [{verb: [stop]}]\n": "policy[0].verb",
		"policy: [{verbs: [stop], principals: ana}]\n": "policy[0].principals",
		"policy: [{verbs: [stop]}]\n":                  "policy[0]: principals is missing",
		"policy: [{verbs: [halt], principals: [a]}]\n": `"halt" is no verb`,
		"policy: [\n": "policy.yaml",
	} {
		_, err := read(text)
		require.ErrorIs(t, err, agent.CodeInvalidInput, text)
		require.ErrorContains(t, err, says, text)
	}
	t.Setenv(env.Policy, path+".none")
	_, err = (&Host{}).ReadPolicy()
	require.ErrorContains(t, err, "the policy can't be read")
	t.Setenv(env.Policy, "")
	policy, err = (&Host{}).ReadPolicy()
	require.NoError(t, err)
	require.Nil(t, policy)
}
