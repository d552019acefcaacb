package agentsfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// workersOwn says which of the worker's own variables the entry would give to its server;
// empty if none.
func (e serverEntry) workersOwn() string {
	values := e.values()
	for key, value := range e.Env {
		if name, ok := strings.CutPrefix(value, "$"); ok {
			// In one form, so one check covers both ways to name a variable.
			values["env."+key] = "${" + name + "}"
		}
	}
	for _, where := range slices.Sorted(maps.Keys(values)) {
		for _, name := range mcp.Variables(values[where]) {
			if workersOwn(name) {
				return fmt.Sprintf(".%s names %s, %s", where, name, isWorkersOwn)
			}
		}
	}
	return ""
}

// workersOwn reports whether a variable holds the worker's keys or its access to
// Temporal. Whoever has these can approve for anybody, and read all that is stored.
func workersOwn(variable string) bool {
	return strings.HasPrefix(variable, "FERMATA_") || strings.HasPrefix(variable, "TEMPORAL_")
}

const isWorkersOwn = "which is the worker's own and never given away"

// UnprovenApprovals lists the agents with approvals that anybody may give, and the
// worker's programs that could give them because they can reach Temporal. Both are empty
// if one of them is.
func (f *File) UnprovenApprovals() (agents, programs []string) {
	for _, def := range f.Definitions() {
		asks := func(r agent.Rule) bool { return r.Do == agent.RulingAsk && len(r.Approvers) == 0 }
		if def.Default == agent.RulingAsk || slices.ContainsFunc(def.Rules, asks) || f.asksAnybody(def) {
			agents = append(agents, def.Name)
		}
	}
	for _, w := range f.Flows {
		if anybody, _ := w.Written.Approvals(); anybody && !slices.Contains(agents, w.Definition().Name) {
			agents = append(agents, w.Definition().Name)
		}
	}
	_, servers := f.uses()
	// A program without network can't reach Temporal, so it can't approve anything.
	if f.Uses(workspace.ShellTool) && (f.shell.Network || f.shell.Confine == tool.ConfineNever || !workspace.HoldsNetwork()) {
		programs = append(programs, "commands of "+workspace.ShellTool)
	}
	for _, name := range servers {
		if e := f.servers[name]; len(e.Command) > 0 && (e.Network || e.Confine == tool.ConfineNever || !workspace.HoldsNetwork()) {
			programs = append(programs, "the MCP server "+name)
		}
	}
	// One alone is no risk.
	if len(agents) == 0 || len(programs) == 0 {
		return nil, nil
	}
	return agents, programs
}

// asksAnybody reports whether an agent has a tool with an approval that anybody may give.
// Which tools a server has is not known here.
func (f *File) asksAnybody(def agent.Definition) bool {
	for name, ask := range f.asks {
		server, _, of := strings.Cut(name, tool.Separator)
		had := slices.ContainsFunc(def.Tools, func(t string) bool {
			// For a pattern every server counts: its tools are not known here.
			return glob.MatchesAny([]string{name}, t) || of && t == sourcePrefix+server || strings.ContainsAny(name, `*?[\`) && strings.HasPrefix(t, sourcePrefix)
		})
		if had && len(ask.Approvers) == 0 {
			return true
		}
	}
	return false
}

// Program is the program of an MCP server.
type Program struct {
	Server  string
	Command string
	Err     error // why it can't be started; nil if it exists
}

// Programs lists the programs of MCP servers that no agent uses. [File.AskServers] asks
// the others.
func (f *File) Programs() (list []Program) {
	_, used := f.uses()
	for _, name := range slices.Sorted(maps.Keys(f.servers)) {
		s := f.servers[name]
		if len(s.Command) == 0 || slices.Contains(used, name) {
			continue
		}
		list = append(list, Program{Server: name, Command: s.Command[0], Err: s.found()})
	}
	return list
}
