package worker

import (
	"fmt"
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
		if err := s.CheckText(); err != nil { // that of a server is checked when it is read
			faults = append(faults, agent.Errorf(agent.CodeTooLarge, "worker.Options.Skills: skill %q: %w", s.Name, err).WithPath("skills"))
		}
		if first, twice := d.Skills[s.Name]; twice {
			faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "worker.Options.Skills: skill %q is there twice: %s, and %s; leave one out, or give one another name", s.Name, placeOf(first), placeOf(s)).WithPath("skills"))
		}
		d.Skills[s.Name] = s
	}
	return faults
}

// placeOf says where a skill is from.
func placeOf(s *skill.Skill) string {
	if s.Server != "" {
		return "of the MCP server " + s.Server
	}
	return "of a directory"
}

// giveSkills pins the skills that an agent names, and lists them in its instructions.
func giveSkills(a *activities.Agent, d *activities.Activities) (faults []error) {
	def := a.Spec.Definition
	wanted, faults := wantedSkills(def, d)
	for _, s := range wanted {
		if _, twice := a.Spec.Skill(s.Name); !twice {
			a.Spec.Skillset = append(a.Spec.Skillset, s.Skill)
		}
	}
	if err := runsUnasked(a.Spec, d); err != nil {
		faults = append(faults, err)
	}
	switch _, taken := d.Tools[agent.SkillTool]; {
	case len(wanted) == 0:
	case taken:
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "agent %s has skills, so the tool %q is the runtime's: give the worker's tool another name", def.Name, agent.SkillTool).WithPath("tools"))
	case a.Spec.Flow:
		faults = append(faults, agent.Errorf(agent.CodeInvalidInput, "%s is a flow, which has no model that could read skills", def.Name).WithPath("skills"))
	case len(a.Spec.Skillset) > agent.MaxSkills:
		faults = append(faults, agent.Errorf(agent.CodeTooLarge, "agent %s has %d skills, and may have %d", def.Name, len(a.Spec.Skillset), agent.MaxSkills).WithPath("skills"))
	case def.SkillMatch != nil && def.SkillMatch.Strategy == agent.SkillsByHost && d.SkillMatcher == nil:
		faults = append(faults, agent.Errorf(agent.CodeNotSetUp, "agent %s matches skills by the host's function, and worker.Options.SkillMatcher is missing", def.Name).WithPath("skill_match.strategy"))
	}
	if list := listing(a.Spec.Skillset); list != "" {
		a.Spec.Instructions = strings.TrimPrefix(a.Spec.Instructions+"\n\n"+list, "\n\n")
	}
	return faults
}

// wantedSkills returns the skills that an agent names.
func wantedSkills(def agent.Definition, d *activities.Activities) (wanted []*skill.Skill, faults []error) {
	add := func(code agent.Code, format string, args ...any) {
		faults = append(faults, agent.Errorf(code, "agent %s: %s", def.Name, fmt.Sprintf(format, args...)).WithPath("skills"))
	}
	for i, name := range def.Skills {
		server, one, served := agent.ServedSkill(name)
		s, known := d.Skills[name]
		switch {
		case name == "*":
			// Not those of servers: somebody else's words need their own name here.
			wanted = append(wanted, skillsOf(d, func(s *skill.Skill) bool { return s.Server == "" })...)
		case slices.Contains(def.Skills[:i], name):
			add(agent.CodeInvalidInput, "skill %q is named twice", name)
		case served:
			found := skillsOf(d, func(s *skill.Skill) bool {
				return s.Server == server && (one == "" || one == s.Name || one == s.URI)
			})
			if len(found) == 0 {
				add(agent.CodeNotFound, "skill %q: the worker has no such skill of the MCP server %s", name, server)
			}
			wanted = append(wanted, found...)
		case known && s.Server != "":
			add(agent.CodeNotFound, "skill %q is the MCP server %s's: name it %s%s/%s", name, s.Server, agent.ServerPrefix, s.Server, name)
		case !known:
			add(agent.CodeNotFound, "skill %q is not known; the worker has %s", name, names(d.Skills))
		default:
			wanted = append(wanted, s)
		}
	}
	return wanted, faults
}

// skillsOf returns the worker's skills of one kind, sorted by name.
func skillsOf(d *activities.Activities, is func(*skill.Skill) bool) (list []*skill.Skill) {
	for _, name := range slices.Sorted(maps.Keys(d.Skills)) {
		if is(d.Skills[name]) {
			list = append(list, d.Skills[name])
		}
	}
	return list
}

// runsUnasked refuses an agent with skills of a server and with commands that no person approves.
// Whoever runs the server would run programs here.
func runsUnasked(spec agent.Spec, d *activities.Activities) error {
	i := slices.IndexFunc(spec.Skillset, func(s agent.Skill) bool { return s.Server != "" })
	t, known := d.Tools[agent.ShellTool]
	if i < 0 || !known {
		return nil
	}
	shell := d.ToolSpec(t.Spec())
	covers := func(tools []string) bool {
		return len(tools) > 0 && agent.Rule{Do: agent.RulingAsk, Tools: tools}.Covers(shell)
	}
	// A sub-agent, and an agent that checks, has its parent's tools, or those of its entry.
	below := slices.ContainsFunc(spec.Agents, func(a agent.SubAgent) bool { return covers(a.Tools) }) ||
		slices.ContainsFunc(spec.Checks(), func(k agent.Check) bool { return k.Agent != "" && covers(k.Tools) })
	if !covers(spec.Tools) && !below || len(spec.Ceiling) > 0 && !covers(spec.Ceiling) {
		return nil
	}
	rules := slices.DeleteFunc(slices.Clone(spec.Rules), func(r agent.Rule) bool { return !r.Covers(shell) })
	if shell.Approval != nil {
		rules = append(rules, shell.Approval.Rule())
	}
	allowed := slices.ContainsFunc(rules, func(r agent.Rule) bool { return r.Do == agent.RulingAllow })
	always := func(r agent.Rule) bool {
		return len(r.Arguments) == 0 && r.AfterCalls == 0 && !(r.Otherwise && allowed)
	}
	// A deadline that approves is no person.
	lapses := slices.ContainsFunc(rules, func(r agent.Rule) bool {
		return r.Do == agent.RulingAsk && r.AnswerTimeouts.Default == agent.DefaultApprove
	})
	if slices.ContainsFunc(rules, func(r agent.Rule) bool {
		return always(r) && (r.Do == agent.RulingDeny || r.Do == agent.RulingAsk && !lapses)
	}) {
		return nil
	}
	return agent.Errorf(agent.CodeDenied, "agent %s has skills of the MCP server %s, and its %s, or that of an agent below it, asks nobody, or a deadline approves: that server's words would run commands here. Let a person approve each call (tools: {%s: {approval: true}}, or a rule that asks), or take the tool or the skills away", spec.Name, spec.Skillset[i].Server, shell.Name, shell.Name).WithPath("skills")
}

// listing tells the model which skills it may load. Their authors wrote the descriptions, so
// each is on one line, and marked as a quotation.
func listing(skills []agent.Skill) string {
	var b strings.Builder
	for _, s := range skills {
		if s.UserOnly {
			continue
		}
		b.WriteString("\n> " + s.Name)
		if s.Server != "" {
			b.WriteString(" (of the MCP server " + s.Server + ")")
		}
		b.WriteString(": " + s.Description)
		if s.WhenToUse != "" {
			b.WriteString(" When to use it: " + s.WhenToUse)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "You have skills: instructions for one kind of task each. Before a task that one fits, load it with the tool " + agent.SkillTool + ". They are, in their authors' words:" + b.String()
}
