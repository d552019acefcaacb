package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/store"
)

func (c *cli) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Maintain the store of the transcripts",
		Long: `Store maintains the store of the transcripts: the folder, database or bucket of --store
or ` + env.Store + `. It needs no server.`,
		Example: `  fermata store gc --dry-run
  fermata store check
  fermata store rekey`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.collectCommand(), c.checkCommand(), c.rekeyCommand())
	return cmd
}

func (c *cli) collectCommand() *cobra.Command {
	older, dry := time.Hour, false
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete chunks that no session needs",
		Long: `Gc deletes the chunks that belong to no session: what crashed workers, deleted sessions
and reset runs have left. It may run while workers write. A chunk is written before its
session refers to it, so gc keeps new chunks (see --older).

If a session can't be read, gc names it and keeps all its chunks. The exit status is
then 1. See fermata store check.`,
		Example: `  fermata store gc --dry-run
  fermata store gc --older 24h --json | jq .deleted
  fermata store gc --store /mnt/fermata`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.collect(cmd.Context(), older, dry) },
	}
	olderFlag(cmd.Flags(), &older, "only chunks that were last written this long ago")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "delete nothing, and print what would be deleted")
	c.jsonFlag(cmd, "print the result as one line of JSON")
	return cmd
}

// collected is the output of gc --json.
type collected struct {
	V      int    `json:"v"`
	Store  string `json:"store"`
	DryRun bool   `json:"dry_run"`
	store.CollectResult
}

func (c *cli) collect(ctx context.Context, older time.Duration, dry bool) error {
	s, err := c.OpenExistingStore(ctx)
	if err != nil {
		return err
	}
	// The age protects chunks that a worker has written but not yet linked to a session.
	done, err := store.NewLog(s).Collect(ctx, older, dry)
	if c.JSON {
		// Also with an error: what was deleted before it is deleted.
		c.Line(collected{agent.Version, store.Location(s), dry, done})
	}
	if err != nil {
		return err
	}
	// The counts are in the line above; only the exit status is left.
	if c.JSON {
		return c.faults(nil, done.Faults)
	}
	verb := "deleted"
	if dry {
		verb = "to delete"
	}
	c.printStore(s, done.Sessions, done.Chunks)
	c.Print("%-10s %d, of %d bytes", verb, done.Deleted, done.Bytes)
	c.Print("left       %d: written in the last %s, or of a session that can't be read", done.Left, older)
	return c.faults(c.Print, done.Faults)
}

// faults shows sessions that can't be read. The exit status is 1 if there are any.
func (c *cli) faults(tell func(format string, args ...any), faults []store.Fault) error {
	for _, f := range faults {
		if tell != nil {
			tell("%-10s %s: [%s] %s", "unreadable", untrusted.Name(f.Session), f.Code, f.Message)
		}
	}
	if len(faults) > 0 {
		return ended(1)
	}
	return nil
}

func (c *cli) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find missing and damaged transcripts",
		Long: `Check reads every transcript and compares its chunks with their digests. It prints
sessions with chunks that are missing, damaged or of a newer version. It changes
nothing. The exit status is 1 if there are any.`,
		Example: `  fermata store check
  fermata store check --json | jq -r '.faults[]?.session'`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.check(cmd.Context()) },
	}
	c.jsonFlag(cmd, "print the result as one line of JSON")
	return cmd
}

func (c *cli) printStore(s *store.Encrypted, sessions, chunks int) {
	c.Print("store      %s", store.Location(s))
	c.Print("sessions   %d", sessions)
	c.Print("chunks     %d", chunks)
}

// checked is the output of check --json.
type checked struct {
	V     int    `json:"v"`
	Store string `json:"store"`
	store.CheckResult
}

func (c *cli) check(ctx context.Context) error {
	s, err := c.OpenExistingStore(ctx)
	if err != nil {
		return err
	}
	found, err := store.NewLog(s).Check(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		c.Line(checked{agent.Version, store.Location(s), found})
		return c.faults(nil, found.Faults)
	}
	c.printStore(s, found.Sessions, found.Chunks)
	return c.faults(c.Print, found.Faults)
}

func (c *cli) rekeyCommand() *cobra.Command {
	var o store.RekeyOptions
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Encrypt all transcripts with the first key",
		Long: `Rekey reads the store with any of the keys in ` + env.Encryption + ` and writes
everything again with the first key. It may run while workers that have the key write.
If it was interrupted, run it again. It leaves what another key wrote meanwhile.

With --plain, rekey also encrypts what is not encrypted. Use it once, when a store gets
its first key: stop the workers, set the key, run rekey, start the workers. Later,
plain data in the store may come from an attacker. Without --plain, rekey counts plain
data and leaves it.

Payloads in Temporal's histories do not change. Keep an old key until their retention
is over and no run that started with the key is live.`,
		Example: `  fermata store rekey
  fermata store rekey --plain
  fermata store rekey --json | jq .remaining`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.rekey(cmd.Context(), &o) },
	}
	cmd.Flags().BoolVar(&o.Plain, "plain", false, "also encrypt what was stored before there were keys")
	c.jsonFlag(cmd, "print the result as one line of JSON")
	return cmd
}

// rekeyed is the output of rekey --json.
type rekeyed struct {
	V     int    `json:"v"`
	Store string `json:"store"`
	store.RekeyResult
}

func (c *cli) rekey(ctx context.Context, o *store.RekeyOptions) error {
	s, err := c.OpenExistingStore(ctx)
	if err != nil {
		return err
	}
	// Recorded before the keys are used.
	if err := c.host.Audit.Key(audit.Entry{What: "store rekey"}); err != nil {
		return err
	}
	done, err := s.Rekey(ctx, o)
	if c.JSON {
		c.Line(rekeyed{agent.Version, store.Location(s), done})
		return err
	}
	if err != nil {
		return err
	}
	c.Print("store      %s", store.Location(s))
	c.Print("key        %s", done.Key)
	c.Print("encrypted  %d chunks, %d heads", done.Chunks, done.Heads)
	c.Print("left       %d", done.Remaining)
	if done.Plain > 0 {
		c.Print("plain      %d, left as they are: if they are older than the first key, encrypt them once with fermata store rekey --plain", done.Plain)
	}
	return nil
}
