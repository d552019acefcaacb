package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
)

func (c *cli) evalAddCommand() *cobra.Command {
	var to, name string
	cmd := &cobra.Command{
		Use:   "add SESSION --to SUITE",
		Short: "Make a case of a recorded session",
		Long: `Add makes a case of the last run of a session, and adds it to a suite's file: the task,
the tool calls in their order, what people approved, and the outcome. A file that does
not exist becomes a new suite. Loosen the graders: another answer may be as good.`,
		Example: `  fermata eval add invoice-118 --to suite.yaml --name refund-twice`,
		Args:    exactArgs(1, "a session"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.addCase(cmd.Context(), args[0], to, name) },
	}
	cmd.Flags().StringVar(&to, "to", "", "the suite's file")
	cmd.Flags().StringVar(&name, "name", "", "name of the case (default made of the session)")
	c.jsonFlag(cmd, "print the case as one line of JSON")
	return cmd
}

// addedLine is the output of eval add --json.
type addedLine struct {
	V     int       `json:"v"`
	Suite string    `json:"suite"`
	Case  eval.Case `json:"case"`
	Left  []string  `json:"left"`
}

// noName matches what a name of a case or a suite may not have.
var noName = regexp.MustCompile(`[^a-z0-9_-]+`)

// nameOf makes a name of a case or a suite from another name.
func nameOf(text string) string {
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(text), "-"), "-_")
	return cmp.Or(name[:min(len(name), 40)], "case")
}

func (c *cli) addCase(ctx context.Context, session, to, name string) error {
	if to == "" {
		return agent.Errorf(agent.CodeInvalidInput, "--to is required: the suite's file")
	}
	suite, err := files.Read(to, eval.MaxSuite)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agent.Errorf(agent.CodeInvalidInput, "the suite can't be read: %w", err)
	}
	return c.WithLog(ctx, session, func(runs *fermata.Client) error {
		made, left, err := evalrun.Recorded(ctx, runs, session, cmp.Or(name, nameOf(session)))
		if err != nil {
			return err
		}
		text, err := eval.Append(suite, nameOf(strings.TrimSuffix(filepath.Base(to), filepath.Ext(to))), made)
		if err != nil {
			return err
		}
		if err := replaceFile(to, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return err
		}
		for _, what := range left {
			c.Note("not in the case: %s", what)
		}
		if c.JSON {
			c.Line(addedLine{agent.Version, to, made, append([]string{}, left...)})
			return nil
		}
		c.Print("case %s added to %s: %s", made.Name, to, counted(len(made.Graders), "grader"))
		return nil
	})
}
