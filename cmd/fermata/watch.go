package main

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/follow"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/live"
)

// watch shows the run to its end, or to where it rests and nobody can be asked,
// and returns its exit status.
func (r *runner) watch(ctx context.Context) (err error) {
	if r.pieces, err = r.Subscribe(ctx, r.server, r.live, r.run.Session); err != nil {
		return err
	}
	defer r.pieces.Close()
	if r.terminal && !r.JSON {
		return r.converse(ctx)
	}
	var to follow.Listener = jsonLines{r.cli, r.run, &render.ProgressOrder{}}
	if !r.JSON {
		to = r.newPrinter()
	}
	o, err := r.next(ctx, to, func() follow.Until { return follow.Until{Rest: true} })
	switch {
	case err == nil:
		return r.printEnd(ctx, r.runs, o, to)
	case ctx.Err() != nil:
		r.interrupted()
		return exitInterrupted
	}
	return err
}

// newPrinter is a teller that has said which run it tells.
func (r *runner) newPrinter() *render.Printer {
	to := r.Printer()
	to.Note("session %s · run %s", r.run.Session, r.run.ID)
	return to
}

// next follows the run, and goes on with it here where that on which it was is gone.
func (r *runner) next(ctx context.Context, to follow.Listener, u func() follow.Until) (*agent.Outcome, error) {
	for {
		o, err := r.follow(ctx, to, u())
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, follow.ErrChanged), errors.Is(err, follow.ErrAsked), errors.Is(err, console.ErrInterrupted):
			return o, err
		case r.serverIsElsewhere() && isLost(err):
			to.Note("the server of another fermata command, on which this run was, is gone: the run goes on here")
			if err := r.moveServer(ctx); err != nil {
				return nil, err
			}
		case errors.Is(err, follow.ErrNoWorker):
			return nil, r.NoWorker(ctx, r.server, "; the run waits for it in session "+r.run.Session)
		default:
			return nil, lost(r.server, r.run.Session, err)
		}
	}
}

// follow follows the run. If the worker that seemed to be there is not, and only
// this user's agents can be on the server, one is started here.
func (r *runner) follow(ctx context.Context, to follow.Listener, u follow.Until) (*agent.Outcome, error) {
	taken := func() bool { return r.worker != nil || r.server.WorkerBegan(ctx, r.run) }
	o, err := follow.Follow(ctx, r.run, &r.heard, r.pieces, to, taken, u)
	if !errors.Is(err, follow.ErrNoWorker) || r.file == nil || r.server.Embedded == nil {
		return o, err
	}
	to.Note("no worker takes the run: the one that was there is gone, and one is started here")
	if err := r.workHere(ctx); err != nil {
		return nil, err
	}
	return follow.Follow(ctx, r.run, &r.heard, r.pieces, to, taken, u)
}

// serverIsElsewhere reports whether the server is in the process of another command that
// this one can take the place of.
func (r *runner) serverIsElsewhere() bool {
	return r.server.Embedded != nil && r.server.Embedded.Shared() && r.file != nil
}

// moveServer goes on with the run on the server that has the data now: one that is
// started here, or that of yet another command.
func (r *runner) moveServer(ctx context.Context) error {
	r.close()
	if err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.findWorker(ctx); err != nil {
		return err
	}
	run, err := r.runs.Get(ctx, r.run.Session)
	if err != nil {
		return err
	}
	if run.ID != r.run.ID {
		return agent.Errorf(agent.CodeStale, "session %s has another run by now, %s", run.Session, run.ID)
	}
	r.run = run
	return nil
}

// isLost reports whether an error says that the server is gone. It comes in two
// forms: nobody is there, and nobody has answered in time.
func isLost(err error) bool {
	return errors.Is(err, agent.CodeUnreachable) || errors.Is(err, agent.CodeTimeout)
}

// lost says what an error means that ends the wait for a run.
func lost(s *connect.Server, session string, err error) error {
	if !isLost(err) {
		return err
	}
	return agent.Errorf(agent.CodeUnreachable, "Temporal at %s does not answer any more: %w; the run is not lost: when the server is back, see fermata wait %s", s.Addr, err, session)
}

// printEnd tells how a run ended, or on what it rests. runs may be nil for one that
// has ended.
func (c *cli) printEnd(ctx context.Context, runs *fermata.Client, o *agent.Outcome, to follow.Listener) error {
	if teller, ok := to.(*render.Printer); ok {
		teller.End(o)
		switch {
		case o.Suspension != nil:
			c.printSuspended(ctx, runs, o)
		case o.Handoff != nil:
			c.Print("%s", c.CommandLine("handoff %s --md", o.Session))
		}
	} else {
		c.Line(o)
	}
	if o.Error != nil {
		c.fail(o.Error)
	}
	return exitOf(o.Status)
}

// interrupted says that the run is not lost, and how it goes on.
func (r *runner) interrupted() { r.Note("interrupted; %s", r.continuesText("the run")) }

// continuesText says what becomes of a run that this process leaves.
func (r *runner) continuesText(what string) string {
	attach := r.CommandLine("attach %s", r.run.Session)
	switch {
	case r.worker == nil:
		return what + " goes on by itself: see " + attach
	case r.server.InProcess():
		return what + " is not lost: fermata dev goes on with it, and " + attach + " then shows it"
	}
	return what + " is not lost: any worker with its agent goes on with it (fermata worker), and " + attach + " then shows it"
}

// jsonLines prints events for programs.
type jsonLines struct {
	cli *cli
	run *fermata.Run
	// remarks are those of tools; nil leaves them out.
	remarks *render.ProgressOrder
}

func (j jsonLines) Event(e agent.Event) {
	j.cli.Line(fermata.Event{Event: e, Session: j.run.Session, Run: j.run.ID})
	j.tell(j.remarks.Event(e))
}

func (j jsonLines) Live(l live.Event) { j.tell(j.remarks.Live(l)) }

func (j jsonLines) tell(list []live.Event) {
	for _, l := range list {
		j.cli.Line(l)
	}
}

func (j jsonLines) Waiting() bool                   { return false }
func (j jsonLines) Flush()                          {}
func (j jsonLines) Note(format string, args ...any) { j.cli.Note(format, args...) }
