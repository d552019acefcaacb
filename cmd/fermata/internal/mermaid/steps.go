package mermaid

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/internal/flowfile"
)

// mostBeside is how many parts of one scope are drawn; of more, the first and the last ones are.
const mostBeside = 40

// maxName bounds a name in the drawing, in characters.
const maxName = 60

// Steps draws what a flow has done until now: its steps by their paths, with how each ended, how
// long it took and what it cost. Steps of a scope follow each other; the items of a fan-out are
// side by side. A step that did not succeed because the flow no longer waited for it is not needed;
// it is drawn otherwise than one that failed.
func Steps(steps []agent.StepRecord, now time.Time) string {
	d := &drawing{now: now}
	d.line("flowchart TD")
	d.depth++
	d.sequence(treeOf(steps).parts)
	for _, s := range styles {
		d.line("classDef %s %s", s[0], s[1])
	}
	return d.out.String()
}

// styles are the classes of steps and how they look.
var styles = [][2]string{
	{"ok", "fill:#e6f4ea,stroke:#188038,color:#000"},
	{"failed", "fill:#fce8e6,stroke:#c5221f,color:#000"},
	{"dropped", "fill:#f1f3f4,stroke:#9aa0a6,stroke-dasharray:4,color:#5f6368"},
	{"open", "fill:#fff,stroke:#5f6368,stroke-dasharray:4,color:#000"},
	{"asks", "fill:#fef7e0,stroke:#f29900,color:#000"},
}

// part is a step, or a scope with the parts in it. The parts of a fan-out are its items.
type part struct {
	name  string
	step  *agent.StepRecord // nil for a scope
	fan   bool
	parts []*part
}

// treeOf puts steps into their scopes, in the order in which they were asked for. The scopes of a
// fan-out's items are named NAME.KEY: they become a fan-out NAME with an item KEY.
func treeOf(steps []agent.StepRecord) *part {
	root := &part{}
	scopes := map[string]*part{}
	for i, s := range steps {
		at, path := root, ""
		names := strings.Split(s.Path, "/")
		for _, name := range names[:len(names)-1] {
			if fan, key, ok := strings.Cut(name, "."); ok {
				path += "/" + fan + "."
				at = at.enter(scopes, path, fan)
				at.fan = true
				path, name = path+key, key
			} else {
				path += "/" + name
			}
			at = at.enter(scopes, path, name)
		}
		at.parts = append(at.parts, &part{name: names[len(names)-1], step: &steps[i]})
	}
	return root
}

// enter returns the scope with a path, which is a part of p.
func (p *part) enter(scopes map[string]*part, path, name string) *part {
	if scopes[path] == nil {
		scopes[path] = &part{name: name}
		p.parts = append(p.parts, scopes[path])
	}
	return scopes[path]
}

// drawing is a flowchart in progress.
type drawing struct {
	now   time.Time
	out   strings.Builder
	depth int
	ids   int
}

func (d *drawing) line(format string, args ...any) {
	fmt.Fprintf(&d.out, strings.Repeat("  ", d.depth)+format+"\n", args...)
}

func (d *drawing) id() string {
	d.ids++
	return fmt.Sprintf("n%d", d.ids)
}

// sequence draws parts that follow each other.
func (d *drawing) sequence(parts []*part) {
	before := ""
	for _, id := range d.parts(parts) {
		if before != "" {
			d.line("%s --> %s", before, id)
		}
		before = id
	}
}

// parts draws parts, and returns their ids.
func (d *drawing) parts(parts []*part) (ids []string) {
	first, last := parts, []*part(nil)
	if len(parts) > mostBeside {
		first, last = parts[:mostBeside/2], parts[len(parts)-mostBeside/2:]
	}
	for _, p := range first {
		ids = append(ids, d.part(p, ""))
	}
	if last == nil {
		return ids
	}
	ids = append(ids, d.leftOut(parts[len(first):len(parts)-len(last)]))
	for _, p := range last {
		ids = append(ids, d.part(p, ""))
	}
	return ids
}

// part draws a part with the names of the scopes that only it is in.
func (d *drawing) part(p *part, in string) string {
	name := in + label(p.name)
	if p.step != nil {
		return d.step(*p.step, name)
	}
	if len(p.parts) == 1 && !p.fan {
		return d.part(p.parts[0], name+"/")
	}
	id := d.id()
	d.line(`subgraph %s["%s"]`, id, name)
	d.depth++
	if p.fan {
		d.parts(p.parts)
	} else {
		d.sequence(p.parts)
	}
	d.depth--
	d.line("end")
	return id
}

func (d *drawing) step(s agent.StepRecord, name string) string {
	id := d.id()
	lines := []string{name, d.stateOf(s)}
	if s.Session != "" {
		below := "session " + label(s.Session)
		if s.Cost > 0 {
			below += ", " + render.Money(s.Cost)
		}
		lines = append(lines, below)
	}
	d.line(`%s["%s"]:::%s`, id, strings.Join(lines, "<br>"), classOf(s))
	return id
}

// stateOf says how a step ended, or what it does.
func (d *drawing) stateOf(s agent.StepRecord) string {
	from := s.Started
	if from.IsZero() {
		from = s.Asked
	}
	switch {
	case notNeeded(s):
		return fmt.Sprintf("not needed (%s), %s", s.Status, render.Took(s.Ended.Sub(from)))
	case s.Status != "":
		return fmt.Sprintf("%s, %s", s.Status, render.Took(s.Ended.Sub(from)))
	case s.Request != "" && !s.Answered:
		return fmt.Sprintf("asks %s for %s", label(s.Request), render.Took(d.now.Sub(from)))
	}
	return "open for " + render.Took(d.now.Sub(from))
}

// notNeeded reports whether a step came to nothing because nobody waited for it: the branches beside
// it had decided.
func notNeeded(s agent.StepRecord) bool {
	return s.Dropped && s.Status != "" && s.Status != agent.CallOK
}

func classOf(s agent.StepRecord) string {
	switch {
	case notNeeded(s) || s.Status == agent.CallSkipped:
		return "dropped"
	case s.Status == agent.CallOK:
		return "ok"
	case s.Status != "":
		return "failed"
	case s.Request != "" && !s.Answered:
		return "asks"
	}
	return "open"
}

// leftOut draws parts as one that only counts their steps.
func (d *drawing) leftOut(parts []*part) string {
	id, n := d.id(), map[string]int{}
	for _, p := range parts {
		p.count(n)
	}
	var counts []string
	for _, s := range styles {
		if n[s[0]] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n[s[0]], s[0]))
		}
	}
	d.line(`%s["… %d more<br>%s"]:::open`, id, len(parts), strings.Join(counts, ", "))
	return id
}

// count counts the steps of a part by their class.
func (p *part) count(n map[string]int) {
	if p.step != nil {
		n[classOf(*p.step)]++
	}
	for _, below := range p.parts {
		below.count(n)
	}
}

func label(name string) string {
	return flowfile.MermaidText(untrusted.Cut(untrusted.Name(name), maxName))
}
