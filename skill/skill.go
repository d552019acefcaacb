package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// FileName is the file that makes a directory a skill.
const FileName = "SKILL.md"

// Limits of a skill. A directory that is over one is refused as a whole.
const (
	MaxInstructions = 64 << 10 // bytes of SKILL.md after its front matter
	MaxText         = 96 << 10 // bytes of [Skill.Text] as JSON, in which "<" takes six
	MaxFiles        = 512      // files, with SKILL.md
	MaxFile         = 8 << 20  // bytes of a file
	MaxBytes        = 32 << 20 // bytes of all files
	MaxDepth        = 8        // directories below one another
	MaxShown        = 64 << 10 // bytes of a file that a model may read

	maxFrontMatter = 16 << 10
	maxDescription = 1024 // characters, as the open format says
	maxCompatible  = 500
)

// Skill is a skill as its directory has it, or as an MCP server lists it ([FromServer]).
type Skill struct {
	agent.Skill
	// License, Compatibility and Metadata are for people; nothing depends on them. A value of
	// Metadata that is no text is its JSON.
	License       string
	Compatibility string
	Metadata      map[string]string
	// MCP are the names of MCP servers that the skill needs.
	MCP []string
	// AllowedTools are the tools as the skill names them. Tools of the embedded
	// [agent.Skill] are the same in Fermata's names.
	AllowedTools []string
	// Instructions are the text of SKILL.md after its front matter. For a skill of a server only
	// [Skill.Loaded] has them.
	Instructions string
	// Files are all files, sorted by path.
	Files []File
	// Remarks are what works, and may not be what its author expects.
	Remarks []string
	// Dir is the skill's directory; empty for a skill of a server.
	Dir string
	// URI is that of SKILL.md for a skill of a server; empty for one of a directory.
	URI string

	origin *origin // nil for a skill of a directory
}

// File is a file of a skill.
type File struct {
	Path   string `json:"path"` // with slashes, from the skill's directory
	Size   int64  `json:"size"`
	Digest string `json:"digest"`

	uri string // of a file of a server
}

// File returns a file of the skill, and whether there is one with this path.
func (s *Skill) File(name string) (File, bool) {
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Path == name })
	if i < 0 {
		return File{}, false
	}
	return s.Files[i], true
}

// Text returns what a model reads while the skill is active: its instructions, and the
// names of its other files.
func (s *Skill) Text() string {
	var b strings.Builder
	b.WriteString(s.Instructions)
	if len(s.Files) > 1 {
		fmt.Fprintf(&b, "\n\n[Other files of this skill. The tool %s reads one, with the skill's name and the file's path:", agent.SkillTool)
		for i, f := range s.Files {
			if f.Path == FileName {
				continue
			}
			if i > maxListed {
				fmt.Fprintf(&b, " and %d more", len(s.Files)-i)
				break
			}
			b.WriteString(" " + f.Path)
		}
		b.WriteString("]")
	}
	return b.String()
}

// CheckText returns [agent.CodeTooLarge] if the skill's text is longer than [MaxText] as
// JSON. [Read] calls it.
func (s *Skill) CheckText() error {
	raw, err := json.Marshal(s.Text())
	if err == nil && len(raw) > MaxText {
		err = agent.Errorf(agent.CodeTooLarge, "the instructions and the names of files have %d bytes as JSON, in which each <, > and & takes six, and may have %d: move a part into another file of the skill", len(raw), MaxText)
	}
	return err
}

// maxListed is how many files the model is told of.
const maxListed = 100

// digestOf returns the digest of all files: of their paths and their bytes.
func digestOf(files []File) string {
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%s %q\n", f.Digest, f.Path)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// Known are the names that other agents give to tools that Fermata has, so that skills
// written for them narrow to the same tools.
var known = map[string][]string{
	"read": {"fs_read", "fs_list"}, "ls": {"fs_list"}, "glob": {"fs_list"}, "grep": {"fs_grep"},
	"write": {"fs_write"}, "edit": {"fs_write"}, "multiedit": {"fs_write"},
	"bash": {"shell_run"}, "shell": {"shell_run"}, "webfetch": {"web_fetch"}, "task": {"subagent__*"},
}

// ownNames returns allowed tools in Fermata's names. A scope in parentheses, as in
// "Bash(git:*)", narrows no arguments here: rules do.
func ownNames(allowed []string) (tools []string, scoped bool) {
	for _, name := range allowed {
		bare, _, has := strings.Cut(name, "(")
		scoped = scoped || has
		// Claude's names of MCP tools: mcp__SERVER__TOOL.
		bare = strings.TrimPrefix(bare, "mcp__")
		mine, ok := known[strings.ToLower(bare)]
		if !ok {
			mine = []string{bare}
		}
		for _, one := range mine {
			if !slices.Contains(tools, one) {
				tools = append(tools, one)
			}
		}
	}
	return tools, scoped
}

// fault returns an error about a skill that says where the fault is.
func fault(dir, format string, args ...any) error {
	return agent.Errorf(agent.CodeInvalidInput, "skill %s: %w", path.Base(strings.ToValidUTF8(dir, "\uFFFD")), fmt.Errorf(format, args...)).WithPath("skills")
}
