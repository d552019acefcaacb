package agent

import "slices"

// checkStateless refuses what a stateless agent can't have: it needs a session, or a run below, whose
// session would be stored.
func (d Definition) checkStateless() error {
	if !d.Stateless {
		return nil
	}
	has := func(tool string) bool { return slices.Contains(d.Tools, tool) }
	asksAgent := func(k Check) bool { return k.Agent != "" }
	for _, c := range []struct {
		path, what string
		named      bool
	}{
		{"model", "a flow", d.Model == FlowModel},
		{"daemon", "daemon", d.Daemon != nil},
		{"agents", "agents", len(d.Agents) > 0},
		{"retention", "retention", d.Retention > 0},
		{"persist_state", "persist_state", len(d.PersistState) > 0},
		{"state_version", "state_version", d.StateVersion > 0},
		{"tools", "the tool " + SaveArtifactTool, has(SaveArtifactTool)},
		{"tools", "the tool " + MemoryTool, has(MemoryTool)},
		{"verify", "an agent in verify.checks", slices.ContainsFunc(d.Verify.Checks, asksAgent)},
	} {
		if c.named {
			return Errorf(CodeInvalidInput, "agent %s: a stateless agent stores nothing, and can't have %s; leave one of the two out", d.Name, c.what).WithPath(c.path)
		}
	}
	return nil
}
