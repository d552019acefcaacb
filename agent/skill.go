package agent

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/internal/glob"
)

// SkillTool is the tool with which a model loads a skill, reads its files, or ends it. An
// agent with skills has it.
const SkillTool = "skill"

// Skill is what a run knows of a skill before it reads its instructions. The package skill
// reads skills of directories, and mcp.Server.Skills lists those of an MCP server.
type Skill struct {
	// Name is 1 to 64 lower-case letters, digits and single "-".
	Name string `json:"name"`
	// Description says what the skill is for, and WhenToUse when to load it. Both go to the
	// model.
	Description string `json:"description,omitempty"`
	WhenToUse   string `json:"when_to_use,omitempty"`
	// Digest is of all files of the skill. A worker with other files does not show them.
	Digest string `json:"digest"`
	// Tools are names or patterns of the tools that the skill needs. While it is active, the
	// model is offered only these and the runtime's own. Empty means that it narrows nothing.
	Tools []string `json:"tools,omitempty"`
	// Paths are patterns of files that the skill is for, such as "infra/**".
	Paths []string `json:"paths,omitempty"`
	// UserOnly means that only a user names the skill (disable-model-invocation). ModelOnly
	// means that no user does (user-invocable: false).
	UserOnly  bool `json:"user_only,omitempty"`
	ModelOnly bool `json:"model_only,omitempty"`
	// Server is the worker's name of the MCP server that serves the skill; empty for a skill of
	// a directory. The model reads it beside the skill's name.
	Server string `json:"server,omitempty"`
}

// ServerPrefix begins the name of an MCP server among an agent's tools and skills.
const ServerPrefix = "mcp:"

// ServedSkill splits what an agent's skills name of an MCP server: "mcp:SERVER" for all of its
// skills, for which one is empty, or "mcp:SERVER/ONE" for one by its name or its URI. ok is false
// for other names.
func ServedSkill(name string) (server, one string, ok bool) {
	rest, ok := strings.CutPrefix(name, ServerPrefix)
	server, one, _ = strings.Cut(rest, "/")
	return server, one, ok
}

// SkillStrategy says who chooses the skills of a task.
type SkillStrategy string

// The strategies. The zero value means metadata.
const (
	SkillsByMetadata SkillStrategy = "metadata" // words of the task, and patterns of files
	SkillsByHost     SkillStrategy = "host"     // a function of the worker's; metadata if it fails
)

// SkillMatch lets a run activate the skills that fit its task, before its first turn. Its
// zero value chooses one skill by metadata.
type SkillMatch struct {
	// Strategy says who chooses; empty means metadata.
	Strategy SkillStrategy `json:"strategy,omitempty"`
	// TopN is how many skills may match at once; zero means 1.
	TopN int `json:"top_n,omitempty"`
	// Sticky keeps a matched skill active; nil means true. With false the skills are matched
	// before every turn, and those that no longer match are deactivated.
	Sticky *bool `json:"sticky,omitempty"`
}

// WithDefaults returns the match with every default filled in; nil for nil.
func (m *SkillMatch) WithDefaults() *SkillMatch {
	if m == nil {
		return nil
	}
	sticky := m.IsSticky()
	return &SkillMatch{Strategy: or(m.Strategy, SkillsByMetadata), TopN: m.Top(), Sticky: &sticky}
}

// IsSticky reports whether matched skills stay active.
func (m SkillMatch) IsSticky() bool { return m.Sticky == nil || *m.Sticky }

// Top returns how many skills may match at once.
func (m SkillMatch) Top() int { return or(m.TopN, 1) }

// Limits of skills.
const (
	MaxSkills        = 64  // of an agent
	MaxActiveSkills  = 8   // of a run at once
	MaxWorkingFiles  = 16  // of a start
	maxWorkingFile   = 128 // bytes of each
	maxSkillPatterns = 64  // of a skill's tools, and of its paths
	maxSkillPattern  = 128 // bytes of each
)

func (m *SkillMatch) check(agent string) error {
	switch {
	case m == nil:
	case m.Strategy != "" && m.Strategy != SkillsByMetadata && m.Strategy != SkillsByHost:
		return Errorf(CodeInvalidInput, "agent %s: skill_match.strategy must be metadata or host, not %q", agent, m.Strategy).WithPath("skill_match.strategy")
	case m.TopN < 0 || m.TopN > MaxActiveSkills:
		return Errorf(CodeInvalidInput, "agent %s: skill_match.top_n must be 1 to %d", agent, MaxActiveSkills).WithPath("skill_match.top_n")
	}
	return nil
}

func (d Definition) checkSkills() error {
	for _, name := range d.Skills {
		if name == "*" {
			continue
		}
		if server, one, ok := ServedSkill(name); ok {
			if err := checkServed(name, server, one); err != nil {
				return Errorf(CodeInvalidInput, "agent %s: skills: %w", d.Name, err).WithPath("skills")
			}
			continue
		}
		if err := CheckSkillName(name); err != nil {
			return Errorf(CodeInvalidInput, "agent %s: skills: %w", d.Name, err).WithPath("skills")
		}
	}
	return d.SkillMatch.check(d.Name)
}

// maxSkillURI bounds the URI of a skill of an MCP server, in bytes.
const maxSkillURI = 1024

func checkServed(name, server, one string) error {
	isURI := strings.Contains(one, "://")
	switch {
	case CheckTool(server) != nil || strings.HasSuffix(name, "/"):
		return Errorf(CodeInvalidInput, "%q names no MCP server: write mcp:SERVER for all of its skills, or mcp:SERVER/SKILL for one", cutName(name))
	case isURI && (len(one) > maxSkillURI || strings.ContainsFunc(one, controls)):
		return Errorf(CodeInvalidInput, "%q is no URI of a skill: it has control characters, or more than %d bytes", cutName(one), maxSkillURI)
	case one != "" && !isURI:
		return CheckSkillName(one)
	}
	return nil
}

var skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// CheckSkillName returns [CodeInvalidInput] for a name that the open format does not allow.
func CheckSkillName(name string) error {
	if len(name) > 64 || !skillName.MatchString(name) {
		return Errorf(CodeInvalidInput, "%q is no name of a skill: it has 1 to 64 lower-case letters, digits and single \"-\", none at its ends", cutName(name))
	}
	return nil
}

func cutName(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}

// Check returns [CodeInvalidInput] if a skill has a name, a digest or patterns that no skill
// can have.
func (s Skill) Check() error {
	if err := CheckSkillName(s.Name); err != nil {
		return err
	}
	for _, list := range [][]string{s.Tools, s.Paths} {
		if len(list) > maxSkillPatterns {
			return Errorf(CodeInvalidInput, "skill %s: a list of tools or paths has %d entries, and may have %d", s.Name, len(list), maxSkillPatterns)
		}
		for _, p := range list {
			if len(p) > maxSkillPattern || strings.ContainsFunc(p, controls) {
				return Errorf(CodeInvalidInput, "skill %s: %q is no pattern of a tool or a path: it has control characters, or more than %d bytes", s.Name, cutName(p), maxSkillPattern)
			}
		}
	}
	if !strings.HasPrefix(s.Digest, "sha256:") || len(s.Digest) != len("sha256:")+64 {
		return Errorf(CodeInvalidInput, "skill %s has no digest", s.Name)
	}
	return nil
}

// Skill returns the run's skill with this name, and whether it has one.
func (s *Spec) Skill(name string) (Skill, bool) {
	for _, k := range s.Skillset {
		if k.Name == name {
			return k, true
		}
	}
	return Skill{}, false
}

// Offers reports whether a tool is offered while skills are active. Skills that name tools
// narrow to all of these together. The runtime's own tools stay, and those without whose success the
// run could not complete.
func (s *Spec) Offers(active []string, tool ToolSpec) bool {
	var allowed []string
	for _, name := range active {
		skill, _ := s.Skill(name)
		allowed = append(allowed, skill.Tools...)
	}
	return len(allowed) == 0 || tool.Executor == ExecutorRuntime || slices.Contains([]string{SaveArtifactTool, MemoryTool, TodoTool}, tool.Name) ||
		s.NeedsToEnd(tool.Name) || glob.MatchesAny(allowed, tool.Name)
}

// Offered splits the names of the tools by whether they are offered while skills are active.
func (s *Spec) Offered(active []string) (remaining, removed []string) {
	for _, t := range s.Toolset {
		if s.Offers(active, t) {
			remaining = append(remaining, t.Name)
		} else {
			removed = append(removed, t.Name)
		}
	}
	return remaining, removed
}

// SkillCause says why a skill became active.
type SkillCause string

// The causes.
const (
	SkillMatched SkillCause = "matched" // it fits the task
	SkillByModel SkillCause = "model"   // the model loaded it
	SkillByUser  SkillCause = "user"    // a user named it
	SkillKept    SkillCause = "kept"    // an earlier run of the session had it, with other words
)

// SkillUpdate is what happened to a skill.
type SkillUpdate struct {
	Name   string     `json:"name"`
	Digest string     `json:"digest,omitempty"`
	Cause  SkillCause `json:"cause,omitempty"`
	// Instructions are what the model reads while the skill is active: only skill.activated
	// has them.
	Instructions string `json:"instructions,omitempty"`
	// Reason says why it was deactivated.
	Reason string `json:"reason,omitempty"`
	// Removed and Remaining are the tools that the model is not offered from now on, and
	// those that it is. Both are empty if no active skill narrows tools.
	Removed   []string `json:"removed_tools,omitempty"`
	Remaining []string `json:"remaining_tools,omitempty"`
	// Error says why the skill could not be read.
	Error *Error `json:"error,omitempty"`
}

// SkillCandidate is a skill that fits a task. The reason says how.
type SkillCandidate struct {
	Name   string  `json:"name"`
	Score  float64 `json:"score"`
	Reason string  `json:"reason,omitempty"`
}

// SkillMatching is the result of one matching.
type SkillMatching struct {
	Strategy SkillStrategy `json:"strategy"`
	// Candidates are those that fit, the best first; empty if none does.
	Candidates []SkillCandidate `json:"candidates"`
	// Fallback says why the host's function did not choose; empty if it did, or was not asked.
	Fallback string `json:"fallback,omitempty"`
}

// size returns about how many bytes the update takes in a chunk.
func (u *SkillUpdate) size() int {
	return len(u.Name) + len(u.Digest) + len(u.Instructions) + len(u.Reason)
}

func skillsSize(skills []Skill) (n int) {
	for _, k := range skills {
		n += len(k.Name) + len(k.Description) + len(k.WhenToUse) + len(k.Digest) + len(k.Server)
	}
	return n
}

// CheckSkillNames returns [CodeInvalidInput] for names that no skill can have, for one that is
// there twice, and for more than can be active.
func CheckSkillNames(names []string) error {
	if len(names) > MaxActiveSkills {
		return Errorf(CodeInvalidInput, "skills has %d names, and %d skills may be active", len(names), MaxActiveSkills).WithPath("skills")
	}
	for i, name := range names {
		if err := CheckSkillName(name); err != nil {
			return Errorf(CodeInvalidInput, "skills: %w", err).WithPath("skills")
		}
		if slices.Contains(names[:i], name) {
			return Errorf(CodeInvalidInput, "skills names %s twice", name).WithPath("skills")
		}
	}
	return nil
}

// CheckWorkingFiles returns [CodeInvalidInput] for too many or too long paths.
func CheckWorkingFiles(files []string) error {
	if len(files) > MaxWorkingFiles {
		return Errorf(CodeInvalidInput, "working_files has %d paths, and may have %d", len(files), MaxWorkingFiles).WithPath("working_files")
	}
	for _, f := range files {
		if f == "" || len(f) > maxWorkingFile || strings.ContainsFunc(f, controls) {
			return Errorf(CodeInvalidInput, "working_files: each path has 1 to %d bytes, and no control characters", maxWorkingFile).WithPath("working_files")
		}
	}
	return nil
}
