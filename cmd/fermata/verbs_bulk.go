package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// bulk is a verb for all live runs that a query finds.
type bulk struct {
	query, agent string
	dry, yes     bool
}

func (m *bulk) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.query, "query", "", "apply to every live run that matches, in Temporal's list filter language")
	f.StringVar(&m.agent, "agent", "", "with --query: only runs of this agent")
	f.BoolVar(&m.dry, "dry-run", false, "with --query: only print the sessions")
	f.BoolVar(&m.yes, "yes", false, "with --query: confirm")
}

// oneOrMany requires a session or a query, and not both.
func (m *bulk) oneOrMany(cmd *cobra.Command, args []string) error {
	switch {
	case m.query == "" && (m.agent != "" || m.dry || m.yes):
		return errors.New("--agent, --dry-run and --yes belong to --query")
	case m.query == "":
		return exactArgs(1, "a session, or --query")(cmd, args)
	case len(args) > 0:
		return errors.New("a session and --query exclude each other")
	case m.agent != "":
		return agent.CheckName(m.agent)
	}
	return nil
}

// sendToMany shows how many runs there are, and sends the verb to them if that is
// confirmed.
func (h *verbRun) sendToMany(ctx context.Context, runs *fermata.Client) error {
	found, under, err := h.bulk.live(ctx, runs, h.TaskQueue)
	if err != nil {
		return err
	}
	h.Note("%s", found.count(under))
	switch {
	case h.bulk.dry:
		for _, l := range found {
			h.printFound(l)
		}
		return nil
	case len(found) == 0:
		return nil
	// The count is shown before, so the person knows what they confirm.
	case !h.bulk.yes:
		return agent.Errorf(agent.CodeInvalidInput, "%s was sent to none of %s: repeat it with --yes, or list them with --dry-run", h.verb, counted(len(found), "run"))
	}
	return h.printMany(found, h.each(ctx, runs, found))
}

// listing are the runs that were found.
type listing []fermata.RunInfo

func (l listing) count(under int) string {
	text := "no live run found"
	if len(l) > 0 {
		text = counted(len(l), "live run") + " found"
	}
	if under > 0 {
		text += fmt.Sprintf(", and %d below them, which get it from their parents", under)
	}
	return text
}

func (h *verbRun) printFound(l fermata.RunInfo) {
	if h.JSON {
		h.Line(l)
		return
	}
	h.Print("%s  %s  %s", untrusted.Name(l.Session), untrusted.Name(l.Agent), l.Status)
}

// live lists the runs. It leaves out a run whose ancestor is also found, since the
// ancestor's verb reaches it. Otherwise it would be held twice, and resumed only once.
func (m *bulk) live(ctx context.Context, runs *fermata.Client, queue string) (found listing, under int, err error) {
	// In parentheses: an OR in the user's query must not undo the first condition.
	f := fermata.ListOptions{Agent: m.agent, TaskQueue: queue, Query: "ExecutionStatus = 'Running' AND (" + m.query + ")"}
	for l, err := range runs.List(ctx, &f) {
		if err != nil {
			return nil, 0, badQuery(m.query, err)
		}
		found = append(found, l)
	}
	sessions := map[string]bool{}
	for _, l := range found {
		sessions[l.Session] = true
	}
	all := len(found)
	found = slices.DeleteFunc(found, func(l fermata.RunInfo) bool {
		// Each prefix of a session's path is an ancestor.
		for at := strings.LastIndexByte(l.Session, '/'); at > 0; at = strings.LastIndexByte(l.Session[:at], '/') {
			if sessions[l.Session[:at]] {
				return true
			}
		}
		return false
	})
	return found, all - len(found), nil
}

// badQuery turns the server's error about an invalid query into one for the user.
func badQuery(query string, err error) error {
	var bad *serviceerror.InvalidArgument
	if query != "" && errors.As(err, &bad) {
		return agent.Errorf(agent.CodeInvalidInput, "--query can't be read: %s", bad.Message)
	}
	return err
}

// bulkResult is the effect of the verb on one of many runs.
type bulkResult struct {
	ackLine
	err error
}

// maxParallel is how many runs get the verb at the same time.
const maxParallel = 8

// each sends the verb to every run.
func (h *verbRun) each(ctx context.Context, runs *fermata.Client, found listing) []bulkResult {
	list := make([]bulkResult, len(found))
	slots := make(chan struct{}, maxParallel)
	var all sync.WaitGroup
	for i, l := range found {
		// Before the goroutine: a thousand runs must not start a thousand goroutines.
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			line, err := h.sendVerb(ctx, runs, l.Session, l.Run)
			list[i] = bulkResult{line, err}
		})
	}
	all.Wait()
	return list
}

// printMany prints all effects, and returns the failures.
func (h *verbRun) printMany(found listing, list []bulkResult) error {
	var failed []error
	for i, t := range list {
		switch {
		case t.err == nil:
			h.printCommand(t.ackLine)
		case errors.Is(t.err, agent.CodeClosed), errors.Is(t.err, agent.CodeNotFound):
			// It has ended since the listing.
			h.printCommand(ackLine{Ack: agent.Ack{V: agent.Version, Session: found[i].Session, Run: found[i].Run, Status: statusIn(t.err), Effect: agent.EffectRunEnded}})
		default:
			failed = append(failed, t.err)
		}
	}
	h.Note("%d of %d accepted, %d failed", len(list)-len(failed), len(list), len(failed))
	return errors.Join(failed...)
}

// statusIn returns the status of a run that refused something.
func statusIn(err error) agent.Status {
	var e *agent.Error
	if errors.As(err, &e) && e.Status != "" {
		return e.Status
	}
	return "ended"
}
