package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// expireEvery is the time between two looks of a worker for expired sessions.
const expireEvery = time.Hour

// keepDeleting deletes expired sessions until the context ends, if an agent of the file names a
// retention. Each worker looks at a time of its own; a look that finds nothing only lists heads.
func (c *cli) keepDeleting(ctx context.Context, runs *fermata.Client, f *agentsfile.File) {
	if !slices.ContainsFunc(f.Definitions(), func(d agent.Definition) bool { return d.Retention > 0 }) {
		return
	}
	next := time.NewTimer(rand.N(time.Minute))
	go func() {
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
			}
			c.deleteExpired(ctx, runs)
			next.Reset(expireEvery/2 + rand.N(expireEvery))
		}
	}()
}

// deleteExpired is one look of a worker.
func (c *cli) deleteExpired(ctx context.Context, runs *fermata.Client) {
	for e, err := range runs.DeleteExpired(ctx, &fermata.ExpireOptions{Before: c.recordExpired}) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.Log.Warn("expired sessions are not deleted; the next look is within 90m", zap.Error(err))
		case e.Error != nil:
			c.Log.Warn("an expired session is not deleted", zap.String("session", e.Session), zap.Error(e.Error))
		default:
			c.Log.Info("deleted an expired session", zap.String("session", e.Session), zap.Time("delete_after", e.DeleteAfter))
		}
	}
}

// recordExpired records a deletion before it is made.
func (c *cli) recordExpired(session string) error {
	return c.host.Audit.Key(audit.Entry{What: "delete expired", Session: session})
}

// expiredLine is a line of delete --expired --json.
type expiredLine struct {
	V      int  `json:"v"`
	DryRun bool `json:"dry_run,omitempty"`
	fermata.Expired
}

// expire is delete --expired.
func (e *deleteRun) expire(ctx context.Context) error {
	s, err := e.FindOrStart(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	runs, err := e.Client(ctx, s)
	if err != nil {
		return err
	}
	return e.printExpired(ctx, runs)
}

func (e *deleteRun) printExpired(ctx context.Context, runs *fermata.Client) error {
	verb, n, failed := "deleted", 0, 0
	if e.dry {
		verb = "to delete"
	}
	for one, err := range runs.DeleteExpired(ctx, &fermata.ExpireOptions{DryRun: e.dry, Before: e.recordExpired}) {
		if err != nil {
			return err
		}
		if one.Error != nil {
			failed++
		}
		n++
		switch {
		case e.JSON:
			e.Line(expiredLine{agent.Version, e.dry, one})
		case one.Error != nil:
			e.Print("%-10s %s: %s", "failed", untrusted.Name(one.Session), untrusted.Line(one.Error.Error(), 200))
		default:
			e.Print("%-10s %s, of %s, kept until %s", verb, untrusted.Name(one.Session), untrusted.Name(one.Agent), one.DeleteAfter.Local().Format(time.DateTime))
		}
	}
	if n == 0 {
		e.Note("no session's retention is over")
	}
	if failed > 0 {
		return ended(1)
	}
	return nil
}
