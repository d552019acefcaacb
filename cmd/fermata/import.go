package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// importWithin is how long an import waits for a worker.
const importWithin = time.Minute

// importOrder is what to import, and what to answer with it.
type importOrder struct {
	path, by              string
	request, text, result string
	choice                int
}

func (c *cli) importCommand() *cobra.Command {
	var o importOrder
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import an exported session",
		Long: `Import verifies a file of fermata export with the public keys in
` + env.ExportKeys.Public + ` (id:base64,…). It then continues the session on this cluster
and in this store. A suspended run becomes a new suspended run with the same open
requests. Requests whose deadline has passed are decided at once. For an ended session,
import brings the transcript.

--request with --answer, --choice or --result answers a request as soon as the run is
here, also if its deadline has passed on the way. Other requests, and those that name
approvers, are decided after the import (see fermata answer and fermata approve).

A file can be imported once. A file that was changed, has expired, or has another
signature is refused before anything changes, and so is an answer that does not fit.`,
		Example: `  fermata import invoice-118.export
  fermata import trip-42.export --request q-7 --answer "By train"
  fermata import invoice-118.export --json | jq -r '.suspension.requests[].id'`,
		Args: exactArgs(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.path = args[0]
			answers, err := o.answers(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return c.importFile(cmd.Context(), o, answers)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.request, "request", "", "id of the request to answer, such as q-7; fermata export prints it")
	f.StringVar(&o.text, "answer", "", "answer the request with this text")
	f.IntVar(&o.choice, "choice", 0, "answer the request with one of its choices: its number, from 0")
	f.StringVar(&o.result, "result", "", "answer the request with the result of a client tool, as JSON")
	c.byFlag(cmd, &o.by)
	c.jsonFlag(cmd, "print what was imported as one line of JSON")
	return cmd
}

// answers returns the answer in the flags, or none. given reports whether a flag was given.
func (o importOrder) answers(given func(flag string) bool) ([]agent.AnswerTo, error) {
	order, n := &agent.AnswerCommand{Text: o.text}, 0
	for _, flag := range []string{"answer", "choice", "result"} {
		if given(flag) {
			n++
		}
	}
	switch {
	case n == 0 && !given("request"):
		return nil, nil
	case n > 1:
		return nil, agent.Errorf(agent.CodeInvalidInput, "--answer, --choice and --result exclude each other")
	case n == 0:
		return nil, agent.Errorf(agent.CodeInvalidInput, "an answer is required beside --request: --answer TEXT, --choice N or --result JSON")
	case o.request == "":
		return nil, agent.Errorf(agent.CodeInvalidInput, "--request is required: name the request that is answered; fermata export prints those that are open").WithPath("request")
	case given("choice"):
		order.Choice = &o.choice
	case given("result"):
		raw, err := jsonOf("--result", o.result)
		if err != nil {
			return nil, err
		}
		order.Data = raw
	}
	return []agent.AnswerTo{{Request: o.request, Answer: order}}, nil
}

func (c *cli) importFile(ctx context.Context, o importOrder, answers []agent.AnswerTo) error {
	// Without a key every signature would be refused; say so before a server is needed.
	keys, err := env.ExportKeys.Required()
	if err != nil {
		return err
	}
	f, err := os.Open(o.path)
	if err != nil {
		// The name of the system call means nothing to the user.
		return agent.Errorf(agent.CodeInvalidInput, "the export can't be read: %s", strings.TrimPrefix(err.Error(), "open "))
	}
	defer f.Close()
	return c.WithServer(ctx, func(_ *connect.Server, runs *fermata.Client) error {
		ctx, cancel := context.WithTimeout(ctx, importWithin)
		defer cancel()
		// Before the import changes anything: it must not be missing from the audit.
		if err := c.host.Audit.Key(audit.Entry{What: "import"}); err != nil {
			return err
		}
		e, err := runs.Import(ctx, f, &fermata.ImportOptions{Keys: keys, By: byOr(o.by), Answers: answers})
		if err != nil {
			return err
		}
		line := exportLine{V: agent.Version, File: o.path, ExportInfo: e}
		for _, a := range answers {
			line.Answered = append(line.Answered, a.Request)
		}
		c.printExport("imported", line)
		return nil
	})
}
