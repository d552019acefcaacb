package flowfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/match"
)

// Bounds of a flow.
const (
	maxSteps  = 500   // in all lists
	maxDepth  = 6     // lists inside of one another
	maxRounds = 1_000 // of a repeat
	maxWidth  = 128   // of a map: a run has as many open steps
	maxPath   = 200   // bytes of a step's path
	numbers   = 5     // bytes that the path's number of an item or a round may have
)

// Known is what a file has beside the flow.
type Known struct {
	// Agents are the output schemas of the agents and flows by their names; nil is a text.
	Agents map[string]json.RawMessage
	// Tool returns why no step can call a tool of a name; nil if one can.
	Tool func(name string) error
	// Model returns why no step can call the model at a path; nil if one can. The error begins with
	// the path, and has it.
	Model func(path, name string) error
	// Schema returns why nothing can be checked with the JSON Schema at a path; nil if it can. The
	// error begins with the path of the fault, and has it.
	Schema func(path string, schema json.RawMessage) error
}

// Check returns all that is wrong with a definition, joined. Each error has the path of its place,
// such as steps[2].map.steps[0].task, and begins with it. Nothing of a definition with an error can
// run.
func Check(d Definition, known Known) error {
	c := &check{known: known, names: map[string]bool{}}
	d.each(func(s *Step) {
		c.count++
		c.names[s.called()] = true
	})
	if c.count > maxSteps {
		c.add("steps", "are %d with all inside of them, and %d are allowed", c.count, maxSteps)
		return errors.Join(c.faults...)
	}
	c.schema("input", d.Input)
	c.schema("output", d.Output)
	c.list(d.Steps, d.Result, place{"", &names{shapes: map[string]shape{inputName: shapeOr(d.Input)}}, 0, 0})
	return errors.Join(c.faults...)
}

// check collects what is wrong.
type check struct {
	known  Known
	names  map[string]bool // of all steps, wherever they are
	count  int
	faults []error
}

func (c *check) add(path, format string, args ...any) {
	c.fault(agent.CodeInvalidInput, path, fmt.Sprintf(format, args...))
}

func (c *check) fault(code agent.Code, path, text string) {
	c.faults = append(c.faults, agent.Errorf(code, "%s %s", path, text).WithPath(path))
}

// names are the values that a step sees.
type names struct {
	shapes map[string]shape
	above  *names
}

func (n *names) find(name string) (shape, bool) {
	for ; n != nil; n = n.above {
		if s, ok := n.shapes[name]; ok {
			return s, true
		}
	}
	return shape{}, false
}

func (n *names) all() (list []string) {
	for ; n != nil; n = n.above {
		list = slices.AppendSeq(list, maps.Keys(n.shapes))
	}
	slices.Sort(list)
	return list
}

// place is where a list of steps is.
type place struct {
	path  string // of the part that has the list, in the file
	sees  *names
	depth int
	used  int // bytes of the path of its steps, when the flow runs
}

// at returns the path of a key of the part.
func (p place) at(key string) string { return strings.TrimPrefix(p.path+"."+key, ".") }

// below returns the place of a list of a part of a step, which has a name of so many bytes in paths.
func (p place) below(path string, used int) place {
	return place{path, &names{shapes: map[string]shape{}, above: p.sees}, p.depth + 1, p.used + used + 1}
}

// list checks steps that are done one after another, and the result.
func (c *check) list(steps []Step, result Value, p place) {
	if len(steps) == 0 {
		c.add(p.at("steps"), "needs a step")
	}
	if p.depth >= maxDepth {
		c.add(p.at("steps"), "are inside of %d other lists, and %d are allowed; make them a flow of their own", p.depth, maxDepth-1)
		return
	}
	for i := range steps {
		at := p.at(fmt.Sprintf("steps[%d]", i))
		c.step(&steps[i], at, p)
		if steps[i].Fail == "" {
			p.sees.shapes[steps[i].called()] = c.result(&steps[i])
		}
	}
	c.value(p.at("result"), result, p.sees)
}

// called returns the name of a step, which may be invalid.
func (s *Step) called() string {
	if s.Name == "" && s.Agent == "" && s.Tool == "" && len(s.kinds()) == 0 {
		return ""
	}
	return s.name()
}

// step checks a step.
func (c *check) step(s *Step, at string, p place) {
	kinds := s.kinds()
	switch len(kinds) {
	case 0:
		c.add(at, "does nothing: write one of %s", strings.Join(slices.Sorted(maps.Keys(Keys)), ", "))
		return
	case 1:
	default:
		c.add(at+"."+kinds[1], "goes with another step: this one has %s", kinds[0])
		return
	}
	kind := kinds[0]
	for _, key := range s.set() {
		if key != kind && !slices.Contains(Keys[kind], key) {
			c.add(at+"."+key, "belongs to a step of another kind; %s may have %s", kind, strings.Join(append([]string{"name", "if"}, Keys[kind]...), ", "))
		}
	}
	c.conditions(at+".if", s.If, p.sees)
	c.name(s, at, p)
	c.leaf(s, at, p.sees)
	c.block(s, at, p)
}

// name checks a step's name.
func (c *check) name(s *Step, at string, p place) {
	where, name := at, s.name()
	if s.Name != "" {
		where = at + ".name"
	}
	_, taken := p.sees.find(name)
	switch {
	case s.Fail != "" && s.Name != "":
		c.add(where, "belongs to a step with a result, and fail has none")
	case s.Fail != "":
	case !nameForm.MatchString(name):
		c.add(where, "has the name %.70q; a name has letters, digits, \"_\" and \"-\"", name)
	case name == inputName || name == lastName || name == itemName:
		c.add(where, "has the name %s, which stands for something else; use another", name)
	case taken:
		c.add(where, "has the name %s, as something before it; give it another with name:", name)
	case p.used+len(name) > maxPath:
		c.add(where, "has a path with more than %d bytes when the flow runs; use shorter names", maxPath)
	}
}

// leaf checks what an agent, a tool or a person does.
func (c *check) leaf(s *Step, at string, sees *names) {
	if _, known := c.known.Agents[s.Agent]; s.Agent != "" && !known {
		c.fault(agent.CodeUnknownAgent, at+".agent", fmt.Sprintf("is %.60q, and this file has no such agent or flow; there are %s", s.Agent, strings.Join(slices.Sorted(maps.Keys(c.known.Agents)), ", ")))
	}
	if s.Agent != "" && len(s.Task) == 0 {
		c.add(at, "needs a task for its agent")
	}
	if s.Tool != "" {
		if err := c.known.Tool(s.Tool); err != nil {
			c.fault(agent.CodeOf(err), at+".tool", err.Error())
		}
		if _, object := jsonOf(string(s.Arguments)).(map[string]any); len(s.Arguments) > 0 && !object {
			c.add(at+".arguments", "must be an object")
		}
	}
	if s.Generate != "" {
		c.model(s, at)
	}
	c.text(at+".context", s.Context, sees)
	c.text(at+".generate", s.Generate, sees)
	c.text(at+".instructions", s.Instructions, sees)
	c.text(at+".ask", s.Ask, sees)
	c.text(at+".approve", s.Approve, sees)
	c.text(at+".fail", s.Fail, sees)
	c.value(at+".task", s.Task, sees)
	c.value(at+".arguments", s.Arguments, sees)
	c.value(at+".subject", s.Subject, sees)
	c.schema(at+".output", s.Output)
	c.schema(at+".answer", s.Answer)
	c.options(s, at)
	if s.Wait != nil {
		c.wait(s.Wait, at+".wait", sees)
	}
}

// model checks who is called with a prompt.
func (c *check) model(s *Step, at string) {
	if s.Model == "" {
		c.add(at, "needs the model that is called with its prompt")
	} else if err := c.known.Model(at+".model", s.Model); err != nil {
		c.faults = append(c.faults, err)
	}
	if s.MaxOutputTokens < 0 {
		c.add(at+".max_output_tokens", "is %d; it may be 0 or more", s.MaxOutputTokens)
	}
}

// wait checks what a step waits for.
func (c *check) wait(w *Wait, at string, sees *names) {
	c.text(at+".topic", w.Topic, sees)
	if len(w.Match) > 0 && w.Topic == "" {
		c.add(at+".match", "belongs to a topic")
	}
	if w.After < 0 {
		c.add(at+".after", "is a negative time")
	}
	if _, err := match.Read(w.Match); err != nil {
		c.add(at+".match", "%v", err)
	}
	c.text(at+".at", w.At, sees)
	list, err := parts(w.At)
	switch {
	case err != nil || w.At == "": // a fault above
	case len(list) == 1 && list[0].path == nil:
		if _, err := timeOf(w.At); err != nil {
			c.add(at+".at", "%v", err)
		}
	case len(list) == 1:
		if s, _ := c.walk(list[0].path, sees); s.of != nil || s.fields != nil {
			c.add(at+".at", "is no time")
		}
	}
}

// options checks numbers and words that have few values.
func (c *check) options(s *Step, at string) {
	switch {
	case s.Attempts < 0 || s.Attempts > 100:
		c.add(at+".attempts", "is %d; it may be 0 to 100", s.Attempts)
	case s.Timeout < 0 || s.Remind < 0 || s.Deadline < 0:
		c.add(at, "has a negative time")
	case s.Confirm != "" && s.Confirm != agent.ConfirmDigest:
		c.add(at+".confirm", "must be %s, not %.60q", agent.ConfirmDigest, s.Confirm)
	case s.Default != "" && s.Deadline == 0:
		c.add(at+".default", "is what a deadline decides: set deadline too")
	case s.Approve != "" && !slices.Contains([]string{"", agent.DefaultReject, agent.DefaultApprove}, s.Default):
		c.add(at+".default", "must be %s or %s, not %.60q", agent.DefaultReject, agent.DefaultApprove, s.Default)
	case !slices.Contains([]flow.OnUnknown{"", flow.OnUnknownAsk, flow.OnUnknownAgain, flow.OnUnknownFail}, s.OnUnknown):
		c.add(at+".on_unknown", "must be %s, %s or %s, not %.60q", flow.OnUnknownAsk, flow.OnUnknownAgain, flow.OnUnknownFail, s.OnUnknown)
	}
}

// block checks what has steps of its own.
func (c *check) block(s *Step, at string, p place) {
	used := len(s.name())
	switch {
	case s.Map != nil:
		c.each(s.Map, p.below(at+".map", used+numbers), p.sees)
	case s.Repeat != nil:
		c.repeat(s.Repeat, p.below(at+".repeat", used+numbers))
	case s.Steps != nil:
		c.list(s.Steps, s.Result, p.below(at, used))
	case s.Parallel != nil:
		c.branches(s.Parallel, at+".parallel", p, used)
	case s.Choose != nil:
		c.branches(s.Choose, at+".choose", p, used)
		for i := range s.Choose[:max(0, len(s.Choose)-1)] {
			if len(s.Choose[i].If) == 0 {
				c.add(fmt.Sprintf("%s.choose[%d]", at, i), "has no if, so nothing behind it is ever done; put it last")
			}
		}
	}
}

// branches checks steps of which none sees another.
func (c *check) branches(steps []Step, at string, p place, used int) {
	if len(steps) == 0 {
		c.add(at, "needs a step")
	}
	if p.depth+1 >= maxDepth {
		c.add(at, "is inside of %d other lists, and %d are allowed; make it a flow of its own", p.depth+1, maxDepth-1)
		return
	}
	seen := map[string]bool{}
	for i := range steps {
		s, where := &steps[i], fmt.Sprintf("%s[%d]", at, i)
		if name := s.called(); seen[name] {
			c.add(where, "has the name %s, as a branch before it; give it another with name:", name)
		}
		seen[s.called()] = true
		c.step(s, where, p.below(where, used+1+len(s.called())))
	}
}

func (c *check) each(m *Map, p place, sees *names) {
	c.value(p.at("over"), m.Over, sees)
	over := shape{}
	switch v := jsonOf(string(m.Over)).(type) {
	case nil:
		c.add(p.at("over"), "is missing: write a list, or the path of one")
	case []any:
	case string:
		list, err := parts(v)
		if err != nil || len(list) != 1 || list[0].path == nil {
			c.add(p.at("over"), "must be a list, or the path of one")
			break
		}
		if over, _ = c.walk(list[0].path, sees); over.text || over.fields != nil {
			c.add(p.at("over"), "is no list")
		}
	default:
		c.add(p.at("over"), "must be a list, or the path of one")
	}
	_, taken := sees.find(m.as())
	switch {
	case !nameForm.MatchString(m.as()) || m.as() == inputName || m.as() == lastName || c.names[m.as()]:
		c.add(p.at("as"), "is %.70q, which is no name or another's; use another", m.as())
	case taken:
		c.add(p.path, "calls its item %s, as the map around it; give it another name with as:", m.as())
	case m.Width < 0 || m.Width > maxWidth:
		c.add(p.at("width"), "is %d; it may be 0 to %d", m.Width, maxWidth)
	case m.Need != nil && *m.Need < 0:
		c.add(p.at("need"), "is %d; it may be 0 or more", *m.Need)
	}
	item := shape{}
	if over.of != nil {
		item = *over.of
	}
	p.sees.shapes[m.as()] = item
	c.text(p.at("key"), m.Key, p.sees)
	c.list(m.Steps, m.Result, p)
}

func (c *check) repeat(r *Repeat, p place) {
	switch {
	case r.Most == 0:
		c.add(p.path, "needs most: how often its steps are done at most")
	case r.Most < 0 || r.Most > maxRounds:
		c.add(p.at("most"), "is %d; it may be 1 to %d", r.Most, maxRounds)
	}
	switch {
	case !slices.Contains([]OnMost{"", OnMostFail, OnMostContinue}, r.OnMost):
		c.add(p.at("on_most"), "must be %s or %s, not %.60q", OnMostFail, OnMostContinue, r.OnMost)
	case r.OnMost != "" && len(r.Until) == 0:
		c.add(p.at("on_most"), "belongs to until")
	}
	last := map[string]shape{}
	for i := range r.Steps {
		if r.Steps[i].Fail == "" {
			last[r.Steps[i].called()] = c.result(&r.Steps[i])
		}
	}
	p.sees.shapes[lastName] = shape{fields: last}
	c.list(r.Steps, r.Result, p)
	c.conditions(p.at("until"), r.Until, p.sees)
}
