package loop

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/wire"
)

// essence is equal for places from which the same can happen: times count from now
// on, numbers from the newest, and what is only told to people is left out. Where
// two places that differ are taken for one, a search sees less; it sees nothing wrong.
func essence(p place) string {
	s := p.state
	s.unshare()
	stored := s.Log.Seq - int64(len(s.Log.Tail))
	e := &essential{State: &s, now: p.now}
	e.turn()
	e.waits(stored)
	e.talk()
	e.tree()
	l := &s.Log
	l.Head, l.Version, l.Seq, l.Tail, l.Bytes = given(l.Head != ""), 0, int64(min(len(l.Tail), 1)), nil, 0
	l.SealingSeq, l.SealError, l.Tries, l.RetryAt = min(l.SealingSeq, 1), nil, min(l.Tries, 2), e.left(l.RetryAt)
	s.Origin.Started, s.Turn.Asked, s.Suspensions.Since, s.NextTimer = time.Time{}, time.Time{}, e.left(s.Suspensions.Since), e.left(s.NextTimer)
	e.budget()
	s.TaskLoad = TaskLoad{}
	s.Counters, s.Suspensions.SuspendedFor, s.Origin.Task, s.Turn.Text = remembered.Counters{}, 0, "", given(s.Turn.Text != "")
	s.Spec, s.Parent.Start, s.Parent.ForbiddenTools, s.Parent.InheritedRules, s.Origin.Labels = nil, nil, nil, nil, nil
	s.Verbs.Processed, s.Verbs.Refused, s.Requests.Decided, s.Calls.Unknown, s.Messages.Receipts = nil, nil, nil, nil, nil
	s.Late = Late{Note: given(s.Late.Note != ""), Asked: min(s.Late.Asked, 1)}
	if s.End.Outcome != nil {
		s.End.Outcome = &agent.Outcome{Status: s.End.Outcome.Status}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // the state was JSON before
	}
	return strconv.FormatBool(p.full) + strconv.FormatBool(p.half) + strconv.FormatBool(p.near) + string(raw)
}

func given(b bool) string {
	if b {
		return "given"
	}
	return ""
}

type essential struct {
	*State
	now time.Time
}

// left makes a time one that counts from now on: how long ago it was does not
// matter past an hour.
func (e *essential) left(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return time.Unix(0, 0).UTC().Add(max(at.Sub(e.now), -time.Hour))
}

// turn numbers the turn from where its limit counts, and its calls by their place.
func (e *essential) turn() {
	s := e.State
	rename := func(id string) string {
		if i := slices.IndexFunc(s.Calls.List, func(c Call) bool { return c.ID == id }); i >= 0 {
			return "t." + strconv.Itoa(i)
		}
		return ""
	}
	s.Children.List = slices.DeleteFunc(s.Children.List, func(c Child) bool { return !c.notEnded() && rename(c.StartedBy) == "" })
	for i := range s.Children.List {
		s.Children.List[i].StartedBy, s.Children.List[i].Call = rename(s.Children.List[i].StartedBy), rename(s.Children.List[i].Call)
	}
	for i := range s.Requests.Open {
		s.Requests.Open[i].CallID = rename(s.Requests.Open[i].CallID)
	}
	for i := range s.Calls.List {
		c := &s.Calls.List[i]
		c.Since, c.Request, c.Remark, c.Size = time.Time{}, "", "", 0
		if !s.isFlow() {
			c.ProviderID = ""
		}
		if c.Wait != nil {
			c.Wait = &Park{Conditions: agent.Conditions{At: e.left(c.Wait.next())}, Again: c.Wait.Again}
		}
		if c.Result != nil {
			c.Result = &agent.ToolResult{Status: c.Result.Status}
		}
	}
	s.Checks.Made, s.Checks.Invocations, s.Checks.Vetoes = 0, 0, min(s.Checks.Vetoes, 1)
	if k := s.Checks.Current; k != nil {
		k.Call, k.Since, k.Usage, k.Model = rename(k.Call), time.Time{}, agent.Usage{}, ""
	}
	if p := s.Checks.Proposal; p != nil {
		p.Text, p.Size = "", 0
	}
	for i := range s.Calls.List {
		s.Calls.List[i].ID = "t." + strconv.Itoa(i)
	}
	s.Messages.PendingSize, s.Messages.EmittedSize, s.Messages.ReceiptSize, s.Verbs.Size = 0, 0, 0, 0
	s.Turn.N = min(s.Turn.N, 1)
	s.Turn.AskSeq = min(s.Turn.AskSeq, 1)
	var done []agent.ToolCount // what was done at all is what Require asks for
	for _, t := range s.Calls.Counts {
		done = append(done, agent.ToolCount{Tool: t.Tool, OK: min(t.OK, 1)})
	}
	s.Calls.Counts = done
}

// budget leaves what is left, by the run's own limits and by what it was granted.
func (e *essential) budget() {
	s := e.State
	b, k := s.Budget, s.budgetView()
	s.Budget = Budget{Limits: b.Limits, Charged: b.Charged, OwnTurnsAtRenewal: s.ownTurns() - b.OwnTurnsAtRenewal, Worked: time.Duration(k.remaining(wire.ResourceTime))}
	if !b.RunningSince.IsZero() {
		s.Budget.RunningSince = time.Unix(0, 0).UTC()
	}
	for r := range wire.Resources {
		s.Budget.UsedAtRenewal[r] = min(k.ownRemaining(r), 100)
		if s.Budget.LastTurn[r] = min(k.grantRemaining(r), 100); r == wire.ResourceTime {
			s.Budget.UsedAtRenewal[r], s.Budget.LastTurn[r] = min(k.ownRemaining(r), 1), min(k.grantRemaining(r), 1)
		}
	}
	if a := s.Ledger.FromParent; a != nil {
		s.Ledger.FromParent = &ParentAccount{Requested: a.Requested, Recalled: a.Recalled, Denied: a.Denied}
	}
	s.Ledger.EndedUsage = agent.Tally{}
	for i, a := range s.Ledger.Accounts {
		one := Account{Session: strconv.Itoa(i), Requested: a.Requested, Recalled: a.Recalled}
		for r := range wire.Resources {
			one.Granted[r] = min(a.unused(r), 100)
		}
		s.Ledger.Accounts[i] = one
	}
}

// waits leaves of what the run waits for when it is over, and how it is decided.
func (e *essential) waits(stored int64) {
	s := e.State
	if w := s.Suspensions.Open; w != nil {
		w.ID, w.Cause, w.Reason, w.Turn, w.At = "", "", "", 0, time.Time{}
		w.Ends, w.OlderEnds = nil, 0
		if w.Seq <= stored {
			w.Seq = 0
		}
		w.Seq = min(w.Seq, 1)
	}
	for i, r := range s.Requests.Open {
		s.Requests.Open[i].Size = 0
		s.Requests.Open[i].Request = agent.Request{
			ID: "q-" + strconv.Itoa(i), Type: r.Type, Choices: r.Choices, Default: r.Default, Cause: r.Cause, Call: r.Call,
			Deadline: e.left(r.Deadline), RemindAt: e.left(r.RemindAt),
		}
		if r.Call != nil {
			s.Requests.Open[i].Request.Call = &agent.RequestCall{Tool: r.Call.Tool}
		}
	}
	if s.Park != nil {
		c := s.Park.Conditions
		c.At, c.Any = e.left(c.At), slices.Clone(c.Any)
		for i := range c.Any {
			c.Any[i].At = e.left(c.Any[i].At)
		}
		s.Park.Conditions, s.Park.Size = c, 0
	}
	if s.End.Grace != nil {
		s.End.Grace = &Grace{Until: e.left(s.End.Grace.Until)}
	}
	if p := s.End.Stopping; p != nil {
		s.End.Stopping = &Stopping{ToolsUntil: e.left(p.ToolsUntil), Until: e.left(p.Until), SummaryAsked: p.SummaryAsked}
	}
}

// talk leaves how much there is to say.
func (e *essential) talk() {
	s := e.State
	letters := slices.Clone(s.Messages.Pending)
	for i, l := range letters {
		letters[i].Message = agent.Message{ID: given(l.Message.ID != ""), Note: l.Message.Note}
	}
	s.Messages.Pending = letters
	events := make([]agent.EmitCommand, len(s.Messages.Emitted))
	s.Messages.Emitted = events
	s.Turn.Note, s.Daemon.IdleWakes = given(s.Turn.Note != ""), min(s.Daemon.IdleWakes, 3)
	s.Watch.LookAt, s.Watch.N, s.Daemon.Event = e.left(s.Watch.LookAt), 0, nil
}

// tree leaves how the runs around this one stand to it.
func (e *essential) tree() {
	s := e.State
	for i, h := range s.Holds.List {
		s.Holds.List[i] = agent.Hold{From: h.From, Initiator: h.Initiator, Verb: h.Verb, By: h.By}
		if knows(s.Holds.Known, agent.HoldRef{Session: h.Session, N: holdNumber(h) + 1}) {
			s.Holds.List[i].ID = "old"
		}
	}
	s.Holds.Known = nil
	if s.Holds.Unconfirmed != nil {
		s.Holds.Unconfirmed = &agent.HoldRef{}
	}
	for i := range s.Children.List {
		c := &s.Children.List[i]
		c.Session, c.Run, c.Task, c.Seq, c.AsOf, c.Outcome = strconv.Itoa(i), "", "", 0, time.Time{}, nil
		for j := range c.PendingOrders {
			c.PendingOrders = slices.Clone(c.PendingOrders)
			c.PendingOrders[j] = wire.ParentOrder{Verb: c.PendingOrders[j].Verb, Own: c.PendingOrders[j].Own}
		}
	}
	s.Parent.CheckAt, s.Children.CheckAt, s.Children.EndWaitUntil = e.left(s.Parent.CheckAt), e.left(s.Children.CheckAt), e.left(s.Children.EndWaitUntil)
}
