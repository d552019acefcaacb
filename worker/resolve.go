package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/memory"
	"github.com/fermata-agents/fermata/internal/observers"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// resolve fits agents, tools, models and the store together. It returns all faults at
// once.
func (o *Options) resolve() (*activities.Activities, error) {
	d, err := o.fit()
	if bad := o.checkDeployment(); bad != nil {
		err = errors.Join(err, bad)
	}
	if o.Store == nil {
		return d, errors.Join(agent.Errorf(agent.CodeNotSetUp, "worker.Options.Store is missing; open one with store.OpenDir"), err)
	}
	d.Log = store.NewLog(o.Store)
	d.Identity = &activities.Identity{Store: o.Store, Queue: o.taskQueue()}
	return d, err
}

// Check returns why no worker starts with these agents, tools, skills and models. It starts nothing,
// and needs no server and no store.
func (o *Options) Check() error {
	_, err := o.fit()
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// fit fits agents, tools and models together.
func (o *Options) fit() (*activities.Activities, error) {
	seen := observers.New(o.Observers, o.slogger())
	models, faults := o.wrapped(seen)
	if i := slices.Index(o.Observers, nil); i >= 0 {
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.Observers[%d] is nil", i).WithPath("observers"))
	}
	d := &activities.Activities{
		Agents: map[string]activities.Agent{}, Model: models.find,
		Tools: map[string]tool.Tool{}, Sources: map[string]tool.Source{}, Workspaces: o.Workspaces,
		Approvals: o.Approvals, Pins: o.Pins, Converter: o.Converter,
		Flows: map[string]play.Function{}, FlowInputs: map[string]func(string) error{}, Plays: activities.NewPlays(), OneBuild: o.Deployment != "", LogCache: activities.NewLogCache(), InFlight: activities.NewInFlight(), ParentChecks: activities.NewParentChecks(), Pictures: &activities.Pictures{}, StorePace: &activities.StorePace{}, Live: o.Live, Observers: seen, Migrations: o.Migrations, ExportKeys: o.ExportKeys,
	}
	if len(o.Agents)+len(o.Flows) == 0 {
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.Agents is empty, and so is Flows: a worker without agents has nothing to run").WithPath("agents"))
	}
	faults = append(faults, o.addTools(d)...)
	faults = append(faults, o.addSkills(d)...)
	faults = append(faults, o.checkRates()...)
	faults = append(faults, checkMigrations(o.Migrations)...)
	if err := o.DailyLimits.Check(); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, o.checkPolicy()...)
	for _, def := range o.Agents {
		faults = append(faults, addAgent(d, def, o.modelQueue(def.Model), o.Policy)...)
	}
	faults = append(faults, o.addFlows(d)...)
	// After all agents: an agent may name one that is listed later.
	faults = append(faults, addSubAgents(d)...)
	faults = append(faults, checkRules(d, o.Agents)...)
	faults = append(faults, checkCircles(o.Agents)...)
	faults = append(faults, checkAsk(d)...)
	return d, errors.Join(faults...)
}

// checkMigrations refuses invalid migrations when the worker starts, and not months later
// when a session needs one.
func checkMigrations(list []activities.Migration) (faults []error) {
	for i, m := range list {
		same := func(other activities.Migration) bool { return other.From == m.From && other.To == m.To }
		why := ""
		switch {
		case m.Migrate == nil:
			why = "Migrate is missing"
		case m.From == m.To:
			why = fmt.Sprintf("it leads from version %d to itself", m.From)
		case slices.ContainsFunc(list[:i], same):
			why = fmt.Sprintf("there are two from version %d to %d, and nobody could tell which is meant", m.From, m.To)
		default:
			continue
		}
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.Migrations: migrations[%d]: %s", i, why).WithPath("migrations"))
	}
	return faults
}

func (o *Options) addTools(d *activities.Activities) (faults []error) {
	for _, t := range o.Tools {
		name := t.Spec().Name
		switch _, twice := d.Tools[name]; {
		case t.Err() != nil:
			faults = append(faults, t.Err())
		case twice:
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "tool %q is there twice", name).WithPath("tools"))
		case slices.Contains(ownNames, name) || strings.HasPrefix(name, agent.SubAgentPrefix) || loop.IsLifecycleTool(name):
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "tool %q: the name is the runtime's own", name).WithPath("tools"))
		}
		d.Tools[name] = t
	}
	for _, s := range o.Sources {
		if _, twice := d.Sources[s.Name()]; twice {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "tool source %q is there twice", s.Name()).WithPath("mcp"))
		}
		d.Sources[s.Name()] = s
	}
	return faults
}

// ownNames are tool names of the runtime, which no worker's tool may have.
var ownNames = []string{agent.FinishTool, agent.ReturnUnableTool, agent.AskUserTool, agent.AwaitResumptionTool, agent.ShowFileTool, agent.ApproveTool, agent.DoTool, agent.GenerateTool, agent.TemporalTool, agent.SaveArtifactTool, agent.TodoTool, agent.NotebookTool, agent.MemoryTool, agent.ToolSearchTool, agent.WaitForUserTool, agent.ReportProgressTool}

// checkPolicy refuses an invalid policy, and one that nobody could satisfy because no key
// verifies tokens.
func (o *Options) checkPolicy() []error {
	if err := o.Policy.Check(); err != nil {
		return []error{err}
	}
	if len(o.Policy) > 0 && len(o.ApprovalKeys) == 0 {
		return []error{agent.Errorf(agent.CodeNotSetUp, "the policy binds verbs to principals, and worker.Options.ApprovalKeys has no key to verify their tokens with").WithPath("policy")}
	}
	return nil
}

func addAgent(d *activities.Activities, def agent.Definition, modelQueue string, policy agent.Policy) (faults []error) {
	def, err := withRole(d, def)
	if err != nil {
		return []error{err}
	}
	def = def.WithDefaults()
	if err := def.Check(); err != nil {
		return []error{err}
	}
	_, isFlow := d.Flows[def.Name]
	if def.Model == agent.FlowModel && !isFlow {
		return []error{agent.Errorf(agent.CodeInvalidInput, "agent %s: the model %s stands for a flow's function; put the flow into worker.Options.Flows", def.Name, def.Model).WithPath("model")}
	}
	if _, twice := d.Agents[def.Name]; twice {
		return []error{agent.Errorf(agent.CodeInvalidInput, "agent %q is there twice", def.Name).WithPath("agents")}
	}
	a := activities.Agent{Spec: agent.Spec{V: agent.Version, Definition: def, Flow: isFlow, ModelQueue: modelQueue, Policy: policy.For(def.Name)}}
	m, err := modelOf(d, def, isFlow)
	if err != nil {
		faults = append(faults, durable.Within("agent "+def.Name, err))
	} else {
		a.Spec.Price, a.Spec.Window, a.Spec.MaxOutput = m.Price, m.Window, m.MaxOutput
	}
	if err := model.CheckOutput(def.Output); err != nil {
		faults = append(faults, durable.Within("agent "+def.Name, err))
	}
	// A limit that cannot be measured would never stop the run.
	if err == nil && !isFlow && def.Limits.CostUSD > 0 && a.Spec.Price == (agent.Price{}) {
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: limits.cost_usd can't be held, since the price of %s is not known; give the model a price", def.Name, def.Model).WithPath("limits.cost_usd"))
	}
	faults = append(faults, addFallbacks(&a, d)...)
	faults = append(faults, addChecks(&a, d)...)
	if err := checkCompactor(a.Spec, d); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, checkSchemas(def)...)
	faults = append(faults, giveSkills(&a, d)...)
	for _, name := range def.Tools {
		if slices.Contains([]string{agent.AskUserTool, agent.AwaitResumptionTool, agent.WaitForUserTool, agent.ReportProgressTool}, name) {
			continue // the run has these itself
		}
		if err := addTool(&a, d, name); err != nil {
			faults = append(faults, err)
		}
	}
	d.Agents[def.Name] = a
	return faults
}

// addSubAgents finds the agents that agents name as sub-agents, and takes over their
// descriptions.
func addSubAgents(d *activities.Activities) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(d.Agents)) {
		a := d.Agents[name]
		a.Spec.Agents = slices.Clone(a.Spec.Agents)
		for i, sub := range a.Spec.Agents {
			below, ok := d.Agents[sub.Agent]
			if !ok {
				faults = append(faults, agent.Errorf(agent.CodeUnknownAgent, "agent %s: agents[%d]: there is no agent %q; the worker has %s", name, i, sub.Agent, names(d.Agents)).WithPath("agents"))
			}
			if ok && below.Spec.Stateless {
				faults = append(faults, runBelow(fmt.Sprintf("agent %s: agents[%d]", name, i), sub.Agent).WithPath("agents"))
			}
			if lacks := beyond(a, below, sub); ok && len(lacks) > 0 {
				faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: agents[%d]: %s has tools that %s has not (%s); say in its tools which of them it may use, \"*\" for all", name, i, sub.Agent, name, strings.Join(lacks, ", ")).WithPath("agents"))
			}
			if err := checkWorkspace(d, sub.Workspace); err != nil {
				faults = append(faults, durable.Within(fmt.Sprintf("agent %s: agents[%d]: workspace", name, i), err).WithPath("agents"))
			}
			if sub.Description == "" {
				a.Spec.Agents[i].Description = below.Spec.Description
			}
			if err := model.CheckOutput(sub.Output); err != nil {
				faults = append(faults, durable.Within("agent "+name+": agents", err))
			}
		}
		if err := checkWatch(d, a.Spec.Daemon); err != nil {
			faults = append(faults, durable.Within("agent "+name, err))
		}
		faults = append(faults, checkVerifiers(d, a)...)
		d.Agents[name] = a
	}
	return faults
}

// checkWatch refuses files that this worker can't watch.
func checkWatch(d *activities.Activities, daemon *agent.Daemon) error {
	switch {
	case daemon == nil || len(daemon.Watch) == 0:
		return nil
	case d.Workspaces == nil:
		return durable.Within("daemon.watch", noWorkspace()).WithPath("daemon.watch")
	}
	return d.Workspaces.CheckWatch(daemon.Watch)
}

func noWorkspace() error {
	return agent.Errorf(agent.CodeInvalidInput, "the worker has no workspace: set worker.Options.Workspaces")
}

// runBelow returns the error of a stateless agent that would run below another run. That one's log would
// name it, and keep what it says.
func runBelow(path, name string) *agent.Error {
	return agent.Errorf(agent.CodeInvalidInput, "%s: %s is stateless, and can't run below another agent, whose session would keep its answers; leave stateless out, or start %s itself", path, name, name)
}

// checkWorkspace refuses a workspace that this worker can't make.
func checkWorkspace(d *activities.Activities, own *agent.OwnWorkspace) error {
	switch {
	case own == nil || own.Kind == "":
		return nil
	case d.Workspaces == nil:
		return noWorkspace()
	}
	return d.Workspaces.CheckOwn(own.Kind)
}

// beyond returns the tools that a sub-agent has and its parent lacks, if the parent's
// entry does not list the tools that it allows.
func beyond(above, below activities.Agent, sub agent.SubAgent) (lacks []string) {
	if len(sub.Tools) > 0 || above.Spec.Flow { // a flow calls what its author has written
		return nil
	}
	for _, t := range below.Spec.Toolset {
		if _, has := above.Spec.Tool(t.Name); !has {
			lacks = append(lacks, t.Name)
		}
	}
	for _, t := range below.Spec.ClientTools {
		_, has := above.Spec.Tool(t.Name)
		if !has && !slices.ContainsFunc(above.Spec.ClientTools, func(own agent.ToolSpec) bool { return own.Name == t.Name }) {
			lacks = append(lacks, t.Name)
		}
	}
	for _, source := range below.Sources {
		if !slices.Contains(above.Sources, source) {
			lacks = append(lacks, sourcePrefix+source)
		}
	}
	for _, name := range below.Spec.CheckTools() { // the ceiling holds for them, too
		if _, has := above.Spec.Tool(name); !has && !slices.Contains(lacks, name) {
			lacks = append(lacks, name)
		}
	}
	return lacks
}

// checkSchemas finds schemas that would fail when they are needed.
func checkSchemas(def agent.Definition) (faults []error) {
	for i, r := range def.Rules {
		if _, err := signals.Matches(r.Arguments, nil); err != nil {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: rules[%d].arguments is not a JSON Schema: %w", def.Name, i, err).WithPath("rules"))
		}
	}
	for i, t := range def.ClientTools {
		if len(def.Agents) > 0 && loop.IsLifecycleTool(t.Name) {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: client_tools[%d]: the name %q is the runtime's own, for an agent with sub-agents; choose another", def.Name, i, t.Name).WithPath("client_tools"))
		}
		if _, err := signals.Matches(t.Input, nil); err != nil {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: client_tools[%d].input is not a JSON Schema: %w", def.Name, i, err).WithPath("client_tools"))
		}
	}
	return faults
}

// sourcePrefix begins the name of a source; an agent that lists it gets all tools of the
// source.
const sourcePrefix = agent.ServerPrefix

func addTool(a *activities.Agent, d *activities.Activities, name string) error {
	if source, ok := strings.CutPrefix(name, sourcePrefix); ok {
		if _, ok := d.Sources[source]; !ok {
			return agent.Errorf(agent.CodeUnknownTool, "agent %s: there is no MCP server %q; the worker has %s", a.Spec.Name, source, names(d.Sources)).WithPath("tools")
		}
		a.Sources = append(a.Sources, source)
		return nil
	}
	switch name {
	case agent.MemoryTool:
		if _, twice := a.Spec.Tool(name); !twice {
			a.Spec.Toolset = append(a.Spec.Toolset, d.ToolSpec(memory.Spec))
		}
		return nil
	case agent.SaveArtifactTool:
		d.Tools[name] = tool.SaveArtifact()
	case agent.TodoTool:
		d.Tools[name] = tool.Todo()
	}
	t, ok := d.Tools[name]
	if !ok {
		return agent.Errorf(agent.CodeUnknownTool, "agent %s: tool %q is not known; the worker has %s", a.Spec.Name, name, names(d.Tools)).WithPath("tools")
	}
	if _, twice := a.Spec.Tool(name); twice {
		return agent.Errorf(agent.CodeInvalidInput, "agent %s: tool %q is named twice", a.Spec.Name, name).WithPath("tools")
	}
	a.Spec.Toolset = append(a.Spec.Toolset, d.ToolSpec(t.Spec()))
	return nil
}

func names[T any](m map[string]T) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
