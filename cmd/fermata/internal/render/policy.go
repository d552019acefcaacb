package render

import (
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// policy shows what limits, lessons, skills, the notebook and checks have come to.
func (t *Printer) policy(e agent.Event) {
	switch {
	case e.Extended != "":
		t.note("%s is renewed", e.Extended)
	case e.Moved != nil:
		t.note("the limit of turns moves from %d to %d (%s)", e.Moved.From, e.Moved.To, e.Moved.Reason)
	case e.Lesson != nil:
		t.note("lesson (%s): %s", e.Lesson.Kind, untrusted.Line(e.Lesson.Text, maxAsked))
	case e.Skill != nil:
		t.skill(e)
	case e.Notebook != nil:
		t.note("  the notebook has version %d", e.Notebook.Version)
	case e.Progress != nil:
		t.note("  %s", Progress(e.Progress))
	case e.Check != nil && e.Type == agent.EventCheckDone:
		t.note("%s", CheckLine(e.Check))
	}
}

// Progress says on one line how far a model says it is.
func Progress(p *agent.Progress) string {
	text := untrusted.Line(p.Line(), maxAsked)
	if n := len(p.Entries); n > 0 {
		text = strings.TrimSuffix(fmt.Sprintf("%d of %d done: %s", p.Done(), n, text), ": ")
	}
	return "progress: " + text
}
