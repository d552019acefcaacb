package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/lock"
)

// lockRun shows what MCP servers have changed, and accepts it.
type lockRun struct {
	*cli
	accept bool
	file   *agentsfile.File
	lock   *lock.File
}

// lockLine is a tool or a skill in the output of lock --json. For a server's instructions, Tool
// is the server's name; for a skill it is SERVER/SKILL. State is new, changed, unpinned or accepted. What was
// accepted by its digest has no Text.
type lockLine struct {
	V      int    `json:"v"`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	State  string `json:"state"`
	Digest string `json:"digest"`
	Text   string `json:"text"`
}

func (c *cli) lockCommand() *cobra.Command {
	l := &lockRun{cli: c}
	cmd := &cobra.Command{
		Use:   "lock [SERVER | TOOL=DIGEST | SERVER/SKILL=DIGEST ...]",
		Short: "Show and accept changed tools and skills of MCP servers",
		Long: `When a worker first uses an MCP server, it records the server's tools in fermata.lock,
beside fermata.yaml: a digest of each tool's name, description and schema, and of the
server's instructions. When it first uses skills of a server, it records a digest of
each skill that an agent uses: of its front matter and its files. Runs leave out tools
that are new or changed, and workers leave out such skills. Lock asks the servers of the
agents file and shows these tools and skills. --accept accepts what the servers list
now. Read it first, because models will read it. A worker takes accepted skills when it
starts.

Some servers list their tools only after a sign-in. Accept these tools as TOOL=DIGEST,
which is in the worker's log. If the server can be asked, the digest must match.`,
		Example: `  fermata lock
  fermata lock --accept tickets
  fermata lock --accept crm__find=sha256:9b1f…
  fermata lock --accept tickets/refunds=sha256:07aa…`,
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&l.agents, "agents", "f", "", "agents file (default \"fermata.yaml\")")
	flags.BoolVar(&l.accept, "accept", false, "accept what the servers list now")
	c.jsonFlag(cmd, "print each changed tool and skill as a line of JSON")
	return cmd
}

func (l *lockRun) run(ctx context.Context, args []string) (err error) {
	if l.file, err = agentsFile(ctx, l.agents); err != nil {
		return err
	}
	if l.file == nil {
		return noAgents()
	}
	if l.file.Private, err = l.host.Private(); err != nil {
		return err
	}
	// A pipe has no directory in which the lock file could be found again.
	if l.lock = l.file.Lock(); l.lock == nil {
		return agent.Errorf(agent.CodeInvalidInput, "%s is not a regular file, so it has no lock file: nothing is pinned", l.file.Path)
	}
	var servers []string
	for _, arg := range args {
		name, digest, one := strings.Cut(arg, "=")
		switch {
		case !one:
			servers = append(servers, name)
			continue
		case !l.accept:
			return agent.Errorf(agent.CodeInvalidInput, "to accept %s, add --accept", arg)
		}
		if err := l.acceptOne(ctx, name, digest); err != nil {
			return err
		}
	}
	// Only digests were named, and all are accepted.
	if len(args) > 0 && len(servers) == 0 {
		return nil
	}
	for _, name := range servers {
		// Before any server is started: a misspelt name changes nothing.
		if !l.file.UsesServer(name) && !slices.Contains(l.file.SkillServers(), name) {
			return l.unknown("an MCP server", name)
		}
	}
	differ, err := l.look(ctx, servers)
	if err != nil {
		return err
	}
	skills, err := l.lookAtSkills(ctx, servers)
	if err != nil {
		return err
	}
	if differ = slices.Compact(slices.Sorted(slices.Values(append(differ, skills...)))); len(differ) > 0 {
		return agent.Errorf(agent.CodeNotSetUp, "not accepted in %s: what %s lists; read it, then run fermata lock --accept", filepath.Base(l.lock.Path()), strings.Join(differ, ", "))
	}
	return nil
}

func (l *lockRun) unknown(what, server string) error {
	return agent.Errorf(agent.CodeInvalidInput, "no agent of %s uses %s %q", l.file.Path, what, server)
}

// acceptOne accepts a tool, a skill, or a server's instructions, by a digest. If the server can
// be asked, the digest must match what it lists.
func (l *lockRun) acceptOne(ctx context.Context, name, digest string) error {
	server, one, isSkill := strings.Cut(name, lock.SkillSeparator)
	ask := func() (string, bool, error) { return l.skillNow(ctx, server, one) }
	if !isSkill {
		server, _, _ = strings.Cut(name, tool.Separator)
		ask = func() (string, bool, error) { return l.toolNow(ctx, server, name) }
	}
	now, unseen, err := ask()
	switch {
	case err != nil:
		return err
	case unseen || now == digest:
	case now == "":
		return agent.Errorf(agent.CodeInvalidInput, "%s lists no %s: nothing is accepted", server, name)
	default:
		return agent.Errorf(agent.CodeInvalidInput, "%s lists %s with the digest %s: nothing is accepted; read it with fermata lock first", server, name, now)
	}
	if err := l.lock.AcceptOne(name, digest); err != nil {
		return err
	}
	if unseen {
		l.Note("fermata: %s can't be asked from here: the digest of %s is accepted as it was written", server, name)
	}
	l.show(lockLine{V: agent.Version, Server: server, Tool: name, State: accepted, Digest: digest})
	return nil
}

// toolNow returns the digest of a tool, or of a server's instructions, as the server lists it
// now; empty if it does not. unseen means that the server can't be asked.
func (l *lockRun) toolNow(ctx context.Context, server, name string) (now string, unseen bool, err error) {
	if !l.file.UsesServer(server) {
		return "", false, l.unknown("tools of an MCP server", server)
	}
	// Exactly one: UsesServer has checked that the file has it.
	s := l.file.AskServers(ctx, server)[0]
	if name == server && s.Instructions != "" {
		now = lock.DigestOfWords(s.Instructions)
	}
	for _, t := range s.Listed {
		if t.Name == name {
			now = lock.Digest(t)
		}
	}
	// A server that needs a sign-in lists only its sign-in tool here, so it can't be compared.
	return now, s.Err != nil || s.SignIn, nil
}

// look asks the servers for their tools, all if none is named. It accepts what they list, or
// returns the servers whose tools a person must accept.
func (l *lockRun) look(ctx context.Context, servers []string) (differ []string, err error) {
	for _, s := range l.file.AskServers(ctx, servers...) {
		// Unpinned servers have no entry in the lock file.
		if !l.file.Pinned(s.Name) {
			continue
		}
		if s.Err != nil {
			return nil, s.Err
		}
		if s.SignIn {
			l.Note("fermata: %s lists its tools only after a sign-in: accept them as TOOL=DIGEST, from the worker's log", s.Name)
			continue
		}
		lines, err := l.lines(s)
		if err != nil {
			return nil, err
		}
		// Accepted even if only one tool differs: a server's tools are recorded together.
		if l.accept && len(lines) > 0 {
			if err := l.lock.Accept(s.Name, s.Listed, s.Instructions); err != nil {
				return nil, err
			}
		}
		if l.showAll(lines) {
			differ = append(differ, s.Name)
		}
	}
	return differ, nil
}

// showAll shows what differs in a server, and reports whether a person must accept it. Call it
// after it is recorded: what is shown as accepted must be accepted.
func (l *lockRun) showAll(lines []lockLine) (differs bool) {
	for _, line := range lines {
		if l.accept {
			line.State = accepted
		}
		l.show(line)
	}
	return len(lines) > 0 && !l.accept
}

// lines returns what differs in a server; everything that it lists if it was never used.
func (l *lockRun) lines(s agentsfile.ServerState) (lines []lockLine, err error) {
	changes, was, err := l.lock.Compare(s.Name, s.Listed, &s.Instructions)
	if err != nil {
		return nil, err
	}
	// A server that was never used has no changes, but everything that it lists is new.
	if !was {
		for _, t := range s.Listed {
			changes = append(changes, tool.Change{Name: t.Name, New: true, Digest: lock.Digest(t)})
		}
	}
	for _, c := range changes {
		line := lineOf(s.Name, c, was, s.Instructions)
		if i := slices.IndexFunc(s.Listed, func(t agent.ToolSpec) bool { return t.Name == c.Name }); i >= 0 {
			line.Text = s.Listed[i].Description + "\n" + string(s.Listed[i].Input)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func lineOf(server string, c tool.Change, was bool, text string) lockLine {
	line := lockLine{V: agent.Version, Server: server, Tool: c.Name, State: "changed", Digest: c.Digest, Text: text}
	switch {
	case !was:
		line.State = "unpinned"
	case c.New:
		line.State = "new"
	}
	return line
}

// accepted is the state of a tool or skill after --accept.
const accepted = "accepted"

// show prints what a model will read, without what could control a terminal.
func (l *lockRun) show(line lockLine) {
	if l.JSON {
		l.Line(line)
		return
	}
	l.Print("%s  %s", untrusted.Name(line.Tool), line.State)
	if text := strings.TrimSpace(line.Text); text != "" {
		l.Print("%s", untrusted.Margin(text))
	}
}
