package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
)

// makeKeys is what to do where a variable's keys can't be read.
const makeKeys = "set it as in %s=k1:$(openssl rand -base64 32), several with commas between them, or unset it"

// checkKeys reads the keys of the environment, and reports whether those that encrypt can be
// used: without them neither the server nor the store is to be had.
func (d *doctor) checkKeys() bool {
	_, err := encryptionKeys()
	if err != nil {
		d.failed("keys", err, fmt.Sprintf(makeKeys, encryptionVariable))
	}
	for _, variable := range []string{keysVariable, exportKeysVariable} {
		if _, _, err := keysIn(variable); err != nil {
			d.failed("keys", err, fmt.Sprintf(makeKeys, variable))
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
	if os.Getenv(keysVariable) != "" {
		return
	}
	remedy := fmt.Sprintf("export %s=k1:$(openssl rand -base64 32)", keysVariable)
	for _, name := range slices.Sorted(maps.Keys(d.file.Asks())) {
		if len(d.file.Asks()[name].Approvers) > 0 {
			d.found("keys", warning, fmt.Sprintf("the tool %s names approvers, and %s is not set: a worker with this environment takes no decision of theirs", name, keysVariable), remedy)
		}
	}
	for _, def := range d.file.Agents {
		if slices.ContainsFunc(def.Rules, func(r agent.Rule) bool { return len(r.Approvers) > 0 }) {
			d.found("keys", warning, fmt.Sprintf("rules of %s name approvers, and %s is not set: a worker with this environment takes no decision of theirs", def.Name, keysVariable),
				remedy)
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
