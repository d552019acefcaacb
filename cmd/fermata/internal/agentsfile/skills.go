package agentsfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// readSkills reads the skills of the file's directories. A skill that is not sound is an
// error, since an agent would be without it.
func (f *File) readSkills(c *checker, part entry) {
	if part.value == nil {
		return
	}
	var dirs []string
	if part.value.Kind != yaml.SequenceNode || part.value.Decode(&dirs) != nil {
		c.add(agent.CodeInvalidInput, part.key, "skills must be a list of directories, such as [skills]")
		return
	}
	// Nodes and not dirs: decoding leaves a null out.
	for i, n := range part.value.Content {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || strings.TrimSpace(n.Value) == "" {
			c.add(agent.CodeInvalidInput, part.value.Content[i], "skills[%d] is no path of a directory", i)
			return
		}
		dirs[i] = within(f.Dir, n.Value)
	}
	all, err := skill.ReadDirs(dirs...)
	for _, one := range apart(err) {
		c.add(agent.CodeInvalidInput, part.key, "%w", one)
	}
	f.skills, f.skillDirs = all, dirs
}

// Skills returns the skills of the file's directories, sorted by name.
func (f *File) Skills() []*skill.Skill { return f.skills }

// SkillDirs returns the absolute paths of the file's directories with skills.
func (f *File) SkillDirs() []string { return f.skillDirs }

// skillFiles returns the directories with skills, and each SKILL.md: a hard link to that may
// lie elsewhere. The next worker puts their texts into the instructions of agents.
func (f *File) skillFiles() []string {
	list := slices.Clone(f.skillDirs)
	for _, s := range f.skills {
		list = append(list, filepath.Join(s.Dir, skill.FileName))
	}
	return list
}

// skillsWritable returns an error if tools may write a directory that lies within one of the
// skills. There they could write a skill, or a file of one, which no list of files has yet.
func (f *File) skillsWritable(tools, servers []string) error {
	var dirs []string
	if f.shell.Confine != tool.ConfineNever && slices.Contains(tools, workspace.ShellTool) {
		dirs = append(f.paths(f.shell.Write), f.workspace)
	}
	if slices.Contains(tools, workspace.WriteTool) {
		dirs = append(dirs, f.workspace)
	}
	for _, name := range servers {
		if e := f.servers[name]; len(e.Command) > 0 && e.Confine != tool.ConfineNever {
			dirs = append(dirs, f.paths(e.Write)...)
		}
	}
	skills := confine.LookUp(f.skillDirs)
	for _, dir := range dirs {
		if path := skills.Containing(dir); path != "" {
			return agent.Errorf(agent.CodeDenied, "no tool may write what is in %s, which has the skills, and tools may write %s: give them a folder of their own", path, dir)
		}
	}
	return nil
}

// checkSkills checks that the skills that an agent names exist.
func (f *File) checkSkills(c *checker, e entry, def agent.Definition) {
	var names []string
	for _, s := range f.skills {
		names = append(names, s.Name)
	}
	for i, name := range def.Skills {
		if name == "*" && len(f.skillDirs) == 0 {
			c.add(agent.CodeNotFound, e.at(fmt.Sprintf("skills[%d]", i)), "%s.skills[%d]: \"*\" stands for all skills of the file, and it has none; name their directories with skills: at the top of the file", e.path, i)
		}
		if name == "*" || slices.Contains(names, name) {
			continue
		}
		if server, _, ok := agent.ServedSkill(name); ok {
			if _, known := f.servers[server]; !known {
				c.add(agent.CodeNotFound, e.at(fmt.Sprintf("skills[%d]", i)), "%s.skills[%d]: there is no server %s under mcp", e.path, i, quote(server))
			}
			continue
		}
		c.add(agent.CodeNotFound, e.at(fmt.Sprintf("skills[%d]", i)), "%s.skills[%d]: there is no skill %s in the directories under skills%s", e.path, i, quote(name), meant(name, names))
	}
	if def.SkillMatch != nil && def.SkillMatch.Strategy == agent.SkillsByHost {
		c.add(agent.CodeInvalidInput, e.at("skill_match"), "%s.skill_match.strategy host needs a Go function, which only a worker of your own has (worker.Options.SkillMatcher)", e.path)
	}
}

// CheckUserSkills refuses skills that a user can't activate for an agent, as a run would. For an
// agent that is not in the file only the worker knows.
func (f *File) CheckUserSkills(name string, skills []string) error {
	def, err := f.Agent(name)
	if err != nil {
		return nil
	}
	var list []string
	only := map[string]bool{}
	for _, s := range f.skills {
		switch {
		case !UsesSkill(def, s):
		case s.ModelOnly:
			only[s.Name] = true
		default:
			list = append(list, s.Name)
		}
	}
	for _, one := range skills {
		switch {
		case slices.ContainsFunc(def.Skills, isServed): // only the worker knows which these are
		case only[one]:
			return agent.Errorf(agent.CodeDenied, "skill %s is not for users: it says user-invocable: false", one).WithPath("skills")
		case !slices.Contains(list, one):
			has := "none for users"
			if len(list) > 0 {
				has = strings.Join(list, ", ")
			}
			return agent.Errorf(agent.CodeNotFound, "agent %s has no skill %s; it has %s%s", name, quote(one), has, meant(one, list)).WithPath("skills")
		}
	}
	return nil
}

// CheckSession refuses a session for a stateless agent, as a run would. For an agent that is not in the
// file only the worker knows.
func (f *File) CheckSession(name, session string) error {
	def, err := f.Agent(name)
	if err != nil || session == "" || !def.Stateless {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "agent %s is stateless, and keeps no session: leave --session out", name).WithPath("session")
}

func isServed(name string) bool {
	_, _, ok := agent.ServedSkill(name)
	return ok
}

// UsesSkill reports whether an agent has a skill.
func UsesSkill(def agent.Definition, s *skill.Skill) bool {
	return slices.ContainsFunc(def.Skills, func(name string) bool { return stands(name, s) })
}

// stands reports whether a name among an agent's skills stands for a skill.
func stands(name string, s *skill.Skill) bool {
	if s.Server == "" {
		return name == s.Name || name == "*"
	}
	server, one, ok := agent.ServedSkill(name)
	return ok && server == s.Server && (one == "" || one == s.Name || one == s.URI)
}

// SkillRemarks returns what works about a skill, and may not be what is expected: its own
// remarks, and tools and MCP servers that it needs and an agent lacks.
func (f *File) SkillRemarks(s *skill.Skill) []string {
	remarks := slices.Clone(s.Remarks)
	used := false
	for _, def := range f.Agents {
		if !UsesSkill(def, s) {
			continue
		}
		used = true
		for _, server := range s.MCP {
			if !slices.Contains(def.Tools, sourcePrefix+server) {
				remarks = append(remarks, fmt.Sprintf("it needs the MCP server %s, which agent %s does not name", quote(server), def.Name))
			}
		}
		for _, pattern := range s.Tools {
			if !hasTool(def, pattern) {
				remarks = append(remarks, fmt.Sprintf("its allowed-tools name %s, and agent %s has no such tool", quote(pattern), def.Name))
			}
		}
	}
	if !used {
		remarks = append(remarks, "no agent names it under skills")
	}
	return remarks
}

// hasTool reports whether an agent may have a tool that a pattern stands for. Which tools an
// MCP server has is not known here.
func hasTool(def agent.Definition, pattern string) bool {
	server, _, ok := strings.Cut(pattern, agent.SourceSeparator)
	if ok && slices.Contains(def.Tools, sourcePrefix+server) {
		return true
	}
	matches := func(name string) bool { return glob.MatchesAny([]string{pattern}, name) }
	return slices.ContainsFunc(def.WithDefaults().Tools, matches) || slices.ContainsFunc(def.ClientTools, func(t agent.ToolSpec) bool { return matches(t.Name) }) ||
		slices.ContainsFunc(def.Agents, func(a agent.SubAgent) bool { return matches(a.Tool()) })
}
