package render

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// skill prints what happened to a skill.
func (t *Printer) skill(e agent.Event) {
	u := e.Skill
	switch {
	case u == nil:
	case u.Error != nil:
		t.note("the skill %s can't be used: %s", untrusted.Name(u.Name), untrusted.Line(u.Error.Message, maxAsked))
	case e.Type == agent.EventSkillActivated:
		t.note("the skill %s is active", untrusted.Name(u.Name))
	default:
		t.note("the skill %s is not active any more: %s", untrusted.Name(u.Name), u.Reason)
	}
}
