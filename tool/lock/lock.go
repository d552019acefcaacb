package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// File is a lock file. It need not exist: the first source creates it. Each call reads it
// again, so what somebody accepts counts at once. Its methods are safe for concurrent
// use, also by many processes of one machine.
type File struct {
	path string
	mu   sync.Mutex
}

// At returns the lock file at a path. Its directory must exist.
func At(path string) *File { return &File{path: path} }

// Path returns the file's path.
func (f *File) Path() string { return f.path }

var _ tool.Pins = (*File)(nil)

// pins is the content of a lock file. V is 1.
type pins struct {
	V       int               `json:"v"`
	Sources map[string]source `json:"sources"`
}

// source is what is pinned of one source: digests of its tools by their full names, of
// what it says about them, and of its skills by their names. Tools is nil while only skills
// were used, and Skills is empty while none was.
type source struct {
	Instructions string            `json:"instructions,omitempty"`
	Tools        map[string]string `json:"tools,omitzero"`
	Skills       map[string]string `json:"skills,omitempty"`
}

// unknown reports whether a source was never used. A source that has only listed the
// sign-in tool was not used.
func (s source) unknown(name string) bool {
	for t := range s.Tools {
		if t != signIn(name) {
			return false
		}
	}
	return true
}

func signIn(source string) string { return source + tool.Separator + tool.SignIn }

// Filter returns the tools that are as they were pinned, and what differs. The first call
// for a source pins everything. See [tool.Pins].
func (f *File) Filter(name string, tools []agent.ToolSpec, words *string) (held tool.Held, err error) {
	p, err := f.read()
	if err != nil {
		return held, err
	}
	// A source that listed only the sign-in tool is pinned when it lists the others.
	if first := p.Sources[name]; first.unknown(name) && (first.Tools == nil || !pinned(tools, nil).unknown(name)) {
		if err := f.change(func(p *pins) {
			was := p.Sources[name]
			if !was.unknown(name) { // another process was faster
				return
			}
			now := pinned(tools, words)
			if words == nil { // the words were pinned while it listed only the sign-in tool
				now.Instructions = was.Instructions
			}
			now.Skills = was.Skills
			p.Sources[name], held.New = now, true
		}); err != nil {
			return tool.Held{}, err
		}
		if p, err = f.read(); err != nil {
			return tool.Held{}, err
		}
	}
	held.Tools, held.Changes = p.Sources[name].compare(name, tools, words)
	return held, nil
}

// Compare returns the changes that [File.Filter] would return, and writes nothing. was
// reports whether the source was used before.
func (f *File) Compare(name string, tools []agent.ToolSpec, words *string) (changes []tool.Change, was bool, err error) {
	p, err := f.read()
	if err != nil || p.Sources[name].unknown(name) {
		return nil, false, err
	}
	_, changes = p.Sources[name].compare(name, tools, words)
	return changes, true, nil
}

// Accept pins all tools that a source lists, and forgets those that it no longer lists.
func (f *File) Accept(name string, tools []agent.ToolSpec, words string) error {
	return f.change(func(p *pins) {
		now := pinned(tools, &words)
		now.Skills = p.Sources[name].Skills
		p.Sources[name] = now
	})
}

// AcceptOne pins one tool by its digest, a skill if the name is SOURCE/SKILL, or the
// source's words if the name is the source's. It serves for what only a worker can see. An
// invalid digest is [agent.CodeInvalidInput].
func (f *File) AcceptOne(name, digest string) error {
	if raw, err := hex.DecodeString(strings.TrimPrefix(digest, digestPrefix)); err != nil || len(raw) != sha256.Size || !strings.HasPrefix(digest, digestPrefix) {
		return agent.Errorf(agent.CodeInvalidInput, "%q is no digest; it is sha256: and 64 hex digits, as in a worker's log", digest)
	}
	// No tool and no source has a "/" in its name.
	of, skill, isSkill := strings.Cut(name, SkillSeparator)
	if isSkill {
		return f.acceptSkill(of, skill, digest)
	}
	of, _, isTool := strings.Cut(name, tool.Separator)
	return f.change(func(p *pins) {
		s := p.Sources[of]
		if s.Tools == nil {
			s.Tools = map[string]string{}
		}
		if isTool {
			s.Tools[name] = digest
		} else {
			s.Instructions = digest
		}
		p.Sources[of] = s
	})
}

func pinned(tools []agent.ToolSpec, words *string) source {
	s := source{Tools: map[string]string{}}
	for _, t := range tools {
		s.Tools[t.Name] = Digest(t)
	}
	if words != nil && *words != "" {
		s.Instructions = digestOf(*words)
	}
	return s
}

// compare compares what a source lists now with what is pinned. Tools that are gone do
// not matter: they can't be called.
func (s source) compare(name string, tools []agent.ToolSpec, words *string) (kept []agent.ToolSpec, changes []tool.Change) {
	for _, t := range tools {
		was, known := s.Tools[t.Name]
		switch now := Digest(t); {
		// The sign-in tool is ours, so it needs no pin.
		case was == now || t.Name == signIn(name) && !known:
			kept = append(kept, t)
		default:
			changes = append(changes, tool.Change{Name: t.Name, New: !known, Digest: now})
		}
	}
	if words != nil && *words != "" && digestOf(*words) != s.Instructions {
		changes = append(changes, tool.Change{Name: name, New: s.Instructions == "", Digest: digestOf(*words)})
	}
	return kept, changes
}

// Digest returns the digest of a tool's name, description, schema and read-only flag:
// "sha256:" and 64 hex digits. The order of keys in the schema does not matter.
func Digest(t agent.ToolSpec) string {
	var schema any
	d := json.NewDecoder(strings.NewReader(string(t.Input)))
	// A float64 would make different large numbers equal.
	d.UseNumber()
	if d.Decode(&schema) != nil {
		schema = string(t.Input)
	}
	return digestOf(map[string]any{"name": t.Name, "description": t.Description, "input": schema, "read_only": t.ReadOnly})
}

// DigestOfWords returns the digest of what a source says about its tools.
func DigestOfWords(words string) string { return digestOf(words) }

const digestPrefix = "sha256:"

func digestOf(v any) string {
	raw, _ := json.Marshal(v) // texts and decoded JSON: it can't fail
	sum := sha256.Sum256(raw)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// Sources returns the names of the sources that were used, in alphabetical order.
func (f *File) Sources() ([]string, error) {
	p, err := f.read()
	return slices.Sorted(maps.Keys(p.Sources)), err
}
