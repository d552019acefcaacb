package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/internal/durable"
)

// maxPolicy bounds the file, in bytes.
const maxPolicy = 1 << 20

// policyFlag gives a command that works the flag --policy.
func (c *cli) policyFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.policy, "policy", "", "file that says who may say what to runs (default "+env.Policy+")")
}

// readPolicy reads the policy of this process; nil if no file is named.
func (c *cli) readPolicy() (agent.Policy, error) {
	path := c.policy
	if path == "" {
		path = os.Getenv(env.Policy)
	}
	if path == "" {
		return nil, nil
	}
	raw, err := readFile(path, maxPolicy)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the policy can't be read: %w", err)
	}
	policy, err := policyOf(raw)
	if err == nil {
		err = policy.Check()
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the policy %s: %w", path, err)
	}
	return policy, nil
}

// policyOf reads a policy strictly: what is misspelt would bind nothing.
func policyOf(raw []byte) (agent.Policy, error) {
	var written any
	if err := yaml.Unmarshal(raw, &written); err != nil {
		return nil, err
	}
	text, err := json.Marshal(written)
	if err != nil {
		return nil, err
	}
	var file struct {
		Policy *agent.Policy `json:"policy"`
	}
	if written != nil && string(text) != `{"policy":null}` {
		if err := durable.Decode(text, &file, maxPolicy); err != nil {
			return nil, err
		}
	}
	if file.Policy == nil || *file.Policy == nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "it has no policy: write policy: with a list of verbs, agents and principals below, or [] to bind nothing")
	}
	return *file.Policy, nil
}

// unknownPolicyAgents says which permits name an agent that the file does not have: if it is misspelt,
// the one that was meant is bound by nothing.
func unknownPolicyAgents(policy agent.Policy, f *agentsfile.File) (list []string) {
	for i, p := range policy {
		for _, name := range p.Agents {
			if !slices.ContainsFunc(f.Agents, func(def agent.Definition) bool { return agent.MatchesAny([]string{name}, def.Name) }) {
				list = append(list, fmt.Sprintf("policy[%d] names agent %q, and no agent here is called so", i, name))
			}
		}
	}
	return list
}

const unknownPolicyAgentsRemedy = "correct the name, unless agents of other workers are meant"
