package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/store"
)

func (c *cli) memoryRmCommand() *cobra.Command {
	o, yes := &memoryOrder{cli: c}, false
	cmd := &cobra.Command{
		Use:   "rm [PATH]",
		Short: "Delete what agents remember",
		Long: `Rm deletes a file, or the files of a folder. Without PATH it deletes the whole memory of
a principal: that of one agent, or of all. A deleted memory can't be restored. On a
terminal the command asks you first; without one it needs --yes.

The text of a single deleted file stays in the store until fermata store gc.`,
		Example: `  fermata memory rm /memories/notes.md --agent clerk
  fermata memory rm --principal ana@acme.com --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exactArgs(1, "one path at most")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				var err error
				if path, err = store.CheckMemoryPath(args[0]); err != nil {
					return err
				}
			}
			return o.remove(cmd.Context(), path, yes)
		},
	}
	o.ownerFlags(cmd, "the agent whose memory it is; without it and without PATH, all agents")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.jsonFlag(cmd, "print what was deleted as one line of JSON for each agent")
	return cmd
}

func (o *memoryOrder) remove(ctx context.Context, path string, yes bool) error {
	if path != "" {
		return o.removeFiles(ctx, path, yes)
	}
	l, err := o.log(ctx)
	if err != nil {
		return err
	}
	var owners []store.MemoryOwner
	for owner, err := range l.Memories(ctx, o.owner.Principal) {
		if err != nil {
			return err
		}
		if o.owner.Agent == "" || owner.Agent == o.owner.Agent {
			owners = append(owners, owner)
		}
	}
	if len(owners) == 0 {
		return agent.Errorf(agent.CodeNotFound, "agents remember nothing for %s; see fermata memory ls", o.owner.Principal)
	}
	if err := o.sure(ctx, "all that "+counted(len(owners), "agent")+" remember for "+o.owner.Principal, yes); err != nil {
		return err
	}
	for _, o.owner = range owners {
		if err := o.recorded("memory rm"); err != nil {
			return err
		}
		m, err := l.Memory(o.owner)
		if err == nil {
			err = m.Delete(ctx)
		}
		if err != nil {
			return err
		}
		if o.JSON {
			o.Line(memoryDone{V: agent.Version, MemoryOwner: o.owner})
		} else {
			o.Print("deleted the memory of agent %s for %s", untrusted.Name(o.owner.Agent), untrusted.Name(o.owner.Principal))
		}
	}
	return nil
}

func (o *memoryOrder) removeFiles(ctx context.Context, path string, yes bool) error {
	m, err := o.memory(ctx)
	if err != nil {
		return err
	}
	if err := o.sure(ctx, path, yes); err != nil {
		return err
	}
	if err := o.recorded("memory rm"); err != nil {
		return err
	}
	done := memoryDone{V: agent.Version, MemoryOwner: o.owner}
	_, err = m.Change(ctx, store.MemoryChange{Edit: func(_ context.Context, e *store.MemoryEdit) (string, error) {
		done.Paths = nil
		for _, f := range e.Files() {
			if f.Path == path || strings.HasPrefix(f.Path, path+"/") {
				e.Remove(f.Path)
				done.Paths = append(done.Paths, f.Path)
			}
		}
		return "", nil
	}})
	switch {
	case err != nil:
		return err
	case len(done.Paths) == 0:
		return agent.Errorf(agent.CodeNotFound, "agent %s remembers no file %s for %s; see fermata memory ls", o.owner.Agent, path, o.owner.Principal).WithPath("path")
	}
	return o.tellDone("deleted", done)
}

// sure asks a person before something is deleted.
func (o *memoryOrder) sure(ctx context.Context, what string, yes bool) error {
	switch {
	case yes:
		return nil
	case !o.terminal || o.JSON:
		return agent.Errorf(agent.CodeInvalidInput, "deleting %s needs a confirmation, and there is no terminal to ask: add --yes", what).WithPath("yes")
	}
	ok, err := o.console().Yes(ctx, "delete "+untrusted.Name(what)+" for good?")
	if err != nil {
		return noAnswerGiven(err)
	}
	if !ok {
		return agent.Errorf(agent.CodeInvalidInput, "nothing was deleted")
	}
	return nil
}
