package agentsfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/flowfile"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// Flow is a flow of a file.
type Flow struct {
	flow.Flow
	// Written is the flow as the file has it.
	Written flowfile.Definition
}

// WorkerFlows returns the flows for a worker's options.
func (f *File) WorkerFlows() (list []flow.Flow) {
	for _, w := range f.Flows {
		list = append(list, w.Flow)
	}
	return list
}

// readFlows reads the flows after the agents and servers, which their steps name.
func (f *File) readFlows(c *checker, part entry) []entry {
	list := c.mapping(part, "names of flows, each with its steps below")
	outputs := map[string]json.RawMessage{}
	for name := range c.names {
		outputs[name] = nil
	}
	for _, def := range f.Agents {
		outputs[def.Name] = def.Output
	}
	found := map[string]flowfile.Definition{}
	for _, e := range list {
		if c.names[e.name] {
			c.add(agent.CodeInvalidInput, e.key, "%s: an agent has this name too; use another", e.path)
			continue
		}
		def, ok := decode[flowfile.Definition](c, e, e.path)
		c.names[e.name], outputs[e.name] = true, def.Output
		if ok {
			found[e.name] = def
		}
	}
	// When all flows are known: one may be a step of another.
	known := flowfile.Known{Agents: outputs, Tool: f.stepTool, Model: f.stepModel, Schema: stepSchema}
	for _, e := range list {
		if def, ok := found[e.name]; ok && f.checkFlow(c, e, def, known) {
			f.lines[e.name] = e
			f.Flows = append(f.Flows, Flow{flowfile.New(e.name, def, outputs), def})
		}
	}
	return list
}

// checkFlow reports whether a flow is valid by itself.
func (f *File) checkFlow(c *checker, e entry, def flowfile.Definition, known flowfile.Known) bool {
	before := len(c.faults)
	for _, err := range apart(flowfile.Check(def, known)) {
		var what *agent.Error
		errors.As(err, &what)
		c.add(what.Code, e.at(what.Path), "%s.%s", e.path, what.Message)
	}
	if len(c.faults) > before {
		return false
	}
	as := flowfile.New(e.name, def, nil).Definition()
	for _, name := range modelsOf(as) {
		f.checkPrice(c, e, as, name)
	}
	checkLists(c, e, as)
	// Cleared, because checkLists has checked each of them with its line.
	as.Rules, as.Agents, as.AnswerTimeouts = nil, nil, agent.AnswerTimeouts{}
	for _, err := range apart(as.Check()) {
		var what *agent.Error
		errors.As(err, &what)
		c.add(what.Code, e.at(what.Path), "%w", err)
	}
	return len(c.faults) == before
}

// stepTool returns why no step of a flow can call a tool; nil if one can.
func (f *File) stepTool(name string) error {
	server, own, _ := strings.Cut(name, tool.Separator)
	if _, known := f.servers[server]; own != "" && known || slices.Contains(workerTools, name) {
		return f.checkWeb(name, "is "+name+", which")
	}
	return agent.Errorf(agent.CodeUnknownTool, "is %s, and no tool is called so; there are %s, and SERVER__TOOL for a server under mcp%s", quote(name), strings.Join(workerTools, ", "), meant(name, workerTools))
}

// stepModel returns why no step of a flow can call a model; nil if one can. It also records a
// script, which no tool may write.
func (f *File) stepModel(path, name string) error {
	if err := f.resolve(name, f.Dir); err != nil {
		return agent.Errorf(agent.CodeOf(err), "%s: %w", path, err).WithPath(path)
	}
	return nil
}

// modelsOf lists the models that an agent calls, or the steps of a flow, and those of their judges.
func modelsOf(def agent.Definition) (list []string) {
	for _, use := range usesOf(def) {
		list = append(list, use.model)
	}
	return list
}

// modelUse is a model that an agent or a flow names, and the field that names it.
type modelUse struct{ at, model string }

// usesOf lists where an agent or a flow names models. A judge that names none has the agent's.
func usesOf(def agent.Definition) (list []modelUse) {
	if def.Model != agent.FlowModel { // stands for the flow's function
		list = append(list, modelUse{"model", def.Model})
	}
	for i, name := range def.Fallbacks {
		list = append(list, modelUse{fmt.Sprintf("fallbacks[%d]", i), name})
	}
	eachCheck(def, func(at string, k agent.Check) {
		if k.Judge != nil && k.Judge.Model != "" {
			list = append(list, modelUse{at + ".judge.model", k.Judge.Model})
		}
	})
	return list
}

// stepSchema returns what is wrong with a schema of a flow.
func stepSchema(path string, schema json.RawMessage) error {
	if err := checkSchema(schema, path); err != nil {
		return err
	}
	if err := model.CheckOutput(schema); err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "%s: %w", path, err).WithPath(path)
	}
	return nil
}
