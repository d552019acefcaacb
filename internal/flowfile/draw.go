package flowfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mermaid draws a valid definition as a Mermaid flowchart: what a run may do. Agents are boxes with
// double sides, tools are boxes, calls of models are slanted, people are hexagons, waits are rounded,
// and conditions are diamonds. Steps of a map, a repeat, a branch or a group have a frame.
func Mermaid(d Definition) string {
	p := &pen{depth: 1}
	p.line(`start(["start"])`)
	p.join(p.list(d.Steps, []end{{node: "start"}}), "finish")
	p.line(`finish(["end"])`)
	return "flowchart TD\n" + p.out.String() + p.arrows.String()
}

// pen writes a drawing.
type pen struct {
	out    strings.Builder
	arrows strings.Builder // behind all nodes: an arrow inside of a frame would pull its nodes into it
	depth  int
	last   int // the number of the last node
}

// end is a node from which the drawing goes on, with what the arrow says.
type end struct{ node, label string }

func (p *pen) line(format string, args ...any) {
	p.out.WriteString(strings.Repeat("    ", p.depth))
	fmt.Fprintf(&p.out, format+"\n", args...)
}

// node draws a node, and returns its name. shape has %s where its text is.
func (p *pen) node(shape, format string, args ...any) string {
	p.last++
	name := fmt.Sprintf("n%d", p.last)
	p.line("%s"+shape, name, label(fmt.Sprintf(format, args...)))
	return name
}

// maxLabel is how many characters of a text a node shows.
const maxLabel = 60

// label returns a text as a node can have it.
func label(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxLabel {
		text = string(r[:maxLabel-1]) + "…"
	}
	return MermaidText(text)
}

// MermaidText returns a text as it can stand between quotes in a drawing: whatever it says, it can't
// end its label.
func MermaidText(text string) string {
	return strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "`", "#96;").Replace(text)
}

// join draws arrows to a node.
func (p *pen) join(from []end, to string) {
	for _, e := range from {
		arrow := "-->"
		if e.label != "" {
			arrow = "-->|" + e.label + "|"
		}
		fmt.Fprintf(&p.arrows, "    %s %s %s\n", e.node, arrow, to)
	}
}

func (p *pen) list(steps []Step, from []end) []end {
	for i := range steps {
		from = p.step(&steps[i], from)
	}
	return from
}

// step draws a step, and returns where the drawing goes on.
func (p *pen) step(s *Step, from []end) []end {
	if len(s.If) == 0 {
		return p.done(s, from)
	}
	ask := p.condition(s.If)
	p.join(from, ask)
	return append(p.done(s, []end{{ask, "yes"}}), end{ask, "no"})
}

func (p *pen) condition(c Conditions) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		all = append(all, key+fits(c[key]))
	}
	return p.node(`{"%s"}`, "%s", strings.Join(all, ", "))
}

// fits says what a schema wants of a value.
func fits(schema json.RawMessage) string {
	v, _ := jsonOf(string(schema)).(map[string]any)
	if one, only := v["const"]; only && len(v) == 1 {
		return " = " + textOf(one)
	}
	return " fits " + string(rawOf(v))
}

// done draws what a step does.
func (p *pen) done(s *Step, from []end) []end {
	one := func(shape, format string, args ...any) []end {
		n := p.node(shape, format, args...)
		p.join(from, n)
		return []end{{node: n}}
	}
	switch s.kind() {
	case kindAgent:
		return one(`[["%s"]]`, "%s", titled(s.name(), s.Agent))
	case kindTool:
		return one(`["%s"]`, "%s", titled(s.name(), s.Tool))
	case kindGenerate:
		return one(`[/"%s"/]`, "%s: %s", s.name(), s.Generate)
	case kindAsk:
		return one(`{{"%s"}}`, "ask: %s", s.Ask)
	case kindApprove:
		return one(`{{"%s"}}`, "approve: %s", s.Approve)
	case kindWait:
		return one(`("%s")`, "wait for %s", s.Wait.words())
	case kindFail:
		one(`>"%s"]`, "fail: %s", s.Fail)
		return nil
	case kindChoose:
		return p.choose(s, from)
	case kindParallel:
		return p.parallel(s, from)
	case kindMap:
		return p.frame(fmt.Sprintf("%s: each %s of %s", s.name(), s.Map.as(), textOf(jsonOf(string(s.Map.Over)))), func() []end { return p.list(s.Map.Steps, from) })
	case kindRepeat:
		return p.repeat(s, from)
	}
	return p.frame(s.name(), func() []end { return p.list(s.Steps, from) })
}

// titled returns a step's name with who does it.
func titled(name, who string) string {
	if name == who {
		return name
	}
	return name + ": " + who
}

func (w *Wait) words() string {
	var list []string
	if w.Topic != "" {
		list = append(list, w.Topic)
	}
	if w.After > 0 {
		list = append(list, w.After.String())
	}
	if w.At != "" {
		list = append(list, w.At)
	}
	if len(list) == 0 {
		return "a resume"
	}
	return strings.Join(list, " or ")
}

// frame draws a frame around what a function draws.
func (p *pen) frame(title string, inside func() []end) []end {
	p.last++
	p.line(`subgraph g%d["%s"]`, p.last, label(title))
	p.depth++
	ends := inside()
	p.depth--
	p.line("end")
	return ends
}

func (p *pen) choose(s *Step, from []end) (ends []end) {
	for i := range s.Choose {
		one := &s.Choose[i]
		if len(one.If) == 0 {
			return append(ends, p.done(one, from)...)
		}
		ask := p.condition(one.If)
		p.join(from, ask)
		ends = append(ends, p.done(one, []end{{ask, "yes"}})...)
		from = []end{{ask, "no"}}
	}
	return append(ends, from...)
}

func (p *pen) parallel(s *Step, from []end) []end {
	return p.frame(s.name()+": at the same time", func() (ends []end) {
		for i := range s.Parallel {
			ends = append(ends, p.step(&s.Parallel[i], from)...)
		}
		return ends
	})
}

// repeat draws the rounds: an arrow leads back from the condition.
func (p *pen) repeat(s *Step, from []end) []end {
	return p.frame(fmt.Sprintf("%s: %d rounds at most", s.name(), s.Repeat.Most), func() []end {
		round := p.node(`(("%s"))`, "round")
		p.join(from, round)
		ends := p.list(s.Repeat.Steps, []end{{node: round}})
		if len(s.Repeat.Until) == 0 {
			again := p.node(`{"%s"}`, "was it round %d?", s.Repeat.Most)
			p.join(ends, again)
			p.join([]end{{again, "no"}}, round)
			return []end{{again, "yes"}}
		}
		enough := p.condition(s.Repeat.Until)
		p.join(ends, enough)
		p.join([]end{{enough, "no"}}, round)
		return []end{{enough, "yes"}}
	})
}
