package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/doctor"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/internal/flowfile"
)

func (c *cli) doctorCommand() *cobra.Command {
	agents, draw := "", false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that runs need",
		Long: `Doctor checks the server, the namespace, the workers, the store, the audit log, the
agents file with its models, keys and servers, and the shell. It asks MCP servers for
their tools. It says what to do about each problem. One line lists the parts of
docs/security.md that are not set up, which is no error.

Doctor changes nothing and prints no key. The exit status is 0 if runs can work.

With --draw, it checks only the agents file, and draws each flow of it as a Mermaid
flowchart, in Markdown.`,
		Example: `  fermata doctor
  fermata doctor --draw > flows.md
  fermata doctor --agents fermata.yaml --profile prod
  fermata doctor --json | jq -r 'select(.verdict=="fail").text'`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if draw {
				return c.drawFlows(cmd.Context(), agents)
			}
			return c.doctor(cmd.Context(), agents)
		},
	}
	cmd.Flags().StringVar(&agents, "agents", "", "agents file (default \"fermata.yaml\", if it is there)")
	cmd.Flags().BoolVar(&draw, "draw", false, "only draw the flows of the agents file")
	c.jsonFlag(cmd, "print each finding, or drawing, as a line of JSON")
	return cmd
}

// findingLine is a finding for programs.
type findingLine struct {
	V       int        `json:"v"`
	Check   string     `json:"check"`
	Verdict string     `json:"verdict"` // ok, warn, fail or skipped
	Text    string     `json:"text"`
	Todo    string     `json:"todo,omitempty"`
	Code    agent.Code `json:"code,omitempty"`
}

func (c *cli) doctor(ctx context.Context, agents string) error {
	// A broken file is a finding like others, so its error does not end the examination.
	file, err := agentsFile(ctx, agents)
	// Only the first failure decides the exit status; later ones may follow from it.
	status := error(nil)
	for _, f := range doctor.Examine(ctx, c.host, file, err) {
		c.finding(f)
		if f.Verdict == doctor.Failed && status == nil {
			status = ended(f.Code.ExitStatus())
		}
	}
	return status
}

// finding prints a finding.
func (c *cli) finding(f doctor.Finding) {
	// Errors may quote what servers sent, which could control the terminal.
	text := untrusted.Fold(f.Text)
	if c.JSON {
		verdict := strings.ToLower(string(f.Verdict))
		if f.Verdict == doctor.Skipped {
			verdict = "skipped"
		}
		c.Line(findingLine{agent.Version, f.What, verdict, text, f.Todo, f.Code})
		return
	}
	c.Print("%-5s%-12s%s", f.Verdict, f.What, text)
	if f.Todo != "" {
		c.Print("     %-12s-> %s", "", f.Todo)
	}
}

// drawingLine is a drawing for programs.
type drawingLine struct {
	V       int    `json:"v"`
	Flow    string `json:"flow"`
	Mermaid string `json:"mermaid"`
}

// drawFlows prints the flows of an agents file as flowcharts.
func (c *cli) drawFlows(ctx context.Context, agents string) error {
	file, err := agentsFile(ctx, agents)
	if err != nil {
		return err
	}
	if file == nil || len(file.Flows) == 0 {
		c.Note("there is no flow to draw; docs/flows.md says how an agents file has one")
		return nil
	}
	for i, w := range file.Flows {
		name, drawing := w.Definition().Name, flowfile.Mermaid(w.Written)
		if c.JSON {
			c.Line(drawingLine{agent.Version, name, drawing})
			continue
		}
		if i > 0 {
			c.Print("")
		}
		c.Print("## %s\n\n```mermaid\n%s```", name, untrusted.Block(untrusted.Text(drawing)))
	}
	return nil
}
