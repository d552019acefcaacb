package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/skill"
)

// skillsRun lists, shows or checks skills: those of the agents file, or of directories.
type skillsRun struct {
	*cli
	file *agentsfile.File // nil if directories were named
	kit  *agentsfile.Kit  // the servers whose skills agents name; nil for none
}

// skillLine is a skill in the output of skills ls --json and show --json.
type skillLine struct {
	V int `json:"v"`
	agent.Skill
	AllowedTools  []string          `json:"allowed_tools,omitempty"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	MCP           []string          `json:"mcp,omitempty"`
	Agents        []string          `json:"agents,omitempty"`
	Dir           string            `json:"dir,omitempty"`
	URI           string            `json:"uri,omitempty"`
	Files         []skill.File      `json:"files,omitempty"`
	Instructions  string            `json:"instructions,omitempty"`
}

// skillCheckLine is a line of skills check --json. Verdict is ok, warn or fail.
type skillCheckLine struct {
	V       int    `json:"v"`
	Skill   string `json:"skill,omitempty"`
	Verdict string `json:"verdict"`
	Text    string `json:"text,omitempty"`
}

func (c *cli) skillsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "List, show and check skills",
		Long: `A skill is a directory with a file SKILL.md: instructions for one kind of task, with
references and scripts. The commands read the directories under skills in the agents
file, and ask the MCP servers whose skills its agents name. Or they read the
directories that you name, which need no agents file.`,
		Example: `  fermata skills ls
  fermata skills show pdf
  fermata skills check ./skills`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args: exactArgs(0, "ls, show or check"),
	}
	cmd.AddCommand(c.skillsLsCommand(), c.skillsShowCommand(), c.skillsCheckCommand())
	return cmd
}

func (r *skillsRun) flags(cmd *cobra.Command, json string) {
	cmd.Flags().StringVarP(&r.agents, "agents", "f", "", "agents file (default \"fermata.yaml\")")
	r.jsonFlag(cmd, json)
}

func (c *cli) skillsLsCommand() *cobra.Command {
	r := &skillsRun{cli: c}
	cmd := &cobra.Command{
		Use:   "ls [DIR ...]",
		Short: "List skills",
		Long: `Ls lists the skills of the agents file, or of directories, with the agents that have
them. The digest is of all files of a skill: a run keeps the one that it began with.`,
		Example: `  fermata skills ls
  fermata skills ls ~/skills --json | jq -r .name`,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := r.read(cmd.Context(), args)
			defer r.close()
			for _, s := range all {
				r.list(s)
			}
			return err
		},
	}
	r.flags(cmd, "print each skill as a line of JSON")
	return cmd
}

func (c *cli) skillsShowCommand() *cobra.Command {
	r := &skillsRun{cli: c}
	cmd := &cobra.Command{
		Use:   "show SKILL [DIR ...]",
		Short: "Show a skill with its instructions and files",
		Long: `Show prints what a skill says of itself, its files, and its instructions as a model
reads them. SKILL is its name in the agents file or in the directories, or its own
directory.`,
		Example: `  fermata skills show pdf
  fermata skills show pdf ./skills
  fermata skills show ./skills/pdf --json | jq -r .instructions`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return nil
			}
			return exactArgs(1, "the name or the directory of a skill")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.show(cmd.Context(), args[0], args[1:]) },
	}
	r.flags(cmd, "print the skill as one line of JSON")
	return cmd
}

func (c *cli) skillsCheckCommand() *cobra.Command {
	r := &skillsRun{cli: c}
	cmd := &cobra.Command{
		Use:   "check [DIR ...]",
		Short: "Check skills",
		Long: `Check reads skills as a worker does, and says what is wrong: names and texts that the
open format does not allow, links out of the directory, sizes, two skills with one
name. It warns of tools and servers that a skill needs and an agent lacks. The exit
status is 0 if every skill is sound, also with warnings.`,
		Example: `  fermata skills check
  fermata skills check ./skills ./more-skills`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.check(cmd.Context(), args) },
	}
	r.flags(cmd, "print each finding as a line of JSON")
	return cmd
}

// read reads the skills of directories, or of the agents file if none is named. It returns the
// sound ones beside an error.
func (r *skillsRun) read(ctx context.Context, dirs []string) (all []*skill.Skill, err error) {
	if len(dirs) > 0 {
		all, err = skill.ReadDirs(dirs...)
		if err == nil && len(all) == 0 {
			err = agent.Errorf(agent.CodeNotFound, "there is no skill in %s: a skill is a directory with a file %s", strings.Join(dirs, ", "), skill.FileName)
		}
		return all, err
	}
	if r.file, err = agentsFile(ctx, r.agents); err != nil {
		return nil, err
	}
	if r.file == nil {
		return nil, noAgents()
	}
	// Before a server starts: its program may not read what is the worker's.
	if r.file.Private, err = r.host.Private(); err != nil {
		return nil, err
	}
	r.kit, err = r.file.OpenSkills(ctx)
	if r.kit == nil {
		if err == nil && len(r.file.SkillDirs()) == 0 {
			r.Note("fermata: %s has no skills: name directories under skills", r.file.Path)
		}
		return r.file.Skills(), err
	}
	for _, without := range r.kit.Without() {
		r.Note("fermata: agents go without a skill of an optional server: %s", without)
	}
	return r.kit.Skills(), err
}

// close ends the servers that were asked. What they have said is here, so their end does not matter.
func (r *skillsRun) close() {
	if r.kit != nil {
		_ = r.kit.Close()
	}
}

func (r *skillsRun) line(s *skill.Skill) skillLine {
	line := skillLine{V: agent.Version, Skill: s.Skill, AllowedTools: s.AllowedTools, License: s.License, Compatibility: s.Compatibility, Metadata: s.Metadata, MCP: s.MCP, Dir: s.Dir, URI: s.URI}
	if r.file != nil {
		for _, def := range r.file.Agents {
			if agentsfile.UsesSkill(def, s) {
				line.Agents = append(line.Agents, def.Name)
			}
		}
	}
	return line
}

func (r *skillsRun) list(s *skill.Skill) {
	line := r.line(s)
	if r.JSON {
		r.Line(line)
		return
	}
	has := ""
	if len(line.Agents) > 0 {
		has = "  (" + strings.Join(line.Agents, ", ") + ")"
	}
	of := ""
	if s.Server != "" {
		of = "  of the MCP server " + s.Server
	}
	r.Print("%s  %s%s%s", s.Name, s.Digest[:min(len(s.Digest), 19)], of, has)
	r.Print("%s", untrusted.Margin(s.Description))
}

func (r *skillsRun) show(ctx context.Context, name string, dirs []string) error {
	s, err := r.find(ctx, name, dirs)
	defer r.close()
	if err == nil {
		s, err = s.Loaded(ctx)
	}
	if err != nil {
		return err
	}
	line := r.line(s)
	line.Files, line.Instructions = s.Files, s.Instructions
	if r.JSON {
		r.Line(line)
		return nil
	}
	r.list(s)
	for _, f := range []struct{ name, text string }{
		{"when to use", s.WhenToUse}, {"allowed tools", strings.Join(s.AllowedTools, " ")}, {"offered tools", strings.Join(s.Tools, " ")}, {"paths", strings.Join(s.Paths, " ")},
		{"mcp", strings.Join(s.MCP, " ")}, {"uri", s.URI}, {"license", s.License}, {"compatibility", s.Compatibility},
	} {
		if f.text != "" {
			r.Print("%s: %s", f.name, untrusted.Fold(f.text))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		r.Print("%s: %s", untrusted.Name(key), untrusted.Fold(s.Metadata[key]))
	}
	switch {
	case s.UserOnly:
		r.Print("the model does not load it: a user names it (disable-model-invocation)")
	case s.ModelOnly:
		r.Print("no user names it (user-invocable: false)")
	}
	for _, f := range s.Files {
		r.Print("%8d  %s", f.Size, untrusted.Name(f.Path))
	}
	r.Print("%s", untrusted.Margin(s.Instructions))
	return nil
}

// find returns a skill by its directory, or by its name in the agents file or in directories.
func (r *skillsRun) find(ctx context.Context, name string, dirs []string) (*skill.Skill, error) {
	if _, err := os.Stat(filepath.Join(name, skill.FileName)); err == nil && len(dirs) == 0 {
		return skill.Read(name)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() && strings.ContainsRune(name, filepath.Separator) {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s has no file %s, so it is no skill; name one in it: fermata skills show NAME %s", name, skill.FileName, connect.ShellWord(name))
	}
	all, err := r.read(ctx, dirs)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, agent.Errorf(agent.CodeNotFound, "there is no skill %q; there are %s", name, strings.Join(append(names, "no others"), ", "))
}

func (r *skillsRun) check(ctx context.Context, dirs []string) error {
	all, err := r.read(ctx, dirs)
	defer r.close()
	failed := 0
	for _, one := range joined(err) {
		if agent.CodeOf(one) != agent.CodeInvalidInput {
			return err
		}
		failed++
		r.finding(skillCheckLine{V: agent.Version, Verdict: "fail", Text: one.Error()})
	}
	for _, s := range all {
		s, err := s.Loaded(ctx)
		if err != nil {
			failed++
			r.finding(skillCheckLine{V: agent.Version, Verdict: "fail", Text: err.Error()})
			continue
		}
		remarks := s.Remarks
		if r.file != nil {
			remarks = r.file.SkillRemarks(s)
		}
		for _, remark := range remarks {
			r.finding(skillCheckLine{V: agent.Version, Skill: s.Name, Verdict: "warn", Text: remark})
		}
		if len(remarks) == 0 {
			r.finding(skillCheckLine{V: agent.Version, Skill: s.Name, Verdict: "ok", Text: fmt.Sprintf("%d files", len(s.Files))})
		}
	}
	if failed > 0 {
		return ended(agent.CodeInvalidInput.ExitStatus())
	}
	return nil
}

// joined lists the errors that are joined in an error.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return []error{err}
	}
	var all []error
	for _, one := range many.Unwrap() {
		all = append(all, joined(one)...)
	}
	return all
}

func (r *skillsRun) finding(l skillCheckLine) {
	if r.JSON {
		r.Line(l)
		return
	}
	r.Print("%-5s%s", l.Verdict, strings.TrimPrefix(untrusted.Fold(l.Skill+": "+l.Text), ": "))
}
