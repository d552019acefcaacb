package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/roles"
	"github.com/fermata-agents/fermata/tool/workspace"
)

func (c *cli) rolesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "roles",
		Short: "List, show and copy the roles of agents",
		Long: `A role is a part of an agent's definition that is ready to use: instructions, limits,
rules and others. An agent of the agents file takes one with role: NAME. What the agent
itself says wins.`,
		Example: `  fermata roles ls
  fermata roles show reviewer
  fermata roles copy reviewer > reviewer.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.rolesListCommand(), c.rolesShowCommand(), c.rolesCopyCommand())
	return cmd
}

// roleLine is a role in the output of roles --json.
type roleLine struct {
	V    int    `json:"v"`
	Role string `json:"role"`
	// Definition is what the role fills in.
	Definition agent.Definition `json:"definition"`
}

func (c *cli) rolesListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the roles",
		Long:    `Ls lists the roles that an agent can take, each with its purpose.`,
		Example: `  fermata roles ls`,
		Args:    exactArgs(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			t := c.Table("ROLE", "PURPOSE")
			for _, name := range roles.Names() {
				def, _ := roles.Get(name)
				if c.JSON {
					c.Line(roleLine{agent.Version, name, def})
					continue
				}
				t.Row(name, def.Description)
			}
			if !c.JSON {
				t.Flush()
			}
			return nil
		},
	}
	c.jsonFlag(cmd, "print each role as a line of JSON")
	return cmd
}

// roleOf returns a role, or an error that lists the roles.
func roleOf(name string) (agent.Definition, error) {
	def, ok := roles.Get(name)
	if !ok {
		return def, agent.Errorf(agent.CodeInvalidInput, "there is no role %q; the roles are %s", name, strings.Join(roles.Names(), ", "))
	}
	return def, nil
}

func (c *cli) rolesShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show ROLE",
		Short:   "Show what a role fills in",
		Long:    `Show prints a role as it would stand below an agent's name in the agents file.`,
		Example: `  fermata roles show reviewer`,
		Args:    exactArgs(1, "a role"),
		RunE: func(_ *cobra.Command, args []string) error {
			def, err := roleOf(args[0])
			switch {
			case err != nil:
				return err
			case c.JSON:
				c.Line(roleLine{agent.Version, args[0], def})
				return nil
			}
			c.printFile(roles.Text(args[0]))
			return nil
		},
	}
	c.jsonFlag(cmd, "print the role as one line of JSON")
	return cmd
}

// copiedLine is the output of roles copy --json.
type copiedLine struct {
	V    int    `json:"v"`
	Role string `json:"role"`
	Text string `json:"text"`
	File string `json:"file,omitempty"`
}

func (c *cli) rolesCopyCommand() *cobra.Command {
	model, to := "", ""
	cmd := &cobra.Command{
		Use:   "copy ROLE [NAME]",
		Short: "Write a role as an agent of your own",
		Long: `Copy writes a role as an agents file with one agent, which you can change. It has all
that the role fills in, so it no longer depends on the role, and tools that read the
workspace; add those that it needs. NAME is the agent's name; without it the agent is
called as the role.`,
		Example: `  fermata roles copy reviewer -o reviewer.yaml
  fermata roles copy reviewer critic --model openai/gpt-5 > critic.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs(1, "a role")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := roleOf(args[0]); err != nil {
				return err
			}
			name := args[len(args)-1]
			if err := agent.CheckName(name); err != nil {
				return err
			}
			text := copyOfRole(args[0], name, model)
			if to != "" {
				if err := writeNew(to, text); err != nil {
					return err
				}
			}
			switch {
			case c.JSON:
				c.Line(copiedLine{agent.Version, args[0], string(text), to})
			case to != "":
				c.Print("%s has the agent %s; run it with fermata run %s --agents %s \"…\", or put it below agents in your own file", to, name, name, to)
			default:
				c.printFile(string(text))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&model, "model", "anthropic/claude-sonnet-5", "the agent's model")
	cmd.Flags().StringVarP(&to, "output", "o", "", "the file to write, which may not exist yet (default standard output)")
	c.jsonFlag(cmd, "print the result as one line of JSON")
	return cmd
}

// printFile prints a text with its lines, so that a file made of the output is that text.
func (c *cli) printFile(text string) {
	c.Print("%s", untrusted.Block(strings.TrimSuffix(text, "\n")))
}

// copyOfRole returns an agents file with an agent that has what the role fills in. It has tools, too:
// an agent without any could not do its work, and a worker without tools refuses a rule about fs_write.
func copyOfRole(role, name, model string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "agents:\n  %s:\n    model: %q\n", name, model)
	if def, _ := roles.Get(role); def.Profile != agent.ProfileCompleter { // which answers in its only turn
		fmt.Fprintf(&b, "    tools: [%s, %s, %s] # add what it needs, such as %s or %s\n", workspace.ReadTool, workspace.ListTool, workspace.GrepTool, workspace.WriteTool, workspace.ShellTool)
	}
	for line := range strings.Lines(roles.Text(role)) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.Bytes()
}

// writeNew writes a file that does not exist yet.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return agent.Errorf(agent.CodeInvalidInput, "%s exists already; name another file", path)
	case err != nil:
		return agent.Errorf(agent.CodeInvalidInput, "the file can't be written: %w", err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
