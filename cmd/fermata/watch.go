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

// watch shows the run until it ends, or is suspended and nobody can be asked. It returns
// the exit status.
func (r *runner) watch(ctx context.Context) (err error) {
	// Subscribed first: live pieces that come before it may be lost.
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

// newPrinter returns a printer that has shown which run it is.
func (r *runner) newPrinter() *render.Printer {
	to := r.Printer()
	to.Note("session %s · run %s", r.run.Session, r.run.ID)
	return to
}

// next follows the run. If the server of another command is gone, the run continues in
// this process.
func (r *runner) next(ctx context.Context, to follow.Listener, u func() follow.Until) (*agent.Outcome, error) {
	for {
		o, err := r.follow(ctx, to, u())
		switch {
		// These errors belong to the caller: the run and its server are fine.
		case err == nil, ctx.Err() != nil, errors.Is(err, follow.ErrChanged), errors.Is(err, follow.ErrAsked), errors.Is(err, console.ErrInterrupted):
			return o, err
		case r.serverIsElsewhere() && isLost(err):
			to.Note("the server of another fermata command is gone: its run continues here")
			if err := r.moveServer(ctx); err != nil {
				return nil, err
			}
		case errors.Is(err, follow.ErrNoWorker):
			return nil, r.NoWorker(ctx, r.server, "; the run waits for it in session "+r.run.Session)
		default:
			return nil, r.lost(r.server, r.run.Session, err)
		}
	}
}

// follow follows the run. If no worker takes it, and only this user's agents can be on
// the server, it starts a worker here.
func (r *runner) follow(ctx context.Context, to follow.Listener, u follow.Until) (*agent.Outcome, error) {
	// A worker of this process takes it for sure, so the server is not asked.
	taken := func() bool { return r.worker != nil || r.server.WorkerBegan(ctx, r.run) }
	o, err := follow.Follow(ctx, r.run, &r.followed, r.pieces, to, taken, u)
	if !errors.Is(err, follow.ErrNoWorker) || r.file == nil || r.server.Embedded == nil {
		return o, err
	}
	to.Note("no worker takes the run: the last one is gone, so this command starts one")
	if err := r.workHere(ctx); err != nil {
		return nil, err
	}
	return follow.Follow(ctx, r.run, &r.followed, r.pieces, to, taken, u)
}

// serverIsElsewhere reports whether the server is in the process of another command,
// which this one can replace.
func (r *runner) serverIsElsewhere() bool {
	return r.server.Embedded != nil && r.server.Embedded.Shared() && r.file != nil
}

// moveServer continues the run on the server that has the data now: one that is started
// here, or that of yet another command.
func (r *runner) moveServer(ctx context.Context) error {
	// The old server is gone; release what belonged to it before looking for another.
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
	// The other command may have continued the session meanwhile.
	if run.ID != r.run.ID {
		return agent.Errorf(agent.CodeStale, "session %s has another run by now, %s", run.Session, run.ID)
	}
	r.run = run
	return nil
}

// isLost reports whether an error means that the server is gone. There are two forms:
// nobody is there, and nobody answered in time.
func isLost(err error) bool {
	return errors.Is(err, agent.CodeUnreachable) || errors.Is(err, agent.CodeTimeout)
}

// lost explains an error that ends the wait for a run.
func (c *cli) lost(s *connect.Server, session string, err error) error {
	if !isLost(err) {
		return err
	}
	return agent.Errorf(agent.CodeUnreachable, "Temporal at %s does not answer any more: %w; the run is not lost: when the server is back, see %s", s.Addr, err, c.CommandLine("wait %s", session))
}

// printEnd shows how a run ended or why it is suspended. runs may be nil for a run that
// has ended.
func (c *cli) printEnd(ctx context.Context, runs *fermata.Client, o *agent.Outcome, to follow.Listener) error {
	// A printer means people; anything else prints for programs.
	if printer, ok := to.(*render.Printer); ok {
		printer.End(o)
		switch {
		case o.Suspension != nil:
			c.printSuspended(ctx, runs, o)
		case handsOff(*o):
			hint := c.CommandLine("handoff %s --md", o.Session)
			if c.embedded {
				hint += " (after " + c.devLine() + ": this command's server ends with it)"
			}
			c.Print("%s", hint)
		}
	} else {
		c.Line(o)
	}
	if o.Error != nil {
		c.fail(o.Error)
	}
	return exitOfOutcome(o)
}

// interrupted says that the run is not lost, and how it continues.
func (r *runner) interrupted() { r.Note("interrupted; %s", r.continuesText("the run")) }

// continuesText says what happens to a run that this process leaves.
func (r *runner) continuesText(what string) string {
	attach := r.CommandLine("attach %s", r.run.Session)
	switch {
	case r.worker == nil:
		return what + " continues by itself: see " + attach
	case r.server.InProcess():
		return what + " is not lost: " + r.devLine() + " continues it, and " + attach + " then shows it"
	}
	return what + " is not lost: any worker with its agent continues it (" + r.workerLine() + "), and " + attach + " then shows it"
}

// jsonLines prints events for programs.
type jsonLines struct {
	cli *cli
	run *fermata.Run
	// remarks orders the progress of tools; nil leaves it out.
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
