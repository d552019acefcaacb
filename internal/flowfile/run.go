package flowfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// Names in paths that are no step's.
const (
	inputName = "input"
	lastName  = "last"
	itemName  = "item"
)

// player does a definition's steps.
type player struct {
	def     Definition
	outputs map[string]json.RawMessage
}

// New makes a flow of a definition that [Check] has found valid. outputs are the schemas of the
// agents' own outputs, by their names: an agent without one answers with a text.
func New(name string, d Definition, outputs map[string]json.RawMessage) flow.Flow {
	p := &player{d, outputs}
	o := &flow.Options{
		Description: d.Description, Input: d.Input, Output: d.Output, Rules: d.Rules, Default: d.Default, AnswerTimeouts: d.AnswerTimeouts, Limits: d.Limits, OnLimit: d.OnLimit, ResumeWithin: time.Duration(d.ResumeWithin), Redact: d.Redact,
	}
	uses := d.uses()
	for _, a := range uses.agents {
		o.Agents = append(o.Agents, agent.SubAgent{Agent: a})
	}
	o.Tools, o.Models = uses.tools, uses.models
	if len(d.Output) == 0 {
		return flow.New(name, func(c flow.Context, in string) (string, error) {
			v, err := p.run(c, in)
			return textOf(v), err
		}, o)
	}
	return flow.New(name, func(c flow.Context, in string) (json.RawMessage, error) {
		v, err := p.run(c, in)
		if err != nil {
			return nil, err
		}
		return rawOf(v), nil
	}, o)
}

// uses are the names of what steps use, each once.
type uses struct {
	agents, models []string
	tools          []string // as an agent names them: "mcp:SERVER" for those of an MCP server
}

func (d Definition) uses() (u uses) {
	add := func(list *[]string, name string) {
		if name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	d.each(func(s *Step) {
		add(&u.agents, s.Agent)
		add(&u.models, s.Model)
		name := s.Tool
		if server, _, of := strings.Cut(name, tool.Separator); of {
			name = "mcp:" + server
		}
		add(&u.tools, name)
	})
	return u
}

// each visits every step.
func (d Definition) each(do func(*Step)) { eachOf(d.Steps, do) }

func eachOf(steps []Step, do func(*Step)) {
	for i := range steps {
		s := &steps[i]
		do(s)
		for _, list := range [][]Step{s.Parallel, s.Choose, s.Steps} {
			eachOf(list, do)
		}
		if s.Map != nil {
			eachOf(s.Map.Steps, do)
		}
		if s.Repeat != nil {
			eachOf(s.Repeat.Steps, do)
		}
	}
}

func (p *player) run(c flow.Context, in string) (any, error) {
	input, err := inputOf(in, p.def.Input)
	if err != nil {
		return nil, err
	}
	return p.steps(c, p.def.Steps, p.def.Result, &scope{values: map[string]any{inputName: input}})
}

// inputOf returns the input that fits a schema: the text as JSON, or else as it is.
func inputOf(text string, schema json.RawMessage) (any, error) {
	if len(schema) == 0 {
		return text, nil
	}
	why := model.Fits(schema, json.RawMessage(text))
	switch {
	case why != "" && model.Fits(schema, rawOf(text)) == "":
		return text, nil
	case why != "":
		return nil, agent.Errorf(agent.CodeInvalidInput, "the run's input does not fit the flow: %s", why).WithPath("input")
	}
	return jsonOf(text), nil
}

// steps does a list of steps, and returns what they result in.
func (p *player) steps(c flow.Context, steps []Step, result Value, s *scope) (any, error) {
	var last any
	for i := range steps {
		v, err := p.step(c, &steps[i], s)
		if err != nil {
			return nil, err
		}
		if steps[i].Fail == "" {
			s.values[steps[i].name()], last = v, v
		}
	}
	if len(result) > 0 {
		return s.value(result), nil
	}
	return last, nil
}

func (p *player) step(c flow.Context, st *Step, s *scope) (any, error) {
	if holds, err := s.holds(st.If); !holds || err != nil {
		return nil, err
	}
	switch st.kind() {
	case kindAgent:
		return p.agent(c, st, s)
	case kindTool:
		return flow.Tool[string](c, st.Tool, arguments(s.value(st.Arguments)), &flow.StepOptions{Name: st.name(), Timeout: time.Duration(st.Timeout), Attempts: st.Attempts, OnUnknown: st.OnUnknown})
	case kindGenerate:
		return p.generate(c, st, s)
	case kindAsk:
		return p.ask(c, st, s)
	case kindApprove:
		return p.approve(c, st, s)
	case kindWait:
		return p.wait(c, st, s)
	case kindMap:
		return p.each(c, st.name(), st.Map, s)
	case kindParallel:
		return p.parallel(c, st, s)
	case kindChoose:
		return p.choose(c, st, s)
	case kindRepeat:
		return p.repeat(c, st.name(), st.Repeat, s)
	case kindSteps:
		return p.scoped(c, st.name(), st.Steps, st.Result, s.below())
	}
	return nil, agent.Errorf(agent.CodeFlowFailed, "%s", s.text(st.Fail)).WithPath(pathIn(c, st.name()))
}

// pathIn returns the path of a step, for an error that no step of package flow has.
func pathIn(c flow.Context, name string) string {
	return strings.TrimPrefix(flow.Path(c)+"/"+name, "/")
}

// arguments returns a tool's arguments: none is an empty object.
func arguments(v any) any {
	if v == nil {
		return struct{}{}
	}
	return v
}

func (p *player) agent(c flow.Context, st *Step, s *scope) (any, error) {
	o := &flow.AgentOptions{Name: st.name(), Context: s.text(st.Context), Output: st.Output}
	task := textOf(s.value(st.Task))
	if len(st.Output) == 0 && len(p.outputs[st.Agent]) == 0 {
		return flow.Agent[string](c, st.Agent, task, o)
	}
	raw, err := flow.Agent[json.RawMessage](c, st.Agent, task, o)
	return jsonOf(string(raw)), err
}

func (p *player) generate(c flow.Context, st *Step, s *scope) (any, error) {
	o := flow.Prompt{Model: st.Model, Instructions: s.text(st.Instructions), Text: s.text(st.Generate), Output: st.Output, MaxOutputTokens: st.MaxOutputTokens}
	if len(st.Output) == 0 {
		return flow.Generate[string](c, st.name(), o)
	}
	raw, err := flow.Generate[json.RawMessage](c, st.name(), o)
	return jsonOf(string(raw)), err
}

func (p *player) ask(c flow.Context, st *Step, s *scope) (any, error) {
	o := &flow.AskOptions{Name: st.name(), Context: s.text(st.Context), Choices: st.Choices, Schema: st.Answer, Remind: time.Duration(st.Remind), Deadline: time.Duration(st.Deadline), Default: st.Default}
	if len(st.Answer) == 0 {
		return flow.Ask[string](c, s.text(st.Ask), o)
	}
	raw, err := flow.Ask[json.RawMessage](c, s.text(st.Ask), o)
	return jsonOf(string(raw)), err
}

func (p *player) approve(c flow.Context, st *Step, s *scope) (any, error) {
	subject := s.value(st.Subject)
	d, err := flow.Approve(c, s.text(st.Approve), subject, &flow.ApproveOptions{
		Name: st.name(), Context: s.text(st.Context), Approvers: st.Approvers, Confirm: st.Confirm != "", Remind: time.Duration(st.Remind), Deadline: time.Duration(st.Deadline), ApproveAtDeadline: st.Default == agent.DefaultApprove,
	})
	if d.Subject != nil {
		subject = jsonOf(string(d.Subject))
	}
	return map[string]any{"approved": d.Approved, "by": d.By, "reason": d.Reason, "expired": d.Expired, "subject": subject}, err
}

func (p *player) wait(c flow.Context, st *Step, s *scope) (any, error) {
	var until agent.Conditions
	if st.Wait.Topic != "" {
		until.Any = append(until.Any, agent.Condition{Event: &agent.EventCondition{Topic: s.text(st.Wait.Topic), Match: st.Wait.Match}})
	}
	if st.Wait.After > 0 {
		until.Any = append(until.Any, agent.Condition{After: st.Wait.After})
	}
	if st.Wait.At != "" {
		at, err := timeOf(s.text(st.Wait.At))
		if err != nil {
			return nil, agent.Errorf(agent.CodeBadOutput, "wait %s: at %w", st.name(), err).WithPath(pathIn(c, st.name()))
		}
		until.Any = append(until.Any, agent.Condition{At: at})
	}
	e, err := flow.Wait(c, until, &flow.WaitOptions{Name: st.name()})
	return jsonOf(string(rawOf(e))), err
}

// each does steps with each item.
func (p *player) each(c flow.Context, name string, m *Map, s *scope) (any, error) {
	over := s.value(m.Over)
	if text, ok := over.(string); ok {
		if listed := jsonOf(text); listed != nil {
			over = listed
		}
	}
	items, ok := over.([]any)
	if !ok && over != nil { // what is missing has no items
		return nil, agent.Errorf(agent.CodeBadOutput, "map %s: over is no list: %.100s", name, rawOf(over)).WithPath(pathIn(c, name))
	}
	o := &flow.MapOptions{Width: m.Width}
	if m.Need != nil {
		if o.Need = flow.Need(*m.Need); o.Need == 0 {
			o.Need = flow.Collect
		}
	}
	with := func(item any) *scope {
		in := s.below()
		in.values[m.as()] = item
		return in
	}
	if m.Key != "" {
		o.Key = func(i int) string { return with(items[i]).text(m.Key) }
	}
	out, err := flow.Map(c, name, items, func(c flow.Context, item any) (any, error) { return p.steps(c, m.Steps, m.Result, with(item)) }, o)
	return append([]any{}, flow.Values(out)...), err
}

func (m *Map) as() string {
	if m.As == "" {
		return itemName
	}
	return m.As
}

func (p *player) parallel(c flow.Context, st *Step, s *scope) (any, error) {
	out := map[string]any{}
	_, err := flow.Map(c, st.name(), st.Parallel, func(c flow.Context, branch Step) (any, error) {
		v, err := p.branch(c, &branch, s.below())
		out[branch.name()] = v // one branch runs at a time
		return v, err
	}, &flow.MapOptions{Key: func(i int) string { return st.Parallel[i].name() }})
	return out, err
}

// branch does a step of a parallel. The scope of the branch has its name already.
func (p *player) branch(c flow.Context, st *Step, s *scope) (any, error) {
	if st.kind() != kindSteps {
		return p.step(c, st, s)
	}
	if holds, err := s.holds(st.If); !holds || err != nil {
		return nil, err
	}
	return p.steps(c, st.Steps, st.Result, s)
}

// choose does the first step whose conditions hold.
func (p *player) choose(c flow.Context, st *Step, s *scope) (out any, err error) {
	for i := range st.Choose {
		one := &st.Choose[i]
		if holds, err := s.holds(one.If); err != nil {
			return nil, err
		} else if holds {
			err = flow.Scope(c, st.name(), func(c flow.Context) (err error) {
				out, err = p.step(c, one, s.below())
				return err
			})
			return out, err
		}
	}
	return nil, nil
}

func (p *player) scoped(c flow.Context, name string, steps []Step, result Value, in *scope) (out any, err error) {
	err = flow.Scope(c, name, func(c flow.Context) (err error) {
		out, err = p.steps(c, steps, result, in)
		return err
	})
	return out, err
}

func (p *player) repeat(c flow.Context, name string, r *Repeat, s *scope) (out any, err error) {
	var last map[string]any
	for range r.Most {
		in := s.below()
		in.values[lastName] = last
		if out, err = p.scoped(c, name, r.Steps, r.Result, in); err != nil {
			return nil, err
		}
		if holds, err := in.holds(r.Until); err != nil || holds && len(r.Until) > 0 {
			return out, err
		}
		last = maps.Clone(in.values)
		delete(last, lastName) // or each round would keep all rounds before
	}
	if len(r.Until) > 0 && r.OnMost != OnMostContinue {
		return nil, agent.Errorf(agent.CodeFlowFailed, "repeat %s: until does not hold after %d rounds", name, r.Most).WithPath(pathIn(c, name))
	}
	return out, nil
}

// holds reports whether every value fits its schema.
func (s *scope) holds(all Conditions) (bool, error) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		path, err := pathOf(key)
		if err != nil {
			return false, err
		}
		schema, err := match.Read(all[key])
		if err != nil {
			return false, err
		}
		fits, err := schema.FitsJSON(rawOf(s.at(path)))
		if err != nil {
			return false, agent.Errorf(agent.CodeFlowFailed, "the condition of %s: %w", key, err)
		}
		if !fits {
			return false, nil
		}
	}
	return true, nil
}
