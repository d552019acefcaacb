package env

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

// ours is the prefix of this program's variables.
const ours = "FERMATA_"

// variables are all variables of this program. secrets are those that may be in a file,
// which the name with [secret.FileSuffix] names.
var (
	secrets = []string{
		Store, Live, Encryption, Codec, Token, AuditKey,
		ApprovalKeys.Public, ApprovalKeys.Private, ExportKeys.Public, ExportKeys.Private,
	}
	variables = slices.Concat(secrets, []string{Audit, Plain, Policy, SuspensionTexts})
)

// elses matches variables with our prefix that others set: Kubernetes for services called
// fermata or fermata-…, and this project's tests.
var elses = regexp.MustCompile(`^FERMATA_((.+_)?(SERVICE_(HOST|PORT(_.+)?)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)|TESTS?(_.+)?|E2E_.+|UPDATE|KEEP_REQUESTS|PLANTED|POSTGRES_URL)$`)

// odd is something about the environment that its owner should know, and what to do.
type odd struct{ Check, Text, Todo string }

// Oddities returns variables that a worker ignores or should not have. It shows no value.
func Oddities() (list []odd) {
	known := slices.Clone(variables)
	for _, name := range secrets {
		known = append(known, name+secret.FileSuffix)
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, ours) || slices.Contains(known, name) || elses.MatchString(name) {
			continue
		}
		// Cut: a name can be as long as the environment allows.
		text := fmt.Sprintf("%.100s is no variable of fermata, and nothing reads it", name)
		if meant := agentsfile.Nearest(name, known); meant != "" {
			text += "; did you mean " + meant + "?"
		}
		list = append(list, odd{"variables", text, "correct its name, or unset it"})
	}
	for _, p := range []KeyPair{ApprovalKeys, ExportKeys} {
		if !secret.IsSet(p.Private) {
			continue
		}
		name, whom := p.Private, "act as any approver"
		// Name the variable that is really set.
		if os.Getenv(name) == "" {
			name += secret.FileSuffix
		}
		if p == ExportKeys {
			whom = "sign any export"
		}
		list = append(list, odd{"keys", fmt.Sprintf("%s is set: anyone who reads it can %s. A worker verifies with %s alone", name, whom, p.Public), "unset it where workers run, and keep the private key elsewhere"})
	}
	slices.SortStableFunc(list, func(a, b odd) int { return cmp.Compare(a.Check, b.Check) })
	return list
}
