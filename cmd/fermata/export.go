package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// exportOrder is what to export, and how.
type exportOrder struct {
	session, file string
	lasts         time.Duration
	forever, move bool
}

func (c *cli) exportCommand() *cobra.Command {
	var o exportOrder
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Export a session to a signed file",
		Long: `Export writes a suspended or ended session to one file, with everything that it waits
for. fermata import continues the session on another cluster, once. The file is
signed with the private key in ` + env.ExportKeys.Private + `
(see fermata token key --exports).

The file contains the whole conversation and is not encrypted: protect it like the
store. The session here does not change. Cancel it when it continues elsewhere, or its
work is done twice. --move cancels it as soon as the file is on the disk.`,
		Example: `  fermata export invoice-118 -o invoice-118.export
  fermata export invoice-118 -o invoice-118.export --for 168h --move
  fermata export invoice-118 -o invoice-118.export --json | jq -r .expires`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return c.export(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "output", "o", "", "the file to write, which must not exist; - is standard output")
	f.Var(days{&o.lasts}, "for", "how long the file can be imported (default 24h; --no-expiry sets no end)")
	f.BoolVar(&o.forever, "no-expiry", false, "the file can be imported at any time")
	f.BoolVar(&o.move, "move", false, "cancel the session here when the file is written")
	c.jsonFlag(cmd, "print the file's contents in short as one line of JSON")
	return cmd
}

// exportLine is the output of export and import with --json.
type exportLine struct {
	V    int    `json:"v"`
	File string `json:"file"`
	// Moved means that the session was cancelled where it was.
	Moved bool `json:"moved,omitempty"`
	// Answered are the requests that the import has answered; Suspension lists them, too.
	Answered []string `json:"answered,omitempty"`
	fermata.ExportInfo
}

func (c *cli) export(ctx context.Context, o exportOrder) error {
	if o.file == "" {
		return agent.Errorf(agent.CodeInvalidInput, "name the file to write with -o")
	}
	if o.file == "-" && c.JSON {
		return agent.Errorf(agent.CodeInvalidInput, "-o - and --json exclude each other: both write to standard output")
	}
	if o.file == "-" && o.move {
		return agent.Errorf(agent.CodeInvalidInput, "--move needs a file: Fermata cannot know whether standard output was kept")
	}
	// Checked before anything is signed or recorded. Lstat also finds a broken link.
	if _, err := os.Lstat(o.file); o.file != "-" && !errors.Is(err, fs.ErrNotExist) {
		return agent.Errorf(agent.CodeInvalidInput, "%s exists already; name another file", o.file)
	}
	key, err := env.ExportKeys.Signer()
	if err != nil {
		return err
	}
	options := fermata.ExportOptions{Key: key, ValidFor: o.lasts, NoExpiry: o.forever}
	return c.WithServer(ctx, func(_ *connect.Server, runs *fermata.Client) error {
		// Recorded before the key signs: an export that the audit misses could not be found later.
		if err := c.host.Audit.Key(audit.Entry{What: "export", Session: o.session}); err != nil {
			return err
		}
		e, err := c.writeExport(ctx, runs, o, options)
		if err != nil {
			return err
		}
		// Only after the file is durable: a cancelled session without its file would be
		// lost.
		if o.move {
			if err := runs.CancelExported(ctx, e); err != nil {
				return err
			}
		}
		c.printExport("exported", exportLine{V: agent.Version, File: o.file, Moved: o.move, ExportInfo: e})
		return nil
	})
}

// writeExport puts the file in place when it is complete and durable.
func (c *cli) writeExport(ctx context.Context, runs *fermata.Client, o exportOrder, options fermata.ExportOptions) (e fermata.ExportInfo, err error) {
	if o.file == "-" {
		// Unchanged, in any locale. An export that fails leaves a part that no import
		// accepts.
		plain := c.Out.Exact()
		if e, err = runs.Export(ctx, o.session, plain, &options); plain.Failed() != nil {
			err = plain.Failed()
		}
		return e, err
	}
	err = replaceFile(o.file, func(w io.Writer) error {
		e, err = runs.Export(ctx, o.session, w, &options)
		return err
	})
	return e, err
}

// printExport shows what a file contains.
func (c *cli) printExport(done string, l exportLine) {
	if c.JSON {
		c.Line(l)
		return
	}
	// Standard output is the export itself, so people's lines go to standard error.
	say := c.Print
	if l.File == "-" {
		say = c.Note
	}
	say("%-10s %s, agent %s, %s", done, l.Session, l.Agent, l.Status)
	say("export     %s, signed with %s, of run %s", l.Export, l.Key, l.Run)
	if w := l.Suspension; w != nil {
		var open []string
		for _, q := range w.Requests {
			if !slices.Contains(l.Answered, q.ID) {
				open = append(open, q.ID)
			}
		}
		say("waits      %s, %s; open requests: %s", w.ID, w.Kind, orNone(open))
	}
	for _, request := range l.Answered {
		say("answered   %s", request)
	}
	if l.Expires.IsZero() {
		say("expires    never")
	} else {
		say("expires    %s", l.Expires.Local().Format(time.DateTime))
	}
	if l.Moved {
		say("moved      the session is cancelled here")
	}
}
