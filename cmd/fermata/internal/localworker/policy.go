package localworker

import (
	"encoding/json"
	"os"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
	"github.com/fermata-agents/fermata/internal/durable"
)

// maxPolicy bounds the policy file, in bytes.
const maxPolicy = 1 << 20

// ReadPolicy reads the policy of this process; nil if no file is named.
func (h *Host) ReadPolicy() (agent.Policy, error) {
	path := h.Policy
	if path == "" {
		path = os.Getenv(env.Policy)
	}
	if path == "" {
		return nil, nil
	}
	raw, err := files.Read(path, maxPolicy)
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

// policyOf reads a policy strictly: a misspelt field would restrict nothing.
func policyOf(raw []byte) (agent.Policy, error) {
	// YAML becomes JSON, because the strict decoder reads JSON.
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
	// An empty file must not count as a policy that allows everything.
	if written != nil && string(text) != `{"policy":null}` {
		if err := durable.Decode(text, &file, maxPolicy); err != nil {
			return nil, err
		}
	}
	// An explicit [] is a decision; a missing list is a mistake.
	if file.Policy == nil || *file.Policy == nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "it has no policy: write policy: with a list of verbs, agents and principals below, or [] to bind nothing")
	}
	return *file.Policy, nil
}
