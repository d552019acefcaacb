package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// audit checks whether the promises held.
type audit struct {
	*operators
	place  place
	store  store.Store
	builds []string

	live    map[string]client.RunInfo
	ledgers map[string]*ledger
}

// look checks everything. An error means that it could not.
func (a *audit) look(ctx context.Context) (err error) {
	if a.live, err = a.operators.live(ctx); err != nil {
		return err
	}
	a.rests(ctx)
	if err := a.logs(ctx); err != nil {
		return err
	}
	if err := a.ends(ctx); err != nil {
		return err
	}
	if err := a.effects(); err != nil {
		return err
	}
	a.messages(ctx)
	a.answers()
	a.deletedSessions(ctx)
	checked, err := store.NewLog(a.store).Check(ctx)
	if err != nil {
		return err
	}
	for _, f := range checked.Faults {
		a.report.find(lost, f.Session, "", "its log can't be read: %s: %s", f.Code, f.Message)
	}
	return a.replays(ctx)
}

// rests checks the runs that have not ended. Only held daemons may be among them.
func (a *audit) rests(ctx context.Context) {
	for _, session := range slices.Sorted(maps.Keys(a.live)) {
		l := a.live[session]
		if p := parentOf(session); p != "" && a.live[p].Session == "" {
			a.report.find(wrong, session, l.Run, "it lives, and the run above it has ended")
		}
		run, err := a.Get(ctx, session)
		if err != nil {
			a.report.find(wrong, session, l.Run, "it can't be found: %v", err)
			continue
		}
		s, err := run.Status(ctx)
		switch {
		case err != nil:
			a.report.find(wrong, session, l.Run, "its status can't be had: %v", err)
		case s.Agent == daemonAgent && s.Status == agent.StatusSuspended && len(s.Suspension.Holds) > 0 && !a.stopped(session):
			a.report.Rest = append(a.report.Rest, session+": a daemon, held")
		default:
			a.report.find(wrong, session, l.Run, "it came neither to an end nor to a rest that is meant: %s", restOf(s))
		}
	}
}

// logs reads every session's log, from the store and through the server.
func (a *audit) logs(ctx context.Context) error {
	a.ledgers = map[string]*ledger{}
	for h, err := range a.store.Heads(ctx, "") {
		if err != nil {
			return fmt.Errorf("listing the store's sessions: %w", err)
		}
		if h.Digest == "" { // only claims of runs that ended before they started
			continue
		}
		stored, err := collect(client.StoredEvents(ctx, a.store, h.Session, ""))
		if err != nil {
			a.report.find(lost, h.Session, h.Run, "its stored events can't be read: %v", err)
		}
		served, err := collect(a.Events(ctx, h.Session, nil))
		if err != nil {
			a.report.find(lost, h.Session, h.Run, "its events can't be read: %v", err)
		}
		a.equal(h.Session, stored, served)
		l := newLedger(h.Session, a.report.find)
		l.read(served)
		a.ledgers[h.Session] = l
		a.report.Events += len(served)
	}
	a.report.Sessions = len(a.ledgers)
	return nil
}

func collect(events func(func(client.Event, error) bool)) (list []client.Event, err error) {
	for e, err := range events {
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
	return list, nil
}

// equal checks that a log is the same wherever it is read, and for readers who followed
// it. The store may lack the last events of a live run.
func (a *audit) equal(session string, stored, served []client.Event) {
	if len(stored) != len(served) && (len(stored) > len(served) || a.live[session].Session == "") {
		a.report.find(lost, session, "", "the store has %d events, and the server tells %d", len(stored), len(served))
	}
	at := map[int64]string{}
	for i, e := range served {
		at[e.Seq] = line(e)
		if i < len(stored) && at[e.Seq] != line(stored[i]) {
			a.report.find(lost, session, e.Run, "event %d is stored as %s and told as %s", e.Seq, line(stored[i]), at[e.Seq])
		}
	}
	i := slices.IndexFunc(a.readers, func(r *reader) bool { return r.session == session })
	if i < 0 {
		return
	}
	read := a.readers[i].lines
	a.report.Followed += len(read)
	if len(read) != len(served) {
		a.report.find(lost, session, "", "whoever followed it was told %d events, and there are %d", len(read), len(served))
	}
	for _, seq := range slices.Sorted(maps.Keys(read)) {
		if at[seq] != read[seq] {
			a.report.find(lost, session, "", "event %d was told as %s and is %s; later ones may differ too", seq, read[seq], at[seq])
			return
		}
	}
}

// ends checks that the log of every run has the end that the server knows.
func (a *audit) ends(ctx context.Context) error {
	seen := map[string]bool{}
	for l, err := range a.List(ctx, nil) {
		if err != nil {
			return err
		}
		a.report.Runs[string(l.Status)]++
		if seen[l.Session] { // the session's last run comes first
			continue
		}
		seen[l.Session] = true
		log := a.ledgers[l.Session]
		switch {
		case log == nil && l.Status.Ended() && l.Status != agent.StatusCompleted && l.Turn == 0: // it ended before it started
		case log == nil:
			a.report.find(lost, l.Session, l.Run, "it is %s and has no log", l.Status)
		case l.Status.Ended() && log.run != l.Run && log.run != "":
			if l.Turn > 0 {
				a.report.find(lost, l.Session, l.Run, "its log ends with run %s", log.run)
			}
		case l.Status.Ended() && (!log.over || log.last != l.Status):
			a.report.find(lost, l.Session, l.Run, "it is %s, and its log says %s (ended: %v)", l.Status, log.last, log.over)
		case !l.Status.Ended() && log.over:
			a.report.find(lost, l.Session, l.Run, "it is %s, and its log says %s", l.Status, log.last)
		}
	}
	return nil
}

// effects compares the journal with the logs, call by call.
func (a *audit) effects() error {
	journal, err := a.desk.read()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	logs := slices.Collect(maps.Values(a.ledgers))
	for _, e := range a.erasures {
		logs = append(logs, e.logs...)
	}
	for _, l := range logs {
		for key, r := range l.results {
			if known[key] {
				continue // two sessions share it, since one was forked from the other
			}
			known[key] = true
			a.report.Calls[string(r.Status)]++
			if l.steps[key] {
				a.report.Steps++
			}
			a.effect(l, key, r, journal[key])
		}
	}
	for key, e := range journal {
		a.report.Effects += e.done
		if !known[key] {
			a.report.find(lost, "", "", "the journal has a call of %s, key %s, that no log knows the result of", e.tool, key)
		}
	}
	return nil
}

func (a *audit) effect(l *ledger, key string, r agent.ToolResult, e entries) {
	name := stepTool(r, key)
	made := name == payTool || name == wireTool
	kind, bad := lost, ""
	switch {
	case made && e.begun > 1:
		kind, bad = doubled, "it was begun more than once, and may not be"
	case made && e.done > 1:
		kind, bad = doubled, "its effect was made more than once"
	case made && r.Status == agent.CallOK && e.done != 1:
		bad = "it is ok, and has no effect"
	case made && r.Status == agent.CallFailed && e.done != 0:
		kind, bad = wrong, "it failed, and has its effect"
	// A step of a flow that may be repeated is skipped when it was cut off, and made again unless
	// the run ends before.
	case r.Status == agent.CallSkipped && name == bookTool && l.steps[key]:
	case (r.Status == agent.CallRejected || r.Status == agent.CallSkipped) && e.begun > 0:
		kind, bad = wrong, "it was not to be made, and was begun"
	case name == bookTool && r.Status == agent.CallOK && !a.desk.booked(key):
		bad = "it is ok, and nothing is booked"
	}
	if bad != "" {
		a.report.find(kind, l.session, "", "the call %s of %s: %s (%d begun, %d made; the log says %s: %s)", key, r.Tool, bad, e.begun, e.done, r.Status, r.Text)
	}
}

// answers checks that every request has at most one answer, and the one that was
// accepted.
func (a *audit) answers() {
	won := map[string]string{}
	for _, d := range a.decisions {
		if d.became != string(agent.EffectAccepted) {
			continue
		}
		at := fmt.Sprint(d.session, " ", d.request, " ", d.later)
		if other, twice := won[at]; twice {
			a.report.find(doubled, d.session, "", "the answers of %s and of %s to %s were both accepted", other, d.by, d.request)
		}
		won[at] = d.by
		if !slices.ContainsFunc(a.logsOf(d.session), func(l *ledger) bool { return l.by[d.request] == d.by }) {
			a.report.find(lost, d.session, "", "the answer of %s to %s was accepted and is not in the log", d.by, d.request)
		}
	}
}

// messages checks that accepted messages are in the log once, and refused ones not at
// all. A message that was left as a signal is in the log once, or shown as refused.
func (a *audit) messages(ctx context.Context) {
	missing := map[string][]post{} // left as signals, by session and verb
	for _, p := range a.posts {
		n := 0
		for _, l := range a.logsOf(p.session) {
			n += l.tokens[p.token]
		}
		speaks := slices.Contains([]agent.Verb{agent.VerbSend, agent.VerbEmit, agent.VerbResume, doNext, doFork, doRetry}, p.verb)
		if speaks {
			a.report.Messages++
		}
		switch {
		case n > 1:
			a.report.find(doubled, p.session, "", "%s %s stands in the log %d times (it was %s)", p.verb, p.token, n, p.became)
		// A lost answer proves nothing: the message may have arrived or not.
		case !speaks, p.became == wasLost:
		case n == 0 && a.waits(ctx, p):
		case p.became == string(agent.EffectAccepted) && n == 0:
			a.report.find(lost, p.session, "", "%s %s was accepted and is not in the log", p.verb, p.token)
		case p.became == wasLeft && n == 0 && p.verb == doNext && a.unbegun(ctx, p):
		case p.became == wasLeft && n == 0:
			missing[p.session+" "+string(p.verb)] = append(missing[p.session+" "+string(p.verb)], p)
		case p.became != string(agent.EffectAccepted) && p.became != wasLeft && n > 0:
			a.report.find(doubled, p.session, "", "%s %s was refused (%s) and is in the log", p.verb, p.token, p.became)
		}
	}
	for _, posts := range missing {
		if root, _, _ := strings.Cut(posts[0].session, "/"); a.erasures[root] != nil { // the status is gone as well
			a.report.Unheard += len(posts)
			continue
		}
		a.shown(ctx, posts)
	}
}

// waits reports whether an event waits for the daemon's next run.
func (a *audit) waits(ctx context.Context, p post) bool {
	h, err := a.store.Head(ctx, p.session)
	if err != nil || p.verb != agent.VerbEmit {
		return false
	}
	inbox, err := store.NewLog(a.store).Backlog(ctx, h)
	return err == nil && slices.ContainsFunc(inbox.Events, func(e agent.EmitCommand) bool { return e.ID == p.id })
}

// shown checks that signals without an effect are shown as refused. They are in the log
// or, if one came at a run's end or before its beginning, in that run's status. A status
// shows only so many; those that may have been dropped from it are only counted.
func (a *audit) shown(ctx context.Context, posts []post) {
	p := posts[0]
	verb := p.verb
	if verb == doNext {
		verb = agent.VerbSend
	}
	var logged []time.Time
	if l := a.ledgers[p.session]; l != nil {
		logged = l.refused[string(verb)]
	}
	beside, full, err := a.refusedBeside(ctx, p.session, string(verb), logged)
	shown := len(logged) + beside
	switch {
	case err != nil:
		a.report.find(wrong, p.session, "", "what its runs refused can't be had: %v", err)
	case shown >= len(posts):
	case full:
		a.report.Unheard += len(posts) - shown
	default:
		a.report.find(lost, p.session, "", "%d of %s were left as signals and are not in the log, and %d are shown as refused", len(posts), verb, shown)
	}
}

// mostRefused is how many refusals a status shows.
const mostRefused = 8

// refusedBeside counts the refusals of a verb that the runs of a session show and that
// its log lacks. full reports whether a run shows as many as it can.
func (a *audit) refusedBeside(ctx context.Context, session, verb string, logged []time.Time) (n int, full bool, err error) {
	page, err := a.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowId = " + signals.Quote(session) + " AND ExecutionStatus != 'ContinuedAsNew'",
	})
	if err != nil {
		return 0, false, err
	}
	for _, info := range page.GetExecutions() {
		s, err := signals.Status.Ask(ctx, a.temporal, session, info.GetExecution().GetRunId(), signals.None{})
		if err != nil {
			return n, full, err
		}
		full = full || len(s.Refused) >= mostRefused
		for _, r := range s.Refused {
			if r.Verb == verb && !slices.ContainsFunc(logged, r.At.Equal) {
				n++
			}
		}
	}
	return n, full, nil
}
