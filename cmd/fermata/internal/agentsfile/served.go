package agentsfile

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/tool/mcp"
)

// served returns the skills that agents name of MCP servers, by server. Without a name it is all of
// the server.
func (f *File) served() map[string][]string {
	wanted, whole := map[string][]string{}, map[string]bool{}
	for _, def := range f.Definitions() {
		for _, name := range def.Skills {
			server, one, ok := agent.ServedSkill(name)
			switch {
			case !ok:
			case one == "":
				whole[server], wanted[server] = true, nil
			case !whole[server] && !slices.Contains(wanted[server], one):
				wanted[server] = append(wanted[server], one)
			}
		}
	}
	return wanted
}

// uses returns the workspace tools and the MCP servers that some agent names, for their tools or
// their skills.
func (f *File) uses() (tools, servers []string) {
	tools, servers = f.usesTools()
	servers = append(servers, slices.Collect(maps.Keys(f.served()))...)
	slices.Sort(servers)
	return tools, slices.Compact(servers)
}

// SkillServers returns the MCP servers whose skills agents name, sorted.
func (f *File) SkillServers() []string { return slices.Sorted(maps.Keys(f.served())) }

// OpenSkills opens the MCP servers whose skills agents name, or one of them, and asks for these
// skills. It pins none, and returns those that nobody has accepted, too. The kit is nil if no agent
// names any. Close it also beside an error.
func (f *File) OpenSkills(ctx context.Context, only ...string) (*Kit, error) {
	servers := slices.DeleteFunc(f.SkillServers(), func(s string) bool { return len(only) > 0 && !slices.Contains(only, s) })
	if len(servers) == 0 {
		return nil, nil
	}
	k := &Kit{file: f}
	var faults []error
	for _, name := range servers {
		s, err := f.openServer(name, nil, nil)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		k.open = append(k.open, s)
		k.servers = append(k.servers, s)
	}
	return k, errors.Join(append(faults, k.ReadSkills(ctx))...)
}

// ReadSkills asks the MCP servers for the skills that agents name, all at once. It reads no file
// of them. A fault of an optional server is logged, and agents go without that skill.
func (k *Kit) ReadSkills(ctx context.Context) error {
	wanted := k.file.served()
	type answer struct {
		skills []*skill.Skill
		err    error
	}
	answers := make([]answer, len(k.servers))
	var all sync.WaitGroup
	for i, s := range k.servers {
		if names, ok := wanted[s.Name()]; ok {
			all.Go(func() { answers[i].skills, answers[i].err = askSkills(ctx, s, names) })
		}
	}
	all.Wait()
	var faults []error
	for i, a := range answers {
		errs := []error{a.err}
		for _, s := range a.skills {
			// Nothing of a server may stand for a skill that somebody has reviewed.
			if i := slices.IndexFunc(k.Skills(), func(o *skill.Skill) bool { return o.Name == s.Name }); i >= 0 {
				errs = append(errs, twice(k.Skills()[i], s))
				continue
			}
			k.served = append(k.served, s)
		}
		faults = append(faults, k.miss(ctx, k.servers[i].Name(), errors.Join(errs...)))
	}
	return errors.Join(faults...)
}

func twice(first, second *skill.Skill) error {
	where := "of a directory"
	if first.Server != "" {
		where = "of the MCP server " + first.Server
	}
	return agent.Errorf(agent.CodeInvalidInput, "skill %q is there twice: %s, and of the MCP server %s; leave one out", second.Name, where, second.Server).WithPath("skills")
}

// miss returns a server's faults, or logs them if the server is optional.
func (k *Kit) miss(ctx context.Context, server string, faults error) error {
	if !k.file.servers[server].Optional {
		return faults
	}
	for _, err := range apart(faults) {
		k.without = append(k.without, err)
		k.logger().WarnContext(ctx, "agents go without a skill of an optional MCP server", "mcp", server, "error", err)
	}
	return nil
}

func (k *Kit) logger() *slog.Logger {
	if k.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return k.log
}

func askSkills(ctx context.Context, s *mcp.Server, names []string) ([]*skill.Skill, error) {
	skills, err := s.Skills(ctx, names...)
	if err == nil && len(skills) == 0 {
		err = agent.Errorf(agent.CodeNotFound, "the MCP server %s lists no skills; if it serves some that it does not list, name them by their URIs, as %s%s/URI", s.Name(), sourcePrefix, s.Name()).WithPath("skills")
	}
	return skills, err
}

// Served returns the skills of MCP servers that agents name; see [Kit.ReadSkills].
func (k *Kit) Served() []*skill.Skill { return k.served }

// Without returns why agents go without skills of optional servers.
func (k *Kit) Without() []error { return k.without }

// Skills returns the file's skills, and those of MCP servers.
func (k *Kit) Skills() []*skill.Skill { return slices.Concat(k.file.skills, k.served) }

// Agents returns the file's agents without the skills of MCP servers that are not there.
func (k *Kit) Agents() []agent.Definition {
	defs := slices.Clone(k.file.Agents)
	for i := range defs {
		defs[i].Skills = slices.DeleteFunc(slices.Clone(defs[i].Skills), func(name string) bool {
			return isServed(name) && !slices.ContainsFunc(k.served, func(s *skill.Skill) bool { return stands(name, s) })
		})
	}
	return defs
}
