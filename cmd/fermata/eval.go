package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
	"github.com/fermata-agents/fermata/testsuite/eval/report"
)

func (c *cli) evalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Evaluate agents with suites of cases",
		Long: `Eval tries the cases of a suite several times each, grades what the runs did, and says
how far the numbers can be trusted. Each trial is a run of its own. The evaluation is a
Temporal workflow: after a crash, fermata eval resume continues it.`,
		Example: `  fermata eval run suite.yaml --label before --html report.html
  fermata eval compare refunds-1a2b3c4d refunds-5e6f7a8b
  fermata eval add invoice-118 --to suite.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.evalRunCommand(), c.evalResumeCommand(), c.evalStopCommand(), c.evalListCommand(), c.evalShowCommand(), c.evalCompareCommand(), c.evalAddCommand())
	return cmd
}

// readSuite reads a suite with the cases of its data file, and returns the absolute
// directory that its paths start from.
func readSuite(path string, pick eval.Pick) (*eval.Suite, string, error) {
	raw, err := files.Read(path, eval.MaxSuite)
	if err != nil {
		return nil, "", agent.Errorf(agent.CodeInvalidInput, "the suite can't be read: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, "", agent.Errorf(agent.CodeInvalidInput, "the suite %s: %w", path, err)
	}
	s, err := eval.Read(raw)
	if err == nil {
		err = s.ReadCases(dir, pick)
	}
	if err != nil {
		return nil, "", placed(path, raw, err)
	}
	return s, dir, nil
}

// placed adds the line of the suite to an error, and what a misspelt key was meant to be.
func placed(path string, suite []byte, err error) error {
	var e *agent.Error
	if !errors.As(err, &e) || e.Path == "" {
		return agent.Errorf(agent.CodeOf(err), "%s: %w", path, err)
	}
	// The template of cases_from is that of a case, in the suite's type and in its text.
	at, t := e.Path, reflect.TypeFor[eval.Suite]()
	if rest, ok := strings.CutPrefix(at, "cases_from.case."); ok {
		at, t = rest, reflect.TypeFor[eval.Case]()
	}
	line, _ := agentsfile.Place(suite, e.Path, t)
	text := e.Message
	if strings.Contains(text, "is not known here") {
		_, meant := agentsfile.Place(suite, at, t)
		text += meant
	}
	if line > 0 {
		path = fmt.Sprintf("%s:%d", path, line)
	}
	return agent.Errorf(e.Code, "%s: %s", path, text)
}

// reports are the files that a command writes beside its output.
type reports struct{ junit, html string }

func (r *reports) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.junit, "junit", "", "write the cases to this file, as JUnit's XML")
	cmd.Flags().StringVar(&r.html, "html", "", "write everything to this file, as one page")
}

// write writes the files that were asked for.
func (r *reports) write(of *report.Report) error {
	for _, one := range []struct {
		path  string
		write func(io.Writer) error
	}{{r.junit, of.JUnit}, {r.html, of.HTML}} {
		if one.path == "" {
			continue
		}
		if err := replaceFile(one.path, one.write); err != nil {
			return err
		}
	}
	return nil
}

// checkFolders refuses files that could not be written once the trials are paid for.
func (r *reports) checkFolders() error {
	for _, path := range []string{r.junit, r.html} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return agent.Errorf(agent.CodeInvalidInput, "%s can't be written: there is no folder %s", path, filepath.Dir(path))
		}
	}
	return nil
}

// trialLine is a trial in the output of eval run, resume and show with --json.
type trialLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	eval.Trial
}

func lineOfTrial(t eval.Trial) trialLine { return trialLine{V: agent.Version, Type: "trial", Trial: t} }

// printReport prints what came of an evaluation.
func (c *cli) printReport(r *report.Report) {
	if c.JSON {
		c.Line(r)
		return
	}
	t := c.Table("CASE", "STATE", "PASSED", "RATE", "95 %", "COST", "TURNS", "TIME", "WHY")
	for _, k := range r.Cases {
		if k.Decided() == 0 { // a rate of 0 % would say that it failed
			t.Row(k.Name, k.State, of(k.Passed, k.Planned), "-", "-", "-", "-", "-", short(k.Why))
			continue
		}
		t.Row(k.Name, k.State, of(k.Passed, k.Planned), percent(k.Rate.Rate), interval(k.Rate.Interval), "$"+k.Cost.String(), oneDigit(k.Turns), rounded(k.Duration), short(k.Why))
	}
	t.Flush()
	for _, k := range r.K {
		c.Print("pass@%d %s (%s)  pass^%d %s (%s)", k.K, percent(k.At.Rate), interval(k.At.Interval), k.K, percent(k.Hat.Rate), interval(k.Hat.Interval))
	}
	c.Print("%s: %s · %s", r.ID, r.State, tallied(r))
	if r.Stopped != "" {
		c.Note("the evaluation stopped early (%s): %s left out", r.Stopped, counted(r.LeftOut, "trial"))
	}
}

// exitOfReport returns the exit status: 0 if all cases passed, 1 if one did not, 4 if
// trials were left out. For trials that could not be made or graded it is their code's.
func exitOfReport(r *report.Report) error {
	switch r.State {
	case report.StateFailed:
		return ended(1)
	case report.StateError:
		for _, t := range r.Trials() {
			if t.Error != nil {
				return ended(t.Error.Code.ExitStatus())
			}
		}
		return ended(agent.CodeInternal.ExitStatus())
	case report.StateLeftOut:
		return exitStopped
	}
	return nil
}

// loadReport reads the report of an evaluation by its id, or from a file that eval run
// --json has written.
func (c *cli) loadReport(ctx context.Context, name string) (*report.Report, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		raw, err := files.Read(name, report.MaxFile)
		if err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "the report can't be read: %w", err)
		}
		r, err := report.Parse(raw)
		if err != nil {
			return nil, agent.Errorf(agent.CodeOf(err), "%s: %w", name, err)
		}
		return r, nil
	}
	var r *report.Report
	err := c.WithServer(ctx, func(s *connect.Server, _ *fermata.Client) error {
		h, err := c.evaluation(ctx, s, name)
		if err != nil {
			return err
		}
		e, err := h.Load(ctx)
		if err != nil {
			return c.hintResume(h, err)
		}
		r = report.Of(e)
		return nil
	})
	return r, err
}

// evaluation finds an evaluation by its id.
func (c *cli) evaluation(ctx context.Context, s *connect.Server, id string) (*evalrun.Handle, error) {
	h, err := evalrun.Get(ctx, s.Client, id)
	if errors.Is(err, agent.CodeNotFound) {
		return nil, agent.Errorf(agent.CodeNotFound, "%s is no evaluation that this server has, and no file with a report; see %s", id, c.CommandLine("eval ls"))
	}
	return h, err
}

// hintResume adds to an error of an evaluation without a worker how it goes on.
func (c *cli) hintResume(h *evalrun.Handle, err error) error {
	switch agent.CodeOf(err) {
	case agent.CodeNoWorker, agent.CodeTimeout:
		return agent.Errorf(agent.CodeNoWorker, "nobody works on the evaluation %s: continue it with %s", h.ID, c.CommandLine("eval resume %s", h.ID))
	}
	return err
}
