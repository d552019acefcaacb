package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/fermata-agents/fermata/agent"
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
	if os.Getenv(keysVariable) != "" {
		return
	}
	for _, def := range d.file.Agents {
		if slices.ContainsFunc(def.Rules, func(r agent.Rule) bool { return len(r.Approvers) > 0 }) {
			d.found("keys", warning, fmt.Sprintf("rules of %s name approvers, and %s is not set: a worker with this environment takes no decision of theirs", def.Name, keysVariable),
				fmt.Sprintf("export %s=k1:$(openssl rand -base64 32)", keysVariable))
		}
	}
}
