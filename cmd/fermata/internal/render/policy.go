package render

import (
	"cmp"
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

// policyEvent says on one line what an event of a policy is about.
func policyEvent(e agent.Event) string {
	switch {
	case e.Moved != nil:
		return fmt.Sprintf("%s %d → %d (%s)", e.Moved.Limit, e.Moved.From, e.Moved.To, e.Moved.Reason)
	case e.Lesson != nil:
		return fmt.Sprintf("%s: %s", e.Lesson.Kind, e.Lesson.Text)
	case e.Matched != nil:
		return Words(string(e.Matched.Strategy), candidates(e.Matched.Candidates))
	case e.Skill != nil && e.Skill.Error != nil:
		return untrusted.Name(e.Skill.Name) + ": " + e.Skill.Error.Message
	case e.Skill != nil:
		return Words(untrusted.Name(e.Skill.Name), cmp.Or(e.Skill.Reason, string(e.Skill.Cause)))
	}
	return string(e.Extended)
}

// candidates names the skills that fit a task.
func candidates(list []agent.SkillCandidate) string {
	if len(list) == 0 {
		return "none"
	}
	names := make([]string, len(list))
	for i, one := range list {
		names[i] = untrusted.Name(one.Name)
	}
	return strings.Join(names, ", ")
}

// Progress says on one line how far a model says it is.
func Progress(p *agent.Progress) string {
	text := untrusted.Line(p.Line(), maxAsked)
	if n := len(p.Entries); n > 0 {
		text = strings.TrimSuffix(fmt.Sprintf("%d of %d done: %s", p.Done(), n, text), ": ")
	}
	return "progress: " + text
}
