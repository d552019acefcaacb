package lock

import (
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/tool"
)

// SkillSeparator stands between the names of a source and of its skill.
const SkillSeparator = "/"

// FilterSkills pins the skills of a source by their names and digests at the first call for
// the source, and first is then true. Later it returns the skills that are new or have
// another digest: do not use these. A change's name is SOURCE/SKILL. If FilterSkills returns an
// error, use none of the skills. The digest of a skill is that of skill.Skill.ListedDigest.
func (f *File) FilterSkills(source string, skills map[string]string) (changes []tool.Change, first bool, err error) {
	changes, was, err := f.CompareSkills(source, skills)
	if err != nil || was || len(skills) == 0 {
		return changes, false, err
	}
	if err := f.change(func(p *pins) {
		s := p.Sources[source]
		if len(s.Skills) > 0 { // another process was faster
			return
		}
		s.Skills, first = skills, true
		p.Sources[source] = s
	}); err != nil {
		return nil, false, err
	}
	changes, _, err = f.CompareSkills(source, skills)
	return changes, first, err
}

// CompareSkills returns the changes that [File.FilterSkills] would return, and writes nothing.
// was reports whether skills of the source were used before.
func (f *File) CompareSkills(source string, skills map[string]string) (changes []tool.Change, was bool, err error) {
	p, err := f.read()
	known := p.Sources[source].Skills
	if err != nil || len(known) == 0 {
		return nil, false, err
	}
	for _, name := range slices.Sorted(maps.Keys(skills)) {
		if pin, ok := known[name]; pin != skills[name] {
			changes = append(changes, tool.Change{Name: source + SkillSeparator + name, New: !ok, Digest: skills[name]})
		}
	}
	return changes, true, nil
}

// AcceptSkills pins skills of a source by their names and digests, and forgets its others.
func (f *File) AcceptSkills(source string, skills map[string]string) error {
	return f.change(func(p *pins) {
		s := p.Sources[source]
		s.Skills = skills
		p.Sources[source] = s
	})
}

func (f *File) acceptSkill(source, name, digest string) error {
	return f.change(func(p *pins) {
		s := p.Sources[source]
		if s.Skills == nil {
			s.Skills = map[string]string{}
		}
		s.Skills[name] = digest
		p.Sources[source] = s
	})
}
