package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// deleteRun is one `delete`.
type deleteRun struct {
	*cli
	yes     bool
	expired bool
	dry     bool
	timeout time.Duration
}

func (c *cli) deleteCommand() *cobra.Command {
	e := &deleteRun{cli: c}
	cmd := &cobra.Command{
		Use:   "delete SESSION | --expired",
		Short: "Delete a session for good",
		Long: `Delete deletes a session and the sessions of its sub-agents: their executions in
Temporal, their logs and their state in the store. It then checks that nothing is
left. Parts that a fork shares with the session are kept and listed.

A session with a live run is refused: stop or cancel the run first. A session whose
head in the store can't be read is refused too.

With --expired it deletes every session whose retention is over, and asks nobody: the
agent of a session's last run says how long it is kept (retention). Sessions in use are
kept. With --dry-run it prints what it would delete.

A deleted session can't be restored. On a terminal the command asks you first;
without one it needs --yes. If it was interrupted, run it again.`,
		Example: `  fermata delete invoice-118
  fermata delete invoice-118 --yes --json | jq .store.kept
  fermata delete --expired --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if e.expired {
				return exactArgs(0, "no session beside --expired")(cmd, args)
			}
			return exactArgs(1, "a session, or --expired")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case e.expired:
				return e.expire(cmd.Context())
			case e.dry:
				return agent.Errorf(agent.CodeInvalidInput, "--dry-run needs --expired")
			}
			return e.do(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&e.yes, "yes", false, "do not ask")
	f.BoolVar(&e.expired, "expired", false, "delete every session whose retention is over")
	f.BoolVar(&e.dry, "dry-run", false, "with --expired: delete nothing, and print what would be deleted")
	f.DurationVar(&e.timeout, "timeout", time.Minute, "how long to wait for the server")
	c.jsonFlag(cmd, "print what was deleted as one line of JSON")
	return cmd
}

func (e *deleteRun) do(ctx context.Context, session string) error {
	if e.timeout <= 0 {
		return agent.Errorf(agent.CodeInvalidInput, "--timeout must be positive")
	}
	if err := agent.CheckSession(session); err != nil {
		// The embedded server is started if needed: a deletion must also reach its executions.
		return err
	}
	s, err := e.FindOrStart(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	runs, err := e.Client(ctx, s)
	if err != nil {
		return err
	}
	// Before the timeout begins: the person may think for as long as they like.
	if err := e.confirm(ctx, session); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	// Recorded first: otherwise a failed audit would leave a deletion without an entry.
	if err := e.host.Audit.Key(audit.Entry{What: "delete", Session: session}); err != nil {
		return err
	}
	done, err := runs.Delete(ctx, session)
	// A deletion that failed half way has deleted something, which must be shown.
	if err == nil || len(done.Executions)+len(done.Store.Sessions)+len(done.Store.Chunks) > 0 {
		e.printDeleted(done, err)
	}
	return err
}

func (e *deleteRun) confirm(ctx context.Context, session string) error {
	switch {
	case e.yes:
		return nil
	// --json is for programs, so nobody is asked even on a terminal.
	case !e.terminal || e.JSON:
		return agent.Errorf(agent.CodeInvalidInput, "deleting session %s needs a confirmation, and there is no terminal to ask: add --yes", session).WithPath("yes")
	}
	yes, err := e.console().Yes(ctx, "delete session "+session+" for good?")
	if err != nil {
		return noAnswerGiven(err)
	}
	if !yes {
		return agent.Errorf(agent.CodeInvalidInput, "nothing was deleted")
	}
	return nil
}

func (e *deleteRun) printDeleted(d fermata.DeleteResult, err error) {
	if e.JSON {
		e.Line(d)
		return
	}
	deleted := "deleted"
	if err != nil {
		deleted = "deleted in part"
	}
	t := e.Table()
	defer t.Flush()
	t.Row(deleted, untrusted.Name(d.Session))
	t.Row("executions", len(d.Executions))
	t.Row("heads", len(d.Store.Sessions))
	t.Row("chunks", len(d.Store.Chunks))
	for _, k := range d.Store.Shared {
		t.Field("kept", "%s for session %s", counted(len(k.Chunks), "chunk"), untrusted.Name(k.Session))
	}
	for _, f := range d.Store.Faults {
		t.Field("unreadable", "%s: [%s] %s", untrusted.Name(f.Session), f.Code, f.Message)
	}
}
