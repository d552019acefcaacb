package agentsfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/lock"
)

// Lock returns the lock file beside the agents file: fermata.lock beside fermata.yaml. It
// is nil if the agents file is not a regular file, such as a pipe.
func (f *File) Lock() *lock.File {
	if info, err := os.Stat(f.Path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return lock.At(f.lockPath())
}

func (f *File) lockPath() string {
	base := filepath.Base(f.Path)
	return filepath.Join(f.Dir, strings.TrimSuffix(base, filepath.Ext(base))+".lock")
}

// Pins returns what limits the MCP servers to accepted tools, except for unpinned
// servers.
func (f *File) Pins() tool.Pins {
	l := f.Lock()
	if l == nil {
		return nil
	}
	p := some{Pins: l}
	// Collected when the worker starts: the file does not change while it runs.
	for name, s := range f.servers {
		if s.Unpinned {
			p.free = append(p.free, name)
		}
	}
	return p
}

// Pinned reports whether a server is limited to accepted tools.
func (f *File) Pinned(server string) bool { return !f.servers[server].Unpinned }

// SkillDigests returns the skills of an MCP server by their names, each with the digest that the
// lock file keeps.
func (k *Kit) SkillDigests(server string) map[string]string {
	digests := map[string]string{}
	for _, s := range k.served {
		if s.Server == server {
			digests[s.Name] = s.ListedDigest()
		}
	}
	return digests
}

// KeepAccepted leaves out the skills of MCP servers that are not as they were accepted, and logs
// them. When a server's skills are first used it pins them, unless it is only a look. Call it after
// [Kit.ReadSkills] without a fault. If the lock file can't be used, agents go without the skills of
// an optional server, and those of another server are an error.
func (k *Kit) KeepAccepted(ctx context.Context, look bool) error {
	l := k.file.Lock()
	if l == nil {
		return nil
	}
	var faults []error
	for _, server := range k.file.SkillServers() {
		digests := k.SkillDigests(server)
		if !k.file.Pinned(server) || len(digests) == 0 {
			continue
		}
		changes, err := k.pinSkills(ctx, l, server, digests, look)
		k.served = slices.DeleteFunc(k.served, func(s *skill.Skill) bool {
			return s.Server == server && (err != nil || slices.ContainsFunc(changes, func(c tool.Change) bool { return c.Name == server+lock.SkillSeparator+s.Name }))
		})
		faults = append(faults, k.miss(ctx, server, err))
	}
	return errors.Join(faults...)
}

// pinSkills asks the lock file for the skills that are not accepted, and logs them.
func (k *Kit) pinSkills(ctx context.Context, l *lock.File, server string, digests map[string]string, look bool) (changes []tool.Change, err error) {
	first := false
	if look {
		changes, _, err = l.CompareSkills(server, digests)
	} else {
		changes, first, err = l.FilterSkills(server, digests)
	}
	if first {
		k.logger().InfoContext(ctx, "the skills of an MCP server are used for the first time, and all that agents use are accepted", "mcp", server, "skills", len(digests))
	}
	for _, c := range changes {
		what := "a skill of an MCP server is left out: it is not as it was accepted"
		if c.New {
			what = "a skill of an MCP server is left out: it is new, and nobody has accepted it"
		}
		k.logger().WarnContext(ctx, what, "mcp", server, "name", c.Name, "digest", c.Digest,
			"todo", "look at it with fermata lock, accept it with fermata lock --accept "+c.Name+"="+c.Digest+", and start the worker again")
	}
	return changes, err
}

// UsesServer reports whether some agent uses the tools of an MCP server.
func (f *File) UsesServer(server string) bool {
	_, used := f.usesTools()
	return slices.Contains(used, server)
}

// some limits all sources except for those in free.
type some struct {
	tool.Pins
	free []string
}

func (s some) Filter(source string, tools []agent.ToolSpec, words *string) (tool.Held, error) {
	if slices.Contains(s.free, source) {
		return tool.Held{Tools: tools}, nil
	}
	return s.Pins.Filter(source, tools, words)
}
