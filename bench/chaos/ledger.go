package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
)

// ledger is what a session's log contains, read from its start. It reports what must
// not be in it.
type ledger struct {
	session string
	find    func(h harm, session, run, format string, args ...any)

	seq     int64
	run     string // the run that the events belong to
	runs    map[string]bool
	over    bool   // the run has ended
	flow    bool   // the run is a flow's
	waits   string // the open suspension
	asked   []agent.ToolCall
	ends    []agent.Status
	last    agent.Status
	results map[string]agent.ToolResult // by idempotency key
	keys    map[string]string           // of calls, by id; the last call with the id counts
	steps   map[string]bool             // keys of flows' steps
	tokens  map[string]int              // in messages to the session
	opened  map[string]bool             // requests: whether they were decided
	by      map[string]string           // who answered them
	refused map[string][]time.Time      // when verbs were refused, by verb
	ids     map[string]bool             // suspensions that were opened
}

func newLedger(session string, find func(h harm, session, run, format string, args ...any)) *ledger {
	return &ledger{
		session: session, find: find, over: true, runs: map[string]bool{}, results: map[string]agent.ToolResult{}, keys: map[string]string{}, steps: map[string]bool{}, tokens: map[string]int{},
		opened: map[string]bool{}, by: map[string]string{}, refused: map[string][]time.Time{}, ids: map[string]bool{},
	}
}

func (l *ledger) fault(h harm, format string, args ...any) {
	l.find(h, l.session, l.run, format, args...)
}

// read takes the events in order.
func (l *ledger) read(events []client.Event) {
	for i, e := range events {
		if l.seq > 0 && e.Seq != l.seq+1 {
			l.fault(lost, "event %d follows event %d", e.Seq, l.seq)
		}
		l.seq = e.Seq
		if l.over && !mayFollowEnd[e.Type] && i > 0 {
			l.fault(wrong, "event %d, %s, follows the end", e.Seq, e.Type)
		}
		// A run that starts from a checkpoint says so in the next event. Events after the
		// checkpoint belong to another run.
		forked := i+1 < len(events) && events[i+1].Type == agent.EventForked
		l.take(e, forked)
	}
	if !l.over && l.asked != nil && l.waits == "" {
		l.fault(lost, "the log ends with calls that have no result: %v", ids(l.asked))
	}
}

// mayFollowEnd are events that may follow a run's end: the next run, and what came while
// the end was being stored.
var mayFollowEnd = map[agent.EventType]bool{agent.EventRunStarted: true, agent.EventVerbRefused: true, agent.EventChildEnded: true}

func (l *ledger) take(e client.Event, forked bool) {
	switch e.Type {
	case agent.EventRunStarted:
		if !l.over && !forked && e.Started.Recovered == "" {
			l.fault(lost, "run %s began at event %d before the one before had ended", e.Started.Run, e.Seq)
		}
		l.run, l.over, l.waits, l.asked, l.flow = e.Started.Run, false, "", nil, e.Started.Spec != nil && e.Started.Spec.Flow
		l.runs[l.run] = true
	case agent.EventMessage:
		l.said(e)
	case agent.EventRunSuspended:
		if id := e.Suspension.ID; l.waits != "" || l.ids[id] {
			l.fault(doubled, "event %d: suspension %s opens, and %q is open or it was before", e.Seq, id, l.waits)
		}
		l.waits = e.Suspension.ID
		l.ids[l.waits] = true
	case agent.EventRunResumed:
		l.waits = ""
	case agent.EventRequestOpened:
		if _, before := l.opened[e.Request.ID]; before {
			l.fault(doubled, "event %d: request %s is opened again", e.Seq, e.Request.ID)
		}
		l.opened[e.Request.ID] = false
	case agent.EventRequestAnswered, agent.EventRequestExpired:
		l.answered(e)
	case agent.EventVerbRefused:
		l.refused[e.Refusal.Verb] = append(l.refused[e.Refusal.Verb], e.Refusal.At)
	case agent.EventRunCompleted, agent.EventRunFailed, agent.EventRunCancelled, agent.EventRunStopped:
		if l.asked != nil {
			l.fault(lost, "event %d: the run ends with calls that have no result: %v", e.Seq, ids(l.asked))
		}
		l.over, l.waits, l.last = true, "", e.Outcome.Status
		l.ends = append(l.ends, l.last)
	}
}

func (l *ledger) answered(e client.Event) {
	id := e.Answer.Request
	if decided, before := l.opened[id]; decided || !before {
		l.fault(doubled, "event %d: request %s is decided, and was decided before or never opened", e.Seq, id)
	}
	l.opened[id], l.by[id] = true, e.Answer.By
}

var tokenForm = regexp.MustCompile(`\(m-\d+\)`)

// said takes a message: the next message has the results of a model's calls.
func (l *ledger) said(e client.Event) {
	m := e.Message
	if l.flow && m.Role != agent.RoleUser {
		l.stepped(e)
		return
	}
	if m.Role == agent.RoleTool {
		var results []string
		for _, p := range m.Parts {
			results = append(results, p.Result.Call)
			l.results[l.keys[p.Result.Call]] = *p.Result
		}
		if l.asked != nil && !slices.Equal(ids(l.asked), results) {
			l.fault(lost, "event %d: the results are of %v, and the calls were %v", e.Seq, results, ids(l.asked))
		}
		l.asked = nil
		return
	}
	if l.asked != nil && !l.flow {
		l.fault(lost, "event %d: calls were left without results: %v", e.Seq, ids(l.asked))
		l.asked = nil
	}
	if m.Role == agent.RoleAssistant {
		l.asked = m.ToolCalls()
		for _, c := range l.asked {
			l.keys[c.ID] = agent.IdempotencyKey(l.run, c.ID)
		}
		return
	}
	for _, token := range tokenForm.FindAllString(m.Text(), -1) {
		l.tokens[token]++
	}
}

// stepped takes a message of a flow: its next steps, or what came of some of those that are open.
// Each has one result in the end, and none with a result that counts is asked for again.
func (l *ledger) stepped(e client.Event) {
	m := e.Message
	for _, c := range m.ToolCalls() {
		key := agent.IdempotencyKey(l.run, c.ProviderID)
		if r, made := l.results[key]; made && !mayAskAgain(r, key) {
			l.fault(doubled, "event %d: step %s is asked for again, and was %s", e.Seq, c.ProviderID, r.Status)
		}
		l.asked, l.keys[c.ID], l.steps[key] = append(l.asked, c), key, true
	}
	for _, p := range m.Parts {
		if p.Result == nil {
			continue
		}
		i := slices.IndexFunc(l.asked, func(c agent.ToolCall) bool { return c.ID == p.Result.Call })
		if i < 0 {
			l.fault(doubled, "event %d: a result of %s, which is not open", e.Seq, p.Result.Call)
			continue
		}
		l.asked = slices.Delete(l.asked, i, i+1)
		l.results[l.keys[p.Result.Call]] = *p.Result
		if p.Result.Tool == agent.AwaitResumptionTool { // what ended the wait stands here
			for _, token := range tokenForm.FindAllString(p.Result.Text, -1) {
				l.tokens[token]++
			}
		}
	}
	if len(l.asked) == 0 {
		l.asked = nil
	}
}

// mayAskAgain reports whether a flow may ask again for a step that has a result: it was not made, or a
// function without it was asked meanwhile, and it failed or may be repeated.
func mayAskAgain(r agent.ToolResult, key string) bool {
	name := stepTool(r, key)
	repeats := name == ponderTool || name == bookTool && !strings.HasSuffix(key, "/once/"+bookTool)
	return r.Status == agent.CallSkipped || r.Dropped && (r.Status == agent.CallFailed || r.Status == agent.CallUnknown && repeats)
}

func ids(calls []agent.ToolCall) (list []string) {
	for _, c := range calls {
		list = append(list, c.ID)
	}
	return list
}
