package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/lock"
)

// lookAtSkills asks the servers for the skills that agents use, all servers if none is named. It
// accepts what they list, or returns the servers whose skills a person must accept.
func (l *lockRun) lookAtSkills(ctx context.Context, servers []string) (differ []string, err error) {
	for _, server := range l.file.SkillServers() {
		if len(servers) > 0 && !slices.Contains(servers, server) || !l.file.Pinned(server) {
			continue
		}
		lines, err := l.skillLines(ctx, server)
		if err != nil {
			return nil, err
		}
		if l.showAll(lines) {
			differ = append(differ, server)
		}
	}
	return differ, nil
}

// skillLines returns the skills of a server that differ, all if none was ever used, and accepts
// them if the user says so.
func (l *lockRun) skillLines(ctx context.Context, server string) (lines []lockLine, err error) {
	kit, err := l.file.OpenSkills(ctx, server)
	defer func() { _ = kit.Close() }() // its answers are here, so its end does not matter
	if err != nil {
		return nil, err
	}
	digests := kit.SkillDigests(server)
	if len(digests) == 0 {
		return nil, errors.Join(kit.Without()...)
	}
	for _, fault := range kit.Without() {
		l.Note("fermata: runs go without a skill of %s: %v", server, fault)
	}
	changes, was, err := l.lock.CompareSkills(server, digests)
	if err != nil {
		return nil, err
	}
	if !was {
		for _, name := range slices.Sorted(maps.Keys(digests)) {
			changes = append(changes, tool.Change{Name: server + lock.SkillSeparator + name, New: true, Digest: digests[name]})
		}
	}
	for _, c := range changes {
		text, err := skillText(ctx, kit, c.Name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, lineOf(server, c, was, text))
	}
	if l.accept && len(lines) > 0 {
		err = l.lock.AcceptSkills(server, digests)
	}
	return lines, err
}

// skillText returns what models read of a skill: what the server lists, and the instructions.
func skillText(ctx context.Context, kit *agentsfile.Kit, name string) (string, error) {
	all := kit.Served()
	s := all[slices.IndexFunc(all, func(s *skill.Skill) bool { return s.Server+lock.SkillSeparator+s.Name == name })]
	full, err := s.Loaded(ctx)
	if err != nil {
		return "", err
	}
	text := s.Description
	if s.WhenToUse != "" {
		text += "\nWhen to use it: " + s.WhenToUse
	}
	return text + "\n\n" + full.Text(), nil
}

// skillNow returns the digest of a skill as the server lists it now; empty if it does not. unseen
// means that the server can't be asked.
func (l *lockRun) skillNow(ctx context.Context, server, name string) (now string, unseen bool, err error) {
	if !slices.Contains(l.file.SkillServers(), server) {
		return "", false, l.unknown("skills of an MCP server", server)
	}
	kit, err := l.file.OpenSkills(ctx, server)
	defer func() { _ = kit.Close() }() // its answer is here, so its end does not matter
	faults := errors.Join(append(kit.Without(), err)...)
	now = kit.SkillDigests(server)[name]
	// Not found is an answer, too.
	return now, now == "" && faults != nil && !errors.Is(faults, agent.CodeNotFound), nil
}
