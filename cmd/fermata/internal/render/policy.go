package render

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// policy shows what limits and lessons have come to.
func (t *Printer) policy(e agent.Event) {
	switch {
	case e.Extended != "":
		t.note("%s is renewed", e.Extended)
	case e.Moved != nil:
		t.note("the limit of turns moves from %d to %d (%s)", e.Moved.From, e.Moved.To, e.Moved.Reason)
	case e.Lesson != nil:
		t.note("lesson (%s): %s", e.Lesson.Kind, untrusted.Line(e.Lesson.Text, maxAsked))
	}
}
