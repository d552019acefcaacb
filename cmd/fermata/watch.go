package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/term"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/story"
)

// watch shows the run to its end, and returns its exit status.
func (r *runner) watch(ctx context.Context) error {
	var to listener = jsonLines{r.cli, r.run}
	if !r.json {
		to = r.teller()
		to.Note("session %s · run %s", r.run.Session, r.run.ID)
	}
	for {
		o, err := r.follow(ctx, to)
		switch {
		case err == nil:
			return r.told(o, to)
		case ctx.Err() != nil:
			r.interrupted()
			return exitInterrupted
		case r.borrowed() && isLost(err):
			to.Note("the server of another fermata command, on which this run was, is gone: the run goes on here")
			if err := r.move(ctx); err != nil {
				return err
			}
		case errors.Is(err, errUntaken):
			return r.noWorker(r.server, "; the run waits for it in session "+r.run.Session)
		default:
			return lost(r.server, r.run.Session, err)
		}
	}
}

// follow follows the run. If the worker that seemed to be there is not, and only
// this user's agents can be on the server, one is started here.
func (r *runner) follow(ctx context.Context, to listener) (*agent.Outcome, error) {
	taken := func() bool { return r.crew != nil || r.server.taken(ctx, r.run) }
	o, err := follow(ctx, r.run, &r.heard, r.live, to, taken)
	if !errors.Is(err, errUntaken) || r.file == nil || r.server.embedded == nil {
		return o, err
	}
	to.Note("no worker takes the run: the one that was there is gone, and one is started here")
	if err := r.workHere(ctx); err != nil {
		return nil, err
	}
	return follow(ctx, r.run, &r.heard, r.live, to, taken)
}

// borrowed tells whether the server is in the process of another command that
// this one can take the place of.
func (r *runner) borrowed() bool {
	return r.server.embedded != nil && r.server.embedded.Shared() && r.file != nil
}

// move goes on with the run on the server that has the data now: one that is
// started here, or that of yet another command.
func (r *runner) move(ctx context.Context) error {
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
		return agent.Errorf(agent.Stale, "session %s has another run by now, %s", run.Session, run.ID)
	}
	r.run = run
	return nil
}

// isLost tells whether an error says that the server is gone. It comes in two
// forms: nobody is there, and nobody has answered in time.
func isLost(err error) bool {
	return errors.Is(err, agent.Unreachable) || errors.Is(err, agent.Timeout)
}

// lost says what an error means that ends the wait for a run.
func lost(s *server, session string, err error) error {
	if !isLost(err) {
		return err
	}
	return agent.Errorf(agent.Unreachable, "Temporal at %s does not answer any more: %w; the run is not lost: when the server is back, see fermata wait %s", s.addr, err, session)
}

// told tells how a run ended.
func (c *cli) told(o *agent.Outcome, to listener) error {
	if teller, ok := to.(*story.Teller); ok {
		teller.End(o)
	} else {
		c.line(o)
	}
	if o.Error != nil {
		c.fail(o.Error)
	}
	return exitOf(o.Status)
}

// interrupted says that the run is not lost, and how it goes on.
func (r *runner) interrupted() {
	switch {
	case r.crew == nil:
		r.note("interrupted; the run goes on by itself: see fermata wait %s", r.run.Session)
	case r.server.inProcess():
		r.note("interrupted; the run is not lost: fermata dev goes on with it, and fermata wait %s then shows its end", r.run.Session)
	default:
		r.note("interrupted; the run is not lost: any worker with its agent goes on with it (fermata worker), and fermata wait %s then shows its end", r.run.Session)
	}
}

// jsonLines prints events for programs.
type jsonLines struct {
	cli *cli
	run *fermata.Run
}

// eventLine is an event with where it belongs.
type eventLine struct {
	V       int    `json:"v"`
	Session string `json:"session"`
	Run     string `json:"run"`
	agent.Event
}

func (j jsonLines) Event(e agent.Event) {
	j.cli.line(eventLine{V: agent.Version, Session: j.run.Session, Run: j.run.ID, Event: e})
}

func (j jsonLines) Live(activities.Live)            {}
func (j jsonLines) Waiting() bool                   { return false }
func (j jsonLines) Flush()                          {}
func (j jsonLines) Note(format string, args ...any) { j.cli.note(format, args...) }

// teller tells runs on standard output, with colours if that is a terminal.
func (c *cli) teller() *story.Teller {
	var o story.Options
	if f, ok := c.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		o.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	return story.New(c.out, o)
}
