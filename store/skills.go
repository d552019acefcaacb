package store

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Skills returns the skills that are active at the view's end, with their instructions, in
// the order in which they became so. A run that begins with nothing has none.
func (v *View) Skills() []agent.SkillUpdate {
	active := skills(v.events)
	list := make([]agent.SkillUpdate, len(active))
	for i, a := range active {
		list[i] = a.update
	}
	return list
}

// activeSkill is the activation of a skill, and the number of its event.
type activeSkill struct {
	seq    int64
	update agent.SkillUpdate
}

func skills(events []agent.Event) (list []activeSkill) {
	for _, e := range KnownEvents(events) {
		switch {
		case e.Started != nil && e.Started.Carry == agent.CarryReset:
			list = nil
		case e.Type == agent.EventSkillActivated && e.Skill != nil:
			list = append(without(list, e.Skill.Name), activeSkill{e.Seq, *e.Skill})
		case e.Type == agent.EventSkillDeactivated && e.Skill != nil:
			list = without(list, e.Skill.Name)
		}
	}
	return list
}

func without(list []activeSkill, name string) []activeSkill {
	return slices.DeleteFunc(list, func(a activeSkill) bool { return a.update.Name == name })
}
