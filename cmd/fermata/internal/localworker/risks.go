package localworker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/internal/glob"
)

// UnprovenApprovals describes approvals that anybody may give, if the worker starts
// programs that could give them; empty if there is nothing to say.
func UnprovenApprovals(f *agentsfile.File) string {
	agents, programs := f.UnprovenApprovals()
	if len(agents) == 0 {
		return ""
	}
	return fmt.Sprintf("%s may approve what %s asks for, if they reach Temporal: its rules name no approvers", strings.Join(programs, " and "), strings.Join(agents, " or "))
}

// UnprovenRemedy says what to do about [UnprovenApprovals].
const UnprovenRemedy = "name approvers in these rules, who prove it with a token, or run the worker where its programs can't reach Temporal"

// UnconfinedRemedy says what to do about programs that nothing confines.
const UnconfinedRemedy = "leave confine out, or run the worker in a container or a virtual machine of its own"

// UnconfinedPrograms says which programs nothing confines; empty if none.
func UnconfinedPrograms(f *agentsfile.File) string {
	programs := f.UnconfinedPrograms()
	if len(programs) == 0 {
		return ""
	}
	return "nothing confines " + strings.Join(programs, " and ") + ": they may do all that the worker's user may, and rewrite " + f.Path + " and what it names"
}

// UnknownPolicyAgents says which permits name an agent that the file does not have. If
// the name is misspelt, the intended agent is not restricted.
func UnknownPolicyAgents(policy agent.Policy, f *agentsfile.File) (list []string) {
	for i, p := range policy {
		for _, name := range p.Agents {
			if !slices.ContainsFunc(f.Definitions(), func(def agent.Definition) bool { return glob.MatchesAny([]string{name}, def.Name) }) {
				list = append(list, fmt.Sprintf("policy[%d] names agent %q, and no agent here is called so", i, name))
			}
		}
	}
	return list
}

// UnknownPolicyAgentsRemedy says what to do about [UnknownPolicyAgents].
const UnknownPolicyAgentsRemedy = "correct the name, unless agents of other workers are meant"

// warnOfRisks logs what the agents file and the policy leave open.
func (h *Host) warnOfRisks(f *agentsfile.File, policy agent.Policy) {
	for _, name := range UnknownPolicyAgents(policy, f) {
		h.Log.Slog().Warn(name, "todo", UnknownPolicyAgentsRemedy)
	}
	if text := UnprovenApprovals(f); text != "" {
		h.Log.Slog().Warn(text, "todo", UnprovenRemedy)
	}
	if text := UnconfinedPrograms(f); text != "" {
		h.Log.Slog().Warn(text, "todo", UnconfinedRemedy)
	}
}

// warnOfEnvironment logs variables that a worker ignores or should not have.
func (h *Host) warnOfEnvironment() {
	for _, o := range env.Oddities() {
		h.Log.Slog().Warn(o.Text, "todo", o.Todo)
	}
}
