package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/store"
)

// memoryOrder says whose memory a command is about.
type memoryOrder struct {
	*cli
	owner store.MemoryOwner
}

func (c *cli) memoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Look after what agents remember over sessions",
		Long: `Memory looks after the files that agents keep over sessions with the tool memory. A
memory belongs to one agent and one principal: whoever started the sessions that use it.
It is in the store of --store or ` + env.Store + `, and needs no server.`,
		Example: `  fermata memory ls
  fermata memory show /memories/notes.md --agent clerk
  fermata memory rm --principal ana@acme.com --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.memoryLsCommand(), c.memoryShowCommand(), c.memoryExportCommand(), c.memoryImportCommand(), c.memoryRmCommand())
	return cmd
}

// ownerFlags adds the flags that say whose memory it is.
func (o *memoryOrder) ownerFlags(cmd *cobra.Command, agentHelp string) {
	f := cmd.Flags()
	f.StringVar(&o.owner.Principal, "principal", "", "who started the sessions (default your login name; "+agent.AnonymousPrincipal+" for starts without a name)")
	f.StringVar(&o.owner.Agent, "agent", "", agentHelp)
}

const ofAgent = "the agent whose memory it is; required"

// log opens the store, for the memory of one principal.
func (o *memoryOrder) log(ctx context.Context) (*store.Log, error) {
	if o.owner.Principal = byOr(o.owner.Principal); o.owner.Principal == "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "there is no login name (USER or LOGNAME), so it is not known whose memory is meant; name it with --principal, such as --principal %s for starts without a name", agent.AnonymousPrincipal).WithPath("principal")
	}
	s, err := o.OpenExistingStore(ctx)
	if err != nil {
		return nil, err
	}
	return store.NewLog(s), nil
}

// memory opens the memory of one principal and one agent.
func (o *memoryOrder) memory(ctx context.Context) (*store.Memory, error) {
	if o.owner.Agent == "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "name the agent with --agent; see fermata memory ls").WithPath("agent")
	}
	l, err := o.log(ctx)
	if err != nil {
		return nil, err
	}
	return l.Memory(o.owner)
}

func (c *cli) memoryLsCommand() *cobra.Command {
	o := &memoryOrder{cli: c}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the files that agents remember",
		Long:  `Ls lists the files of a principal's memories: those of all agents, or of one.`,
		Example: `  fermata memory ls
  fermata memory ls --principal ana@acme.com --agent clerk
  fermata memory ls --json | jq -r .path`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	o.ownerFlags(cmd, "only the memory of this agent")
	c.jsonFlag(cmd, "print each file as a line of JSON")
	return cmd
}

// memoryLine is a line of memory ls --json.
type memoryLine struct {
	V int `json:"v"`
	store.MemoryOwner
	store.MemoryFile
}

func (o *memoryOrder) list(ctx context.Context) error {
	l, err := o.log(ctx)
	if err != nil {
		return err
	}
	t, some := o.Table(), false
	defer t.Flush()
	for owner, err := range l.Memories(ctx, o.owner.Principal) {
		if err != nil {
			return err
		}
		if o.owner.Agent != "" && owner.Agent != o.owner.Agent {
			continue
		}
		m, err := l.Memory(owner)
		if err != nil {
			return err
		}
		files, _, err := m.List(ctx)
		if err != nil {
			return err
		}
		for _, f := range files {
			switch {
			case o.JSON:
				o.Line(memoryLine{agent.Version, owner, f})
			case !some:
				t.Row("AGENT", "PATH", "BYTES", "VERSION", "CHANGED", "SESSION")
				fallthrough
			default:
				t.Row(untrusted.Name(owner.Agent), untrusted.Name(f.Path), f.Size, f.Version, f.Changed.Local().Format(time.DateTime), untrusted.Name(f.Session))
			}
			some = true
		}
	}
	if !some {
		o.Note("agents remember nothing for %s", untrusted.Name(o.owner.Principal))
	}
	return nil
}

func (c *cli) memoryShowCommand() *cobra.Command {
	o := &memoryOrder{cli: c}
	cmd := &cobra.Command{
		Use:   "show PATH",
		Short: "Show a file that an agent remembers",
		Long:  `Show prints one file of a memory.`,
		Example: `  fermata memory show /memories/notes.md --agent clerk
  fermata memory show /memories/notes.md --agent clerk --json | jq -r .text`,
		Args: exactArgs(1, "a path"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.show(cmd.Context(), args[0]) },
	}
	o.ownerFlags(cmd, ofAgent)
	c.jsonFlag(cmd, "print the file as one line of JSON")
	return cmd
}

// memoryText is the output of memory show --json.
type memoryText struct {
	memoryLine
	Text string `json:"text"`
}

func (o *memoryOrder) show(ctx context.Context, path string) error {
	path, err := store.CheckMemoryPath(path)
	if err != nil {
		return err
	}
	m, err := o.memory(ctx)
	if err != nil {
		return err
	}
	files, _, err := m.List(ctx)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Path != path {
			continue
		}
		text, err := m.Read(ctx, f)
		switch {
		case err != nil:
			return err
		case o.JSON:
			o.Line(memoryText{memoryLine{agent.Version, o.owner, f}, text})
		default:
			o.Print("%s", untrusted.Block(untrusted.Text(strings.TrimSuffix(text, "\n"))))
		}
		return nil
	}
	return agent.Errorf(agent.CodeNotFound, "agent %s remembers no file %s for %s; see fermata memory ls", o.owner.Agent, path, o.owner.Principal).WithPath("path")
}
