package main

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// checkPolicy looks at the file that says who may say what to runs.
func (d *doctor) checkPolicy() {
	policy, err := d.host.ReadPolicy()
	if err != nil {
		d.failed("policy", err, "correct the file")
		return
	}
	for _, text := range localworker.UnknownPolicyAgents(policy, d.file) {
		d.found("policy", verdictWarning, text, localworker.UnknownPolicyAgentsRemedy)
	}
	if len(policy) > 0 && !secret.IsSet(env.ApprovalKeys.Public) {
		d.failed("policy", agent.Errorf(agent.CodeNotSetUp, "the policy binds verbs to principals, and %s is not set: no worker starts so", env.ApprovalKeys.Public), env.ApprovalKeys.Make()+", and give the worker "+env.ApprovalKeys.Public+" alone")
	}
}
