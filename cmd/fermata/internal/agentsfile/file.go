package agentsfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/tool/web"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// DefaultName is the agents file if none is named.
const DefaultName = "fermata.yaml"

// File is a valid agents file.
type File struct {
	// Path is the file as it was named. Dir is its absolute directory, which the file's
	// relative paths start from.
	Path, Dir string
	Agents    []agent.Definition
	// Flows are the file's flows.
	Flows []Flow
	// Daily is what all runs of the worker's task queue may use in a day.
	Daily agent.DailyLimits
	// Private are absolute paths of the worker that no tool may read or write. Set them
	// before Open.
	Private []string

	models    map[string]model.Model // by the agents' names for them, or by provider
	named     map[string]modelEntry
	rates     map[string]worker.RateLimit
	servers   map[string]serverEntry
	skills    []*skill.Skill
	skillDirs []string // absolute
	workspace string   // absolute
	own       string   // where sub-agents' own workspaces are, absolute; empty for the default
	shell     shellEntry
	web       webEntry
	asks      map[string]agent.ToolApproval // by names of tools and patterns
	asRoot    bool
	scripts   []string // absolute paths of scripted models
	lines     map[string]entry
}

// Load reads and checks a file. It returns all errors at once, joined, each with its
// line. It also returns when the context ends: reading a pipe to which nobody writes can
// take forever.
func Load(ctx context.Context, path string) (*File, error) {
	type loaded struct {
		file *File
		err  error
	}
	// Room for one, so that the goroutine ends even if nobody waits any more.
	done := make(chan loaded, 1)
	go func() {
		f, err := load(path)
		done <- loaded{f, err}
	}()
	select {
	case l := <-done:
		return l.file, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func load(path string) (*File, error) {
	root, err := parse(path)
	if err != nil {
		return nil, err
	}
	// Before the models are made: their adapters would only miss the key.
	if err := checkKeyFiles(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the agents file %s: %w", path, err)
	}
	f := &File{Path: path, Dir: dir, models: providers(), named: map[string]modelEntry{}, rates: map[string]worker.RateLimit{}, servers: map[string]serverEntry{}, asks: map[string]agent.ToolApproval{}, lines: map[string]entry{}}
	c := &checker{path: path, names: map[string]bool{}}
	// Models before rates and agents, servers before agents: agents refer to these.
	found := c.known(root, parts...)
	f.readModels(c, found["models"])
	f.readRates(c, found["rates"])
	f.readDaily(c, found["daily"])
	f.readServers(c, found["mcp"])
	f.readSkills(c, found["skills"])
	f.readWorkspace(c, found["workspace"])
	f.readWorkspaces(c, found["workspaces"])
	f.readShell(c, found["shell"])
	f.readWeb(c, found["web"])
	f.readRoot(c, found["as_root"])
	agents, flows := f.readAgents(c, root, found["agents"]), f.readFlows(c, found["flows"])
	// When all agents and flows are known: they may refer to later ones.
	f.checkTogether(c, slices.Concat(agents, flows))
	f.readTools(c, found["tools"])
	f.checkCalls(c)
	if err := c.err(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) readAgents(c *checker, root *yaml.Node, part entry) []entry {
	if part.value == nil {
		c.add(agent.CodeInvalidInput, root, "the file has no agents: write agents: with a name and a model below")
		return nil
	}
	list := c.mapping(part, "names of agents, each with its fields below")
	if len(list) == 0 && part.value.Kind == yaml.MappingNode {
		c.add(agent.CodeInvalidInput, part.key, "agents is empty: write a name and a model below")
	}
	for _, e := range list {
		c.names[e.name] = true
		where := e.path
		def, ok := decode[agent.Definition](c, e, where)
		// Also with other errors: a file reports all that is wrong at once.
		f.checkUses(c, e, def)
		if !ok {
			continue
		}
		// A name that repeats the key is harmless.
		if def.Name != "" && def.Name != e.name {
			c.add(agent.CodeInvalidInput, e.at("name"), "%s.name is %s; leave it out, the agent is called %s", where, quote(def.Name), e.name)
		}
		def.Name = e.name
		f.lines[def.Name] = e
		before := len(c.faults)
		f.checkAgent(c, e, def)
		// After the checks, which name lines of the file: a role's own fields have none.
		if def, ok = f.fillRole(c, e, def, len(c.faults) > before); !ok {
			continue
		}
		f.Agents = append(f.Agents, def)
	}
	return list
}

// checkAgent checks an agent's own fields.
func (f *File) checkAgent(c *checker, e entry, def agent.Definition) {
	checkLists(c, e, def)
	// Cleared, because checkLists has checked each of them with its line.
	def.Rules, def.ClientTools, def.Agents, def.AnswerTimeouts = nil, nil, nil, agent.AnswerTimeouts{}
	for _, err := range apart(def.Check()) {
		var what *agent.Error
		errors.As(err, &what)
		c.add(what.Code, e.at(what.Path), "%w", err)
	}
	c.output(e, "output", def.Output)
}

// apart lists the errors that are joined in an error.
func apart(err error) []error {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, one := range many.Unwrap() {
		list = append(list, apart(one)...)
	}
	return list
}

// output checks a schema of answers.
func (c *checker) output(e entry, at string, schema json.RawMessage) {
	err := checkSchema(schema, at)
	var what *agent.Error
	if errors.As(err, &what) {
		c.add(what.Code, e.at(what.Path), "%s.%s", e.path, what.Message)
		return
	}
	if err := model.CheckOutput(schema); err != nil {
		c.add(agent.CodeOf(err), e.at(at), "%s: %w", e.path, err)
	}
}

// checkUses checks that the tools and models that an agent names exist.
func (f *File) checkUses(c *checker, e entry, def agent.Definition) {
	for i, name := range def.Tools {
		if err := f.checkTool(name); err != nil {
			c.add(agent.CodeOf(err), e.at(fmt.Sprintf("tools[%d]", i)), "%s.tools[%d]: %w", e.path, i, err)
		} else if slices.Contains(def.Tools[:i], name) {
			c.add(agent.CodeInvalidInput, e.at(fmt.Sprintf("tools[%d]", i)), "%s.tools[%d]: %s appears twice", e.path, i, quote(name))
		}
	}
	f.checkSkills(c, e, def)
	if def.Model != "" { // whether one is required is checked elsewhere
		f.checkModel(c, e, def, "model", def.Model)
	}
	for i, name := range def.Fallbacks {
		f.checkModel(c, e, def, fmt.Sprintf("fallbacks[%d]", i), name)
	}
	f.checkChecks(c, e, def)
}

// checkChecks checks that what checks an agent's answer exists. Agents are checked with all others.
func (f *File) checkChecks(c *checker, e entry, def agent.Definition) {
	eachCheck(def, func(at string, k agent.Check) {
		switch k.Kind() {
		case agent.CheckByJudge:
			if k.Judge.Model != "" {
				f.checkModel(c, e, def, at+".judge.model", k.Judge.Model)
			}
		case agent.CheckByTool:
			server, _, _ := strings.Cut(k.Tool, agent.SourceSeparator)
			if _, known := f.servers[server]; known || k.Tool == "" {
				return
			}
			err := f.checkTool(k.Tool)
			if !slices.Contains(workerTools, k.Tool) {
				err = agent.Errorf(agent.CodeUnknownTool, "there is no tool %s; a check may name %s, or a tool of a server under mcp as SERVER%sTOOL%s", quote(k.Tool), strings.Join(workerTools, ", "), agent.SourceSeparator, meant(k.Tool, workerTools))
			}
			if err != nil {
				c.add(agent.CodeOf(err), e.at(at+".tool"), "%s.%s: %w", e.path, at, err)
			}
		}
	})
}

// This also records a script, which no tool may write.
func (f *File) checkModel(c *checker, e entry, def agent.Definition, field, name string) {
	if err := f.resolve(name, f.Dir); err != nil {
		c.add(agent.CodeOf(err), e.at(field), "%s.%s: %w", e.path, field, err)
		return
	}
	f.checkPrice(c, e, def, name)
}

// checkPrice refuses a limit that can't be held: that of the cost of a model without a price.
func (f *File) checkPrice(c *checker, e entry, def agent.Definition, name string) {
	if def.Limits.CostUSD > 0 && f.price(name) == (agent.Price{}) {
		c.add(agent.CodeInvalidInput, e.at("limits.cost_usd"), "%s.limits.cost_usd can't be held, since the price of %s is not known; give it one under models, with price: {input: …, output: …}", e.path, name)
	}
}

// placeTools work in the workspace. workerTools are all that a worker carries out, and
// ownTools the runtime's own, which no worker has.
var (
	placeTools  = []string{workspace.ReadTool, workspace.ListTool, workspace.GrepTool, workspace.WriteTool, workspace.ShellTool}
	workerTools = append(placeTools[:len(placeTools):len(placeTools)], web.FetchTool, agent.SaveArtifactTool, agent.MemoryTool, agent.TodoTool)
	ownTools    = []string{agent.AskUserTool, agent.AwaitResumptionTool, agent.WaitForUserTool, agent.ReportProgressTool}
)

// toolNames are what an agent may name besides MCP servers.
var toolNames = slices.Concat(workerTools, ownTools)

// comesWith has the key of an agent that gives it a tool of the runtime.
var comesWith = map[string]string{
	agent.FinishTool: "completion: tool", agent.ReturnUnableTool: "completion: tool and recovery: {unable: handoff}",
	agent.NotebookTool: "notebook: {}", agent.SkillTool: "skills", agent.ToolSearchTool: "tool_search: {}",
}

// sourcePrefix marks the name of an MCP server, all of whose tools the agent gets.
const sourcePrefix = agent.ServerPrefix

func (f *File) checkTool(name string) error {
	if server, ok := strings.CutPrefix(name, sourcePrefix); ok {
		if _, ok := f.servers[server]; !ok {
			return agent.Errorf(agent.CodeUnknownTool, "there is no server %s under mcp", quote(server))
		}
		return nil
	}
	if key, ok := comesWith[name]; ok {
		return agent.Errorf(agent.CodeUnknownTool, "tool %s comes with the agent's key %s; leave it out of tools", quote(name), key)
	}
	if !slices.Contains(toolNames, name) {
		return agent.Errorf(agent.CodeUnknownTool, "tool %s is not known; there are %s, and \"mcp:NAME\" for a server under mcp%s", quote(name), strings.Join(toolNames, ", "), meant(name, toolNames))
	}
	return f.checkWeb(name, name)
}

func (f *File) readWorkspace(c *checker, part entry) {
	f.workspace = f.Dir
	if part.value == nil {
		return
	}
	if part.value.Kind != yaml.ScalarNode || part.value.ShortTag() != "!!str" || strings.TrimSpace(part.value.Value) == "" {
		c.add(agent.CodeInvalidInput, part.key, "workspace must be the path of a directory")
		return
	}
	f.workspace = within(f.Dir, part.value.Value)
	if info, err := os.Stat(f.workspace); err != nil || !info.IsDir() {
		c.add(agent.CodeInvalidInput, part.key, "workspace %s is not a directory", quote(part.value.Value))
	}
}

func (f *File) readWorkspaces(c *checker, part entry) {
	if part.value == nil {
		return
	}
	if part.value.Kind != yaml.ScalarNode || part.value.ShortTag() != "!!str" || strings.TrimSpace(part.value.Value) == "" {
		c.add(agent.CodeInvalidInput, part.key, "workspaces must be the path of a directory")
		return
	}
	f.own = within(f.Dir, part.value.Value)
}

// within returns a path of the file, relative to the file's directory.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Definitions returns the agents, and the flows as agents.
func (f *File) Definitions() []agent.Definition {
	all := slices.Clone(f.Agents)
	for _, w := range f.Flows {
		all = append(all, w.Definition())
	}
	return all
}

// Agent returns an agent or a flow, or an [agent.CodeUnknownAgent] error that lists the agents.
func (f *File) Agent(name string) (agent.Definition, error) {
	var names []string
	for _, def := range f.Definitions() {
		if def.Name == name {
			return def, nil
		}
		names = append(names, def.Name)
	}
	return agent.Definition{}, agent.Errorf(agent.CodeUnknownAgent, "%s has no agent %s; it has %s%s", f.Path, quote(name), strings.Join(names, ", "), meant(name, names)).WithPath("agent")
}

// SetModel gives an agent another model without fallbacks: a user who names a model wants
// that one. A script's path is relative to dir.
func (f *File) SetModel(name, model, dir string) error {
	for i := range f.Agents {
		def := &f.Agents[i]
		// Checked before it replaces the model, so an error leaves the agent as it was.
		if def.Name != name {
			continue
		}
		if err := f.resolve(model, dir); err != nil {
			return err
		}
		if def.Limits.CostUSD > 0 && f.price(model) == (agent.Price{}) {
			return agent.Errorf(agent.CodeInvalidInput, "the price of %s is not known, and %s has limits.cost_usd: give the model a price under models in %s", model, name, f.Path)
		}
		def.Model, def.Fallbacks = model, nil
		return nil
	}
	_, err := f.Agent(name)
	if err == nil {
		return agent.Errorf(agent.CodeInvalidInput, "%s is a flow, which has no model", name).WithPath("model")
	}
	return err
}
