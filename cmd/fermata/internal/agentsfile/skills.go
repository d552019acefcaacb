package agentsfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/skill"
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
	for i, dir := range dirs {
		if strings.TrimSpace(dir) == "" {
			c.add(agent.CodeInvalidInput, part.value.Content[i], "skills[%d] is no path of a directory", i)
			return
		}
		dirs[i] = within(f.Dir, dir)
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

// checkSkills checks that the skills that an agent names exist.
func (f *File) checkSkills(c *checker, e entry, def agent.Definition) {
	var names []string
	for _, s := range f.skills {
		names = append(names, s.Name)
	}
	for i, name := range def.Skills {
		if name == "*" || slices.Contains(names, name) {
			continue
		}
		c.add(agent.CodeNotFound, e.at(fmt.Sprintf("skills[%d]", i)), "%s.skills[%d]: there is no skill %s in the directories under skills%s", e.path, i, quote(name), meant(name, names))
	}
	if def.SkillMatch != nil && def.SkillMatch.Strategy == agent.SkillsByHost {
		c.add(agent.CodeInvalidInput, e.at("skill_match"), "%s.skill_match.strategy host needs a Go function, which only a worker of your own has (worker.Options.SkillMatcher)", e.path)
	}
}
