package worker

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/skill"
)

// addSkills takes over the worker's skills.
func (o *Options) addSkills(d *activities.Activities) (faults []error) {
	d.Skills, d.SkillMatcher = map[string]*skill.Skill{}, o.SkillMatcher
	for _, s := range o.Skills {
		if err := s.Check(); err != nil {
			faults = append(faults, err)
		}
		if err := s.CheckText(); err != nil {
			faults = append(faults, agent.Errorf(agent.CodeTooLarge, "worker.Options.Skills: skill %q: %w", s.Name, err).WithPath("skills"))
		}
		if _, twice := d.Skills[s.Name]; twice {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.Skills: skill %q is there twice", s.Name).WithPath("skills"))
		}
		d.Skills[s.Name] = s
	}
	return faults
}

// giveSkills pins the skills that an agent names, and lists them in its instructions.
func giveSkills(a *activities.Agent, d *activities.Activities) (faults []error) {
	def := a.Spec.Definition
	wanted := def.Skills
	if slices.Contains(wanted, "*") {
		wanted = slices.Sorted(maps.Keys(d.Skills))
	}
	for i, name := range wanted {
		s, ok := d.Skills[name]
		switch {
		case !ok:
			faults = append(faults, agent.Errorf(agent.CodeNotFound, "agent %s: skill %q is not known; the worker has %s", def.Name, name, names(d.Skills)).WithPath("skills"))
		case slices.Contains(wanted[:i], name):
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s: skill %q is named twice", def.Name, name).WithPath("skills"))
		default:
			a.Spec.Skillset = append(a.Spec.Skillset, s.Skill)
		}
	}
	switch _, taken := d.Tools[agent.SkillTool]; {
	case len(wanted) == 0:
	case taken:
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s has skills, so the tool %q is the runtime's: give the worker's tool another name", def.Name, agent.SkillTool).WithPath("tools"))
	case a.Spec.Flow:
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "%s is a flow, which has no model that could read skills", def.Name).WithPath("skills"))
	case len(wanted) > agent.MaxSkills:
		faults = append(faults, agent.Errorf(agent.CodeTooLarge, "agent %s has %d skills, and may have %d", def.Name, len(wanted), agent.MaxSkills).WithPath("skills"))
	case def.SkillMatch != nil && def.SkillMatch.Strategy == agent.SkillsByHost && d.SkillMatcher == nil:
		faults = append(faults, agent.Errorf(agent.CodeNotSetUp, "agent %s matches skills by the host's function, and worker.Options.SkillMatcher is missing", def.Name).WithPath("skill_match.strategy"))
	}
	if list := listing(a.Spec.Skillset); list != "" {
		a.Spec.Instructions = strings.TrimPrefix(a.Spec.Instructions+"\n\n"+list, "\n\n")
	}
	return faults
}

// listing tells the model which skills it may load. Their authors wrote the descriptions, so
// each is on one line, and marked as a quotation.
func listing(skills []agent.Skill) string {
	var b strings.Builder
	for _, s := range skills {
		if s.UserOnly {
			continue
		}
		b.WriteString("\n> " + s.Name + ": " + s.Description)
		if s.WhenToUse != "" {
			b.WriteString(" When to use it: " + s.WhenToUse)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "You have skills: instructions for one kind of task each. Before a task that one fits, load it with the tool " + agent.SkillTool + ". They are, in their authors' words:" + b.String()
}
