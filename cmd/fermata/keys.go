package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// makeKeys is what to do where a variable's keys can't be read.
const makeKeys = "set it as in %s=$(fermata codec key k1), several with commas between them, or unset it"

// checkKeys reads the keys of the environment, and reports whether those that encrypt can be
// used: without them neither the server nor the store is to be had.
func (d *doctor) checkKeys() bool {
	_, err := encryptionKeys()
	if err != nil {
		d.failed("keys", err, fmt.Sprintf(makeKeys, encryptionVariable))
	}
	for _, p := range []pair{approvalKeys, exportKeys} {
		if _, err := p.verifiers(); err != nil {
			d.failed("keys", err, fmt.Sprintf("make a pair with \"%s\", give the worker %s alone, or unset it", p.make(), p.public))
		}
	}
	return err == nil
}

// checkApprovers finds rules that name approvers where no token can be proven: what they ask
// about is decided by its deadline alone.
func (d *doctor) checkApprovers() {
	if text := unproven(d.file); text != "" {
		d.found("approval", warning, text, unprovenRemedy)
	}
	if secret.IsSet(approvalKeys.public) {
		return
	}
	remedy := approvalKeys.make() + ", and give the worker " + approvalKeys.public + " alone"
	for _, name := range slices.Sorted(maps.Keys(d.file.Asks())) {
		if len(d.file.Asks()[name].Approvers) > 0 {
			d.found("keys", warning, fmt.Sprintf("the tool %s names approvers, and %s is not set: a worker with this environment takes no decision of theirs", name, approvalKeys.public), remedy)
		}
	}
	for _, def := range d.file.Agents {
		if slices.ContainsFunc(def.Rules, func(r agent.Rule) bool { return len(r.Approvers) > 0 }) {
			d.found("keys", warning, fmt.Sprintf("rules of %s name approvers, and %s is not set: a worker with this environment takes no decision of theirs", def.Name, approvalKeys.public), remedy)
		}
	}
}

// unproven says what approvals are worth that anybody may give, where the worker starts
// programs that could; empty where there is nothing to say.
func unproven(f *agentsfile.File) string {
	agents, programs := f.Unproven()
	if len(agents) == 0 {
		return ""
	}
	return fmt.Sprintf("%s may approve what %s asks for, if they reach Temporal: its rules name no approvers", strings.Join(programs, " and "), strings.Join(agents, " or "))
}

const unprovenRemedy = "name approvers in these rules, who prove it with a token, or run the worker where its programs can't reach Temporal"
