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

func (c *cli) importCommand() *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import an exported session",
		Long: `Import verifies a file of fermata export with the public keys in
` + env.ExportKeys.Public + ` (id:base64,…). It then continues the session on this cluster
and in this store. A suspended run becomes a new suspended run with the same open
requests. Requests whose deadline has passed are decided at once. For an ended session,
import brings the transcript.

A file can be imported once. A file that was changed, has expired, or has another
signature is refused before anything changes.`,
		Example: `  fermata import invoice-118.export
  fermata import invoice-118.export --json | jq -r '.suspension.requests[].id'`,
		Args: exactArgs(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.importFile(cmd.Context(), args[0], by) },
	}
	c.byFlag(cmd, &by)
	c.jsonFlag(cmd, "print what was imported as one line of JSON")
	return cmd
}

func (c *cli) importFile(ctx context.Context, path, by string) error {
	// Without a key every signature would be refused; say so before a server is needed.
	keys, err := env.ExportKeys.Required()
	if err != nil {
		return err
	}
	f, err := os.Open(path)
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
		e, err := runs.Import(ctx, f, &fermata.ImportOptions{Keys: keys, By: byOr(by)})
		if err != nil {
			return err
		}
		c.printExport("imported", exportLine{V: agent.Version, File: path, ExportInfo: e})
		return nil
	})
}
