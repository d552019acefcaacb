package doctor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/auditor"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// makeKeys says what to do if a variable's keys can't be read.
const makeKeys = "set it as in %s=$(fermata codec key k1), several with commas between them, or unset it"

// checkKeys reads the keys of the environment, and reports whether the encryption keys
// can be used. Without them neither the server nor the store can be read.
func (d *examination) checkKeys() bool {
	ring, err := env.Keyring()
	if err != nil {
		d.failed("keys", err, fmt.Sprintf(makeKeys, env.Encryption))
	}
	switch until, err := env.PlainUntil(); {
	case err != nil:
		d.failed("keys", err, "")
	case ring != nil && time.Now().Before(until):
		d.found("keys", Warning, fmt.Sprintf("%s is %s: until then anyone who may write to the namespace can forge data as if there were no keys", env.Plain, os.Getenv(env.Plain)), "set it to the present time, or unset it")
	}
	for _, p := range []env.KeyPair{env.ApprovalKeys, env.ExportKeys} {
		if _, err := p.Verifiers(); err != nil {
			d.failed("keys", err, fmt.Sprintf("make a pair with \"%s\", give the worker %s alone, or unset it", p.Make(), p.Public))
		}
	}
	// They never make the keys unusable, so they don't change the result.
	for _, o := range env.Oddities() {
		d.found(o.Check, Warning, o.Text, o.Todo)
	}
	return err == nil
}

// checkSecurity lists which measures of docs/security.md a worker with this environment
// and agents file would lack.
func (d *examination) checkSecurity() {
	if d.file == nil {
		return
	}
	var there, missing []string
	for _, one := range []struct {
		what, by string
		is       bool
	}{
		{"encryption keys", env.Encryption, secret.IsSet(env.Encryption)},
		{"approval keys", env.ApprovalKeys.Public, secret.IsSet(env.ApprovalKeys.Public)},
		{"a policy", env.Policy, d.Policy != "" || os.Getenv(env.Policy) != ""},
		{"an audit", env.Audit, os.Getenv(env.Audit) != ""},
		{"a daily limit", "daily in " + filepath.Base(d.file.Path), d.file.Daily != (agent.DailyLimits{})},
	} {
		if one.is {
			there = append(there, one.what)
		} else {
			missing = append(missing, fmt.Sprintf("%s (%s)", one.what, one.by))
		}
	}
	if len(missing) > 0 {
		d.found("security", Skipped, "not set up here: "+strings.Join(missing, ", "), "see which of them you need: \"What to set\" in docs/security.md")
		return
	}
	last := len(there) - 1
	d.found("security", OK, strings.Join(there[:last], ", ")+" and "+there[last]+" are set up", "")
}

// checkApprovers finds rules that name approvers although no token can be verified: their
// requests are decided only by deadlines.
func (d *examination) checkApprovers() {
	if text := localworker.UnprovenApprovals(d.file); text != "" {
		d.found("approval", Warning, text, localworker.UnprovenRemedy)
	}
	if d.namesApprovers() && !secret.IsSet(env.Encryption) {
		d.found("approval", Warning, "anyone who may write to the namespace can bypass approvers: without encryption keys they can forge the result of a run's step", "set "+env.Encryption+", or let only workers and approvers write to the namespace")
	}
	if secret.IsSet(env.ApprovalKeys.Public) {
		return
	}
	remedy := env.ApprovalKeys.Make() + ", and give the worker " + env.ApprovalKeys.Public + " alone"
	for _, name := range slices.Sorted(maps.Keys(d.file.Approvals())) {
		if len(d.file.Approvals()[name].Approvers) > 0 {
			d.found("keys", Warning, fmt.Sprintf("the tool %s names approvers, and %s is not set: a worker with this environment accepts none of their decisions", name, env.ApprovalKeys.Public), remedy)
		}
	}
	for _, w := range d.file.Flows {
		if _, named := w.Written.Approvals(); named {
			d.found("keys", Warning, fmt.Sprintf("steps of %s name approvers, and %s is not set: a worker with this environment accepts none of their decisions", w.Definition().Name, env.ApprovalKeys.Public), remedy)
		}
	}
	for _, def := range d.file.Definitions() {
		if slices.ContainsFunc(def.Rules, func(r agent.Rule) bool { return len(r.Approvers) > 0 }) {
			d.found("keys", Warning, fmt.Sprintf("rules of %s name approvers, and %s is not set: a worker with this environment accepts none of their decisions", def.Name, env.ApprovalKeys.Public), remedy)
		}
	}
}

// namesApprovers reports whether a rule, a tool or a step of a flow has approvers.
func (d *examination) namesApprovers() bool {
	for _, ask := range d.file.Approvals() {
		if len(ask.Approvers) > 0 {
			return true
		}
	}
	for _, w := range d.file.Flows {
		if _, named := w.Written.Approvals(); named {
			return true
		}
	}
	return slices.ContainsFunc(d.file.Definitions(), func(def agent.Definition) bool {
		return slices.ContainsFunc(def.Rules, func(r agent.Rule) bool { return len(r.Approvers) > 0 })
	})
}

// checkAudit checks whether workers could add to the audit, and adds nothing.
func (d *examination) checkAudit() {
	path, key, err := env.AuditPlace()
	if err == nil && path != "" {
		err = audit.Check(path, key)
	}
	switch {
	case agent.CodeOf(err) == agent.CodeNotWritten:
		d.failed("audit", err, auditor.AuditRemedy)
	case err != nil:
		d.failed("audit", err, "")
	case path != "":
		d.found("audit", OK, path, "")
	}
}

// checkPolicy checks the policy file.
func (d *examination) checkPolicy() {
	policy, err := d.ReadPolicy()
	if err != nil {
		d.failed("policy", err, "correct the file")
		return
	}
	for _, text := range localworker.UnknownPolicyAgents(policy, d.file) {
		d.found("policy", Warning, text, localworker.UnknownPolicyAgentsRemedy)
	}
	if len(policy) > 0 && !secret.IsSet(env.ApprovalKeys.Public) {
		d.failed("policy", agent.Errorf(agent.CodeNotSetUp, "the policy binds verbs to principals, and %s is not set: a worker does not start", env.ApprovalKeys.Public), env.ApprovalKeys.Make()+", and give the worker "+env.ApprovalKeys.Public+" alone")
	}
}
