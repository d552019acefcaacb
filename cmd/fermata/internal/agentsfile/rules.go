package agentsfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
)

// checkLists checks an agent's rules, client tools, sub-agents and answer timeouts one by
// one, so that each error has its line.
func checkLists(c *checker, e entry, def agent.Definition) {
	for i, r := range def.Rules {
		c.part(e, fmt.Sprintf("rules[%d]", i), agent.Definition{Rules: []agent.Rule{r}})
		// Matches compiles the schema. There are no arguments yet, so only its error matters.
		if err := checkSchema(r.Arguments, "rules"); err != nil {
			c.schema(e, fmt.Sprintf("rules[%d].arguments", i), r.Arguments)
		} else if _, err := signals.Matches(r.Arguments, nil); err != nil {
			at := fmt.Sprintf("rules[%d].arguments", i)
			c.add(agent.CodeInvalidInput, e.at(at), "%s.%s is not a JSON Schema: %w", e.path, at, err)
		}
	}
	for i, t := range def.ClientTools {
		at := fmt.Sprintf("client_tools[%d]", i)
		c.part(e, at, agent.Definition{ClientTools: []agent.ToolSpec{t}})
		checkClientKeys(c, e, at)
		if err := checkSchema(t.Input, at); err != nil {
			c.schema(e, at+".input", t.Input)
		} else if _, err := signals.Matches(t.Input, nil); err != nil {
			c.add(agent.CodeInvalidInput, e.at(at+".input"), "%s.%s.input is not a JSON Schema: %w", e.path, at, err)
		}
	}
	for i, a := range def.Agents {
		at := fmt.Sprintf("agents[%d]", i)
		c.part(e, at, agent.Definition{Agents: []agent.SubAgent{a}})
		c.output(e, at+".output", a.Output)
	}
	c.part(e, "answer_timeouts", agent.Definition{AnswerTimeouts: def.AnswerTimeouts})
}

// clientToolKeys are the keys of a client tool. The other fields of [agent.ToolSpec] are
// for tools that a worker runs.
var clientToolKeys = []string{"name", "description", "input", "read_only", "secrets"}

// checkClientKeys reports keys of a client tool that would have no effect.
func checkClientKeys(c *checker, e entry, at string) {
	for _, key := range fieldNames(reflect.TypeFor[agent.ToolSpec]()) {
		n := e.at(at + "." + key)
		if !slices.Contains(clientToolKeys, key) && key != "approval" && n != e.at(at) {
			c.add(agent.CodeInvalidInput, n, "%s.%s.%s is for tools that a worker carries out; leave it out", e.path, at, key)
		}
	}
}

// schema reports what is wrong with a schema.
func (c *checker) schema(e entry, at string, schema json.RawMessage) {
	var what *agent.Error
	if errors.As(checkSchema(schema, at), &what) {
		c.add(what.Code, e.at(what.Path), "%s.%s", e.path, what.Message)
	}
}

// part checks a definition with only one part set, and reports errors under that part's
// name.
func (c *checker) part(e entry, at string, def agent.Definition) {
	def.Name, def.Model = "a", "m" // checked elsewhere
	var what *agent.Error
	if errors.As(def.Check(), &what) {
		node := e.at(at + "." + what.Path)
		c.add(what.Code, node, "%s.%s: %s", e.path, at, what.Message)
	}
}

// checkTogether checks what agents say of each other and of tools, when all are known.
func (f *File) checkTogether(c *checker, list []entry) {
	known := f.knownTools()
	bounded := slices.Clip(known) // what a ceiling may name
	for _, t := range model.ServerTools() {
		bounded = append(bounded, agent.ServerToolPrefix+string(t))
	}
	for _, e := range list {
		def, err := f.Agent(e.name)
		if err != nil {
			continue // its own errors are reported
		}
		if err := agent.CheckCircle(f.Agents, e.name); err != nil {
			c.add(agent.CodeInvalidInput, e.key, "%s: %w", e.path, err)
		}
		f.checkBelow(c, e, def)
		f.checkVerifiers(c, e, def)
		checkClientTools(c, e, def)
		for i, r := range def.Rules {
			at := fmt.Sprintf("rules[%d].tools", i)
			f.checkPatterns(c, e, at, r.Tools, known)
			// A deny holds by itself if nobody has the tool, as in a copied role.
			if r.Do != agent.RulingDeny {
				f.checkHad(c, e, at, r.Tools)
			}
		}
		for i, a := range def.Agents {
			f.checkPatterns(c, e, fmt.Sprintf("agents[%d].tools", i), a.Tools, bounded)
		}
		f.checkPatterns(c, e, "ceiling", def.Ceiling, bounded)
		f.checkPatterns(c, e, "loop_detection.exempt", def.LoopDetection.Exempt, known)
		f.checkPatterns(c, e, "stop_after", def.StopAfter, known)
		f.checkOwned(c, e, def, known)
		if def.ToolSearch != nil {
			f.checkPatterns(c, e, "tool_search.always", def.ToolSearch.Always, known)
		}
	}
}

// checkOwned reports tools that a run waits for and its agent lacks: they are never called.
func (f *File) checkOwned(c *checker, e entry, def agent.Definition, known []string) {
	report := func(at, name string) {
		// Which of the runtime's own tools an agent has is decided by its other keys.
		if f.mayExist(c, name, known) && !hasTool(def, name) && !f.isRuntimes(name) {
			c.add(agent.CodeUnknownTool, e.at(at), "%s.%s: agent %s has no tool %s; add it to the agent's tools", e.path, at, e.name, quote(name))
		}
	}
	for i, name := range def.StopAfter {
		report(fmt.Sprintf("stop_after[%d]", i), name)
	}
	for i, one := range def.Require {
		for j, name := range one {
			at := fmt.Sprintf("require[%d]", i)
			if len(one) > 1 {
				at = fmt.Sprintf("%s[%d]", at, j)
			}
			f.checkPattern(c, e, at, name, known)
			report(at, name)
		}
	}
}

// isRuntimes reports whether the runtime carries a tool out, and an agent does not name it under
// tools.
func (f *File) isRuntimes(name string) bool {
	return strings.HasPrefix(name, lifecyclePrefix) ||
		slices.Contains([]string{agent.FinishTool, agent.ReturnUnableTool, agent.ShowFileTool, agent.ToolSearchTool, agent.NotebookTool}, name)
}

// checkBelow checks the sub-agents of an agent. They must be in the file, before or after
// it.
func (f *File) checkBelow(c *checker, e entry, def agent.Definition) {
	var names []string
	for i, a := range def.Agents {
		at := fmt.Sprintf("agents[%d]", i)
		if agent.CheckName(a.Agent) == nil && !c.names[a.Agent] {
			c.add(agent.CodeUnknownAgent, e.at(at+".agent"), "%s.%s: there is no agent %s in this file%s", e.path, at, quote(a.Agent), meant(a.Agent, slices.Sorted(maps.Keys(c.names))))
		}
		if slices.Contains(names, a.Agent) {
			c.add(agent.CodeInvalidInput, e.at(at+".agent"), "%s.%s: %s appears twice", e.path, at, quote(a.Agent))
		}
		names = append(names, a.Agent)
		below, err := f.Agent(a.Agent)
		// An unknown agent was reported above.
		if lacks := beyond(def, below, a); err == nil && len(lacks) > 0 {
			c.add(agent.CodeInvalidInput, e.at(at), "%s.%s: %s has tools that %s lacks (%s); list in the entry's tools which of them it may use, \"*\" for all", e.path, at, a.Agent, e.name, strings.Join(lacks, ", "))
		}
	}
}

// checkVerifiers checks the agents that check an agent's answer, as checkBelow does sub-agents.
func (f *File) checkVerifiers(c *checker, e entry, def agent.Definition) {
	eachCheck(def, func(at string, k agent.Check) {
		if k.Agent == "" || agent.CheckName(k.Agent) != nil {
			return
		}
		below, err := f.Agent(k.Agent)
		if !c.names[k.Agent] {
			c.add(agent.CodeUnknownAgent, e.at(at+".agent"), "%s.%s: there is no agent %s in this file%s", e.path, at, quote(k.Agent), meant(k.Agent, slices.Sorted(maps.Keys(c.names))))
		} else if lacks := beyond(def, below, agent.SubAgent{Agent: k.Agent, Tools: k.Tools}); err == nil && len(lacks) > 0 {
			c.add(agent.CodeInvalidInput, e.at(at), "%s.%s: %s has tools that %s lacks (%s); list in the check's tools which of them it may use, \"*\" for all", e.path, at, k.Agent, e.name, strings.Join(lacks, ", "))
		}
	})
}

// eachCheck calls f for the checks of all points, each with where it is in the definition.
func eachCheck(def agent.Definition, f func(at string, k agent.Check)) {
	for _, p := range agent.CheckPoints() {
		for i, k := range def.ChecksAt(p) {
			f(p.Path(i), k)
		}
	}
}

// beyond lists the tools of a sub-agent that its parent lacks, if the entry does not list
// tools: a worker would refuse them.
func beyond(above, below agent.Definition, sub agent.SubAgent) (lacks []string) {
	if len(sub.Tools) > 0 || above.Model == agent.FlowModel { // a flow calls what its author has written
		return nil
	}
	for _, name := range below.Tools {
		if !slices.Contains(ownTools, name) && !slices.Contains(above.Tools, name) {
			lacks = append(lacks, name)
		}
	}
	for _, t := range below.ClientTools {
		if !slices.ContainsFunc(above.ClientTools, func(own agent.ToolSpec) bool { return own.Name == t.Name }) {
			lacks = append(lacks, t.Name)
		}
	}
	for _, name := range below.CheckTools() { // the ceiling holds for them, too
		if !slices.Contains(above.Tools, name) && !slices.Contains(lacks, name) {
			lacks = append(lacks, name)
		}
	}
	return lacks
}

// checkClientTools reports names that another tool has.
func checkClientTools(c *checker, e entry, def agent.Definition) {
	taken := slices.Concat(toolNames, []string{agent.FinishTool, agent.ReturnUnableTool, agent.ShowFileTool, agent.ToolSearchTool, agent.NotebookTool})
	for i, t := range def.ClientTools {
		at := fmt.Sprintf("client_tools[%d]", i)
		if slices.Contains(taken, t.Name) || strings.Contains(t.Name, tool.Separator) || strings.HasPrefix(t.Name, lifecyclePrefix) {
			c.add(agent.CodeInvalidInput, e.at(at+".name"), "%s.%s: the name %s is taken; use another", e.path, at, quote(t.Name))
		}
		// Later client tools must not have this name either.
		taken = append(taken, t.Name)
	}
}

// lifecyclePrefix is the prefix of the tools that manage sub-agents.
const lifecyclePrefix = "subagent_"

// checkHad reports a rule about a worker's tool that no agent of the file has: either
// the rule means another tool, or an agent lacks it.
func (f *File) checkHad(c *checker, e entry, at string, names []string) {
	for i, name := range names {
		had := slices.ContainsFunc(f.Definitions(), func(def agent.Definition) bool { return slices.Contains(def.Tools, name) })
		if slices.Contains(workerTools, name) && !had {
			where := fmt.Sprintf("%s[%d]", at, i)
			c.add(agent.CodeUnknownTool, e.at(where), "%s.%s: no agent of this file has the tool %s; the rule would have no effect", e.path, where, quote(name))
		}
	}
}

// toolEntry says how a tool is treated, whichever agent calls it.
type toolEntry struct {
	// Approval asks a person before each call; true asks anybody.
	Approval *agent.ToolApproval `json:"approval"`
}

// readTools reads the entries of tools, by names or patterns. An entry for a tool that
// nobody has would restrict nothing.
func (f *File) readTools(c *checker, part entry) {
	for _, e := range c.mapping(part, "names of tools, each with its fields below") {
		where := "tools." + e.name
		if !checkApproval(c, e, where) {
			continue
		}
		t, ok := decode[toolEntry](c, e, where)
		if !ok {
			continue
		}
		var what *agent.Error
		switch {
		case t.Approval == nil:
			c.add(agent.CodeInvalidInput, e.key, "%s has no fields: write approval: true, or leave it out", where)
		case errors.As(t.Approval.Check(), &what):
			c.add(what.Code, e.at("approval."+what.Path), "%s.approval: %s", where, what.Message)
		case !f.callable(e.name):
			known := workerTools
			c.add(agent.CodeUnknownTool, e.key, "%s: no tool is called %s; there are %s, SERVER__TOOL and patterns such as \"fs_*\"%s", where, quote(e.name), strings.Join(known, ", "), meant(e.name, known))
		default:
			f.asks[e.name] = *t.Approval
		}
	}
}

// checkApproval reports whether the fields of a tool's approval can be read. ToolApproval
// has its own JSON decoder, so the entry's decoder checks neither names nor values.
func checkApproval(c *checker, e entry, where string) bool {
	type fields agent.ToolApproval
	for _, field := range entries(e.value) {
		if field.value.Kind == yaml.MappingNode {
			_, ok := decode[fields](c, field, where+"."+field.name)
			return ok
		}
	}
	return true
}

// callable reports whether a worker may have a tool with this name, or tools that match
// the pattern.
func (f *File) callable(name string) bool {
	if strings.ContainsAny(name, `*?[\`) {
		// An invalid pattern matches nothing, so the approval would be lost silently.
		_, err := path.Match(name, "")
		return err == nil
	}
	server, _, of := strings.Cut(name, tool.Separator)
	_, known := f.servers[server]
	return of && known || slices.Contains(workerTools, name)
}

// Approvals returns the approvals of tools, by names and patterns.
func (f *File) Approvals() map[string]agent.ToolApproval { return f.asks }

// knownTools returns the names that rules may use, and ceilings with others.
func (f *File) knownTools() []string {
	known := slices.Concat(toolNames, []string{agent.FinishTool, agent.ReturnUnableTool, agent.ShowFileTool, agent.ToolSearchTool, agent.NotebookTool})
	for _, what := range []string{"list", "wait", "pause", "resume", "stop"} {
		known = append(known, lifecyclePrefix+what)
	}
	for _, def := range f.Agents {
		for _, t := range def.ClientTools {
			known = append(known, t.Name)
		}
	}
	return known
}

// checkPatterns reports names that no tool has: a rule about a misspelt tool would
// restrict nothing. Patterns, and tools of servers, can't be checked before the servers
// list them.
func (f *File) checkPatterns(c *checker, e entry, at string, names, known []string) {
	for i, name := range names {
		f.checkPattern(c, e, fmt.Sprintf("%s[%d]", at, i), name, known)
	}
}

// checkPattern reports one such name.
func (f *File) checkPattern(c *checker, e entry, at, name string, known []string) {
	if !f.mayExist(c, name, known) {
		c.add(agent.CodeUnknownTool, e.at(at), "%s.%s: no tool is called %s; there are %s, SERVER__TOOL, subagent__AGENT and patterns such as \"fs_*\"%s", e.path, at, quote(name), strings.Join(known, ", "), meant(name, known))
	}
}

// mayExist reports whether a name may be that of a tool, or a pattern.
func (f *File) mayExist(c *checker, name string, known []string) bool {
	if slices.Contains(known, name) || strings.ContainsAny(name, `*?[\`) {
		return true
	}
	before, behind, of := strings.Cut(name, tool.Separator)
	// A server's tools and a sub-agent's tool are known only to the worker.
	_, server := f.servers[before]
	return of && server || c.names[behind] && before+tool.Separator == agent.SubAgentPrefix
}
