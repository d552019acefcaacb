package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
	"github.com/fermata-agents/fermata/testsuite/eval/report"
)

// maxListed is how many evaluations a listing shows.
const maxListed = 100

func (c *cli) evalListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List evaluations, the latest first",
		Long: `Ls lists the last 100 evaluations that the server still has. It keeps ended ones for
the namespace's retention; keep their reports with --json.`,
		Example: `  fermata eval ls --json | jq -r .id`,
		Args:    exactArgs(0, "no argument"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.listEvaluations(cmd.Context()) },
	}
	c.jsonFlag(cmd, "print each evaluation as a line of JSON")
	return cmd
}

// listedLine is an evaluation in the output of eval ls --json.
type listedLine struct {
	V int `json:"v"`
	evalrun.Listed
}

func (c *cli) listEvaluations(ctx context.Context) error {
	return c.WithServer(ctx, func(s *connect.Server, _ *fermata.Client) error {
		n, t := 0, c.Table()
		defer t.Flush()
		for l, err := range evalrun.List(ctx, s.Client) {
			if err != nil {
				return err
			}
			if n == maxListed {
				break
			}
			if n++; c.JSON {
				c.Line(listedLine{agent.Version, l})
				continue
			}
			if n == 1 {
				t.Row("ID", "LABEL", "TRIALS", "STARTED", "ENDED")
			}
			finished := "no"
			if !l.Finished.IsZero() {
				finished = l.Finished.Format(time.RFC3339)
			}
			t.Row(l.ID, l.Label, l.Total, l.Started.Format(time.RFC3339), finished)
		}
		if n == 0 {
			c.Note("no evaluations")
		}
		return nil
	})
}

func (c *cli) evalShowCommand() *cobra.Command {
	var files reports
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show an evaluation, also while it runs",
		Long: `Show prints the report of an evaluation. While it runs, the report has the trials that
have ended. The exit status is that of eval run, and 0 while it runs.`,
		Example: `  fermata eval show refunds-1a2b3c4d
  fermata eval show refunds-1a2b3c4d --json | jq 'select(.type=="trial" and .state!="passed")'`,
		Args: exactArgs(1, "the id of an evaluation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := files.checkFolders(); err != nil {
				return err
			}
			r, err := c.loadReport(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := files.write(r); err != nil {
				return err
			}
			c.showTrials(r)
			c.printReport(r)
			return exitOfReport(r)
		},
	}
	files.flags(cmd)
	c.jsonFlag(cmd, "print each trial as a line of JSON, and then the report")
	return cmd
}

// showTrials prints the trials of a report.
func (c *cli) showTrials(r *report.Report) {
	t := c.Table()
	defer t.Flush()
	for i, one := range r.Trials() {
		if c.JSON {
			c.Line(lineOfTrial(one))
			continue
		}
		if i == 0 {
			t.Row("TRIAL", "STATE", "SESSION", "TURNS", "COST", "WHY")
		}
		t.Row(fmt.Sprintf("%s %d", one.Case, one.N), one.State, one.Session, one.Turns, "$"+one.Cost.String(), short(one.Why))
	}
}

func (c *cli) evalCompareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Compare two evaluations case by case",
		Long: `Compare sets two evaluations side by side: two builds, models or prompts. Each is an
id, or a file with the output of eval run --json. For each case, and for the whole, it
says what changed and how likely chance alone makes such a change (p).

The exit status is 1 if the whole or a case became worse and its p is below 0.05, and
otherwise 0.`,
		Example: `  fermata eval compare refunds-1a2b3c4d refunds-5e6f7a8b
  fermata eval compare main.jsonl refunds-5e6f7a8b --json | jq .verdict`,
		Args: exactArgs(2, "two evaluations: ids, or files with reports"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.compareEvaluations(cmd.Context(), args[0], args[1])
		},
	}
	c.jsonFlag(cmd, "print the comparison as one line of JSON")
	return cmd
}

func (c *cli) compareEvaluations(ctx context.Context, before, after string) error {
	b, err := c.loadReport(ctx, before)
	if err != nil {
		return err
	}
	a, err := c.loadReport(ctx, after)
	if err != nil {
		return err
	}
	d := report.Compare(b, a)
	if d.Pairs == 0 {
		return agent.Errorf(agent.CodeInvalidInput, "%s and %s have no case in common with trials that were graded", b.ID, a.ID)
	}
	if c.JSON {
		c.Line(d)
	} else {
		c.printComparison(d)
	}
	if d.Worse() {
		return ended(1)
	}
	return nil
}

func (c *cli) printComparison(d *report.Comparison) {
	t := c.Table("CASE", "BEFORE", "AFTER", "CHANGE", "P", "VERDICT", "WHY")
	for _, k := range d.Cases {
		change, p := "", ""
		if k.Verdict != report.Unpaired {
			change, p = points(k.Change), pValue(k.P)
		}
		t.Row(k.Name, sideWords(k.Before), sideWords(k.After), change, p, k.Verdict, short(k.Why))
	}
	t.Flush()
	c.Print("%s -> %s: %s · %s over %s, p %s (%s), cost of a trial $%s -> $%s", d.Before.ID, d.After.ID, d.Verdict, points(d.Change), counted(d.Pairs, "case"), pValue(d.P), d.Method, d.CostBefore, d.CostAfter)
	c.Print("single cases: %s, adjusted by Holm", d.CasesMethod)
	for _, t := range []struct {
		what          string
		before, after []string
	}{{"models", d.Tried.ModelsBefore, d.Tried.ModelsAfter}, {"builds", d.Tried.BuildsBefore, d.Tried.BuildsAfter}} {
		if !slices.Equal(t.before, t.after) {
			c.Print("%s: %s -> %s", t.what, untrusted.Line(strings.Join(t.before, ", "), 200), untrusted.Line(strings.Join(t.after, ", "), 200))
		}
	}
}
