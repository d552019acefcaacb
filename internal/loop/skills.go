package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Skills is the part that knows which skills are active. The log has their instructions.
type Skills struct {
	// Active are in the order in which they became active.
	Active []ActiveSkill `json:"active,omitempty"`
	// Load are skills that the next model call reads: those that a user named, and those that
	// an earlier run had with other words.
	Load []ActiveSkill `json:"load,omitempty"`
	// Files are the start's working files, with which skills are matched.
	Files []string `json:"files,omitempty"`
	// Matched means that skills were matched in this run.
	Matched bool `json:"matched,omitempty"`
}

// ActiveSkill is a skill that is active, or will be.
type ActiveSkill struct {
	Name   string           `json:"name"`
	Digest string           `json:"digest"`
	Cause  agent.SkillCause `json:"cause"`
}

func namesOf(list []ActiveSkill) []string {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = a.Name
	}
	return names
}

func (k Skills) find(name string) int {
	return slices.IndexFunc(k.Active, func(a ActiveSkill) bool { return a.Name == name })
}

// inherit takes over what was active when the session's last run ended, or at a checkpoint.
func (k *Skills) inherit(list []agent.SkillUpdate) {
	k.Active = nil
	for _, u := range list[:min(len(list), agent.MaxActiveSkills)] {
		k.Active = append(k.Active, ActiveSkill{u.Name, u.Digest, u.Cause})
	}
}

// activate and deactivate change the list. States share it, so it is copied.
func (k *Skills) activate(a ActiveSkill) {
	k.deactivate(a.Name)
	k.Active = append(k.Active, a)
}

func (k *Skills) deactivate(name string) {
	k.Active = slices.DeleteFunc(slices.Clone(k.Active), func(a ActiveSkill) bool { return a.Name == name })
}

// named notes that a user has named a skill that is active.
func (k *Skills) named(name string) {
	k.Active = slices.Clone(k.Active)
	k.Active[k.find(name)].Cause = agent.SkillByUser
}

// load lets the next model call read a skill. loaded ends that.
func (k *Skills) load(a ActiveSkill) {
	k.loaded(a.Name)
	if len(k.Load) < agent.MaxActiveSkills {
		k.Load = append(k.Load, a)
	}
}

func (k *Skills) loaded(name string) {
	k.Load = slices.DeleteFunc(slices.Clone(k.Load), func(a ActiveSkill) bool { return a.Name == name })
}

func (k *Skills) setFiles(files []string) { k.Files = files }
func (k *Skills) matched()                { k.Matched = true }

// sound reports whether an imported run can have these skills.
func (s *State) skillsSound() bool {
	bad := func(a ActiveSkill) bool {
		skill, ok := s.Spec.Skill(a.Name)
		return !ok || skill.Digest != a.Digest
	}
	k := s.Skills
	return len(k.Active) <= agent.MaxActiveSkills && len(k.Load) <= agent.MaxActiveSkills && !slices.ContainsFunc(slices.Concat(k.Active, k.Load), bad) && agent.CheckWorkingFiles(k.Files) == nil
}

// beginSkills decides about the skills of earlier runs, and takes those that the start names.
// The run's own Spec counts: a skill with other files is read again.
func (s *step) beginSkills() {
	for _, a := range s.Skills.Active {
		now, has := s.Spec.Skill(a.Name)
		switch {
		case !has:
			s.deactivateSkill(a.Name, "the agent does not have it")
		case now.Digest != a.Digest:
			s.deactivateSkill(a.Name, "its files have changed")
			s.Skills.load(ActiveSkill{a.Name, now.Digest, agent.SkillKept})
		}
	}
	s.wantSkills(s.Origin.Start.Skills)
	if s.Spec.SkillMatch != nil {
		s.Skills.setFiles(s.Origin.Start.WorkingFiles)
	}
}

// mayUseSkills refuses names of skills that a user can't activate.
func (s *step) mayUseSkills(names []string) *agent.Error {
	for _, name := range names {
		switch skill, ok := s.Spec.Skill(name); {
		case !ok:
			return agent.Errorf(agent.CodeNotFound, "agent %s has no skill %q; it has %s", s.agent(), name, s.skillNames()).WithPath("skills")
		case skill.ModelOnly:
			return agent.Errorf(agent.CodeDenied, "skill %s is not for users: it says user-invocable: false", name).WithPath("skills")
		}
	}
	return nil
}

func (s *step) skillNames() string {
	var names []string
	for _, k := range s.Spec.Skillset {
		if !k.ModelOnly {
			names = append(names, k.Name)
		}
	}
	return firstOf(fit(strings.Join(names, ", "), maxReason), "none for users")
}

// wantSkills lets the next model call read skills that a user has named. One that the model has loaded
// is the user's from now on: the model can't end it any more.
func (s *step) wantSkills(names []string) {
	for _, name := range names {
		skill, ok := s.Spec.Skill(name)
		switch {
		case !ok:
		case s.Skills.find(name) >= 0:
			s.Skills.named(name)
		default:
			s.Skills.load(ActiveSkill{name, skill.Digest, agent.SkillByUser})
		}
	}
}

// skillOrder returns what the next model call reads; nil for nothing.
func (s *step) skillOrder() *wire.SkillOrder {
	m := s.Spec.SkillMatch
	o := wire.SkillOrder{Match: m != nil && len(s.Spec.Skillset) > 0 && (!s.Skills.Matched || !m.IsSticky())}
	if o.Match {
		o.Files = s.Skills.Files
	}
	for _, a := range s.Skills.Load {
		o.Load = append(o.Load, agent.SkillUpdate{Name: a.Name, Digest: a.Digest, Cause: a.Cause})
	}
	if !o.Match && len(o.Load) == 0 {
		return nil
	}
	return &o
}

// NextSkills returns the skills that are active after a result, and the names of those that no
// longer match. The activity calls it for the request, and the machine when it has the reply.
func NextSkills(active []agent.SkillUpdate, r wire.SkillResult, m *agent.SkillMatch) (next []agent.SkillUpdate, dropped []string) {
	fits := func(name string) bool {
		top := r.Matching.Candidates[:min(len(r.Matching.Candidates), m.Top())]
		return slices.ContainsFunc(top, func(c agent.SkillCandidate) bool { return c.Name == name })
	}
	for _, a := range active {
		if r.Matching != nil && m != nil && !m.IsSticky() && a.Cause == agent.SkillMatched && !fits(a.Name) {
			dropped = append(dropped, a.Name)
			continue
		}
		next = append(next, a)
	}
	for _, u := range r.Read {
		is := func(a agent.SkillUpdate) bool { return a.Name == u.Name }
		if u.Error == nil && len(next) < agent.MaxActiveSkills && !slices.ContainsFunc(next, is) {
			next = append(next, u)
		}
	}
	return next, dropped
}

// takeSkills takes what the activity that called the model has read. It comes from a worker, so
// only the Spec's own skills count, with the Spec's digests.
func (s *step) takeSkills(r *wire.SkillResult) {
	if r == nil {
		return
	}
	var known []agent.SkillUpdate
	for _, a := range s.Skills.Active {
		known = append(known, agent.SkillUpdate{Name: a.Name, Digest: a.Digest, Cause: a.Cause})
	}
	if r.Matching != nil {
		s.Skills.matched()
		s.record(agent.Event{Type: agent.EventSkillMatched, Matched: r.Matching})
	}
	next, dropped := NextSkills(known, *r, s.Spec.SkillMatch)
	for _, name := range dropped {
		s.deactivateSkill(name, "it no longer fits the task")
	}
	for _, u := range r.Read {
		s.Skills.loaded(u.Name)
		switch fits := slices.ContainsFunc(next, func(a agent.SkillUpdate) bool { return a.Name == u.Name }); {
		case u.Error != nil:
			s.skillFailed(u.Name, u.Error)
		case !fits:
			s.skillFailed(u.Name, agent.Errorf(agent.CodeTooLarge, "%d skills are active already", agent.MaxActiveSkills))
		default:
			s.activateSkill(u)
		}
	}
}

func (s *step) skillFailed(name string, err *agent.Error) {
	e := *err
	e.Message, e.Err = fit(e.Message, maxReason), nil
	s.record(agent.Event{Type: agent.EventSkillFailed, Skill: &agent.SkillUpdate{Name: name, Error: &e}})
}

// activateSkill records that a skill is active, with what the model reads from now on.
func (s *step) activateSkill(u agent.SkillUpdate) {
	skill, ok := s.Spec.Skill(u.Name)
	if i := s.Skills.find(u.Name); !ok || skill.Digest != u.Digest || len(u.Instructions) > maxSkillText || i >= 0 && s.Skills.Active[i].Digest == u.Digest {
		return
	}
	s.Skills.activate(ActiveSkill{u.Name, u.Digest, u.Cause})
	s.Counters.Skill = 1
	s.recordSkill(agent.EventSkillActivated, agent.SkillUpdate{Name: u.Name, Digest: u.Digest, Cause: u.Cause, Instructions: u.Instructions})
}

// maxSkillText bounds what a skill adds to the log, in bytes: its instructions and the names of
// its files.
const maxSkillText = 96 << 10

// maxSkillCalls is how many calls of the tool skill one reply may have. Their results are in the
// answer to one workflow task, each with up to maxSkillText.
const maxSkillCalls = agent.MaxActiveSkills

// deactivateSkill ends a skill. The tools that only it took away come back.
func (s *step) deactivateSkill(name, why string) {
	s.Skills.deactivate(name)
	s.recordSkill(agent.EventSkillDeactivated, agent.SkillUpdate{Name: name, Reason: why})
}

// recordSkill records an update with the tools that the model is offered after it.
func (s *step) recordSkill(t agent.EventType, u agent.SkillUpdate) {
	if remaining, removed := s.Spec.Offered(namesOf(s.Skills.Active)); len(removed) > 0 {
		u.Remaining, u.Removed = remaining, removed
	}
	s.Budget.addBytes(len(u.Instructions))
	s.record(agent.Event{Type: t, Skill: &u})
}

// keepsSkill reports whether a call ends a skill that is not the model's any more. Its activity could
// not know: the log has who loaded a skill, and not who named it later.
func (s *step) keepsSkill(u agent.SkillUpdate) bool {
	at := s.Skills.find(u.Name)
	return u.Reason != "" && at >= 0 && s.Skills.Active[at].Cause == agent.SkillByUser
}

// skillCalled takes what a call of the tool skill has loaded or ended.
func (s *step) skillCalled(i int, u *agent.SkillUpdate) {
	if u == nil || s.Calls.List[i].Result.Status != agent.CallOK {
		return
	}
	if u.Reason != "" {
		if at := s.Skills.find(u.Name); at >= 0 && s.Skills.Active[at].Cause == agent.SkillByModel {
			s.deactivateSkill(u.Name, u.Reason)
		}
		return
	}
	if len(s.Skills.Active) >= agent.MaxActiveSkills {
		s.skillFailed(u.Name, agent.Errorf(agent.CodeTooLarge, "%d skills are active already", agent.MaxActiveSkills))
		return
	}
	u.Cause = agent.SkillByModel
	s.activateSkill(*u)
}

// notOffered returns why a call is rejected whose tool the active skills take away.
func (s *step) notOffered(c agent.ToolCall) string {
	if tool, _ := s.Spec.Tool(c.Tool); s.Spec.Offers(namesOf(s.Skills.Active), tool) {
		return ""
	}
	return fmt.Sprintf("Tool not offered: %s is not among the tools of the active skills (%s).", c.Tool, strings.Join(namesOf(s.Skills.Active), ", "))
}
