package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// ours begins the names of this program's variables.
const ours = "FERMATA_"

// variables are all variables of this program, and secrets are those that may be in a file,
// which the name with [secret.FileSuffix] names.
var (
	secrets = []string{
		storeVariable, liveVariable, encryptionVariable, codecVariable, tokenVariable, auditKeyVariable,
		approvalKeys.public, approvalKeys.private, exportKeys.public, exportKeys.private,
	}
	variables = slices.Concat(secrets, []string{auditVariable, plainVariable, policyVariable})
)

// elses are variables with our beginning that others set: Kubernetes for services that are
// called fermata or fermata-…, and this project's tests.
var elses = regexp.MustCompile(`^FERMATA_((.+_)?(SERVICE_(HOST|PORT(_.+)?)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)|TESTS?(_.+)?|E2E_.+|UPDATE|KEEP_REQUESTS|PLANTED|POSTGRES_URL)$`)

// odd is something about the environment that its owner should know, and what to do.
type odd struct{ check, text, todo string }

// oddities are what a worker with this environment does not heed, or should not have. They
// show no value.
func oddities() (list []odd) {
	known := slices.Clone(variables)
	for _, name := range secrets {
		known = append(known, name+secret.FileSuffix)
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, ours) || slices.Contains(known, name) || elses.MatchString(name) {
			continue
		}
		text := fmt.Sprintf("%.100s is no variable of fermata, and nothing reads it", name)
		if meant := agentsfile.Nearest(name, known); meant != "" {
			text += "; is " + meant + " meant?"
		}
		list = append(list, odd{"variables", text, "correct its name, or unset it"})
	}
	for _, p := range []keyPair{approvalKeys, exportKeys} {
		if !secret.IsSet(p.private) {
			continue
		}
		name, whom := p.private, "speak as any approver"
		if os.Getenv(name) == "" {
			name += secret.FileSuffix
		}
		if p == exportKeys {
			whom = "sign any export"
		}
		list = append(list, odd{"keys", fmt.Sprintf("%s is set: who reads it may %s. A worker verifies with %s alone", name, whom, p.public), "unset it where workers run, and keep the private key elsewhere"})
	}
	slices.SortStableFunc(list, func(a, b odd) int { return cmp.Compare(a.check, b.check) })
	return list
}

// warnOfEnvironment says what of its environment a worker does not heed, or should not have.
func (c *cli) warnOfEnvironment() {
	for _, o := range oddities() {
		c.slogger().Warn(o.text, "todo", o.todo)
	}
}
