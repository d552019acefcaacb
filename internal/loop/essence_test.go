package loop

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// essence is equal for places from which the same can happen: times count from now
// on, numbers from the newest, and what is only told to people is left out. Where
// two places that differ are taken for one, a search sees less; it sees nothing wrong.
func essence(p place) string {
	s := p.state.clone()
	stored := s.Log.Seq - int64(len(s.Log.Tail))
	e := &essential{State: &s, now: p.now}
	e.turn()
	e.waits(stored)
	e.talk()
	e.tree()
	l := &s.Log
	l.Head, l.Version, l.Seq, l.Tail, l.Bytes = given(l.Head != ""), 0, int64(min(len(l.Tail), 1)), nil, l.Bytes/alongMost
	l.Sealing, l.Fault, l.Tries, l.Again = min(l.Sealing, 1), nil, min(l.Tries, 2), e.left(l.Again)
	s.Started, s.Asked, s.Since, s.Deadline, s.Wake = time.Time{}, time.Time{}, e.left(s.Since), e.left(s.Deadline), e.left(s.Wake)
	s.Numbers, s.Usage, s.Cost, s.Parked, s.Task, s.Text = agent.Numbers{}, agent.Usage{}, 0, 0, "", given(s.Text != "")
	s.Spec, s.Birth, s.Beyond, s.Inherited, s.Labels = nil, nil, nil, nil, nil
	s.Told, s.Refused, s.Decided, s.Unknown, s.Posts = nil, nil, nil, nil, nil
	if s.Outcome != nil {
		s.Outcome = &agent.Outcome{Status: s.Outcome.Status}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // the state was JSON before
	}
	return strconv.FormatBool(p.full) + string(raw)
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
		if i := slices.IndexFunc(s.Calls, func(c Call) bool { return c.ID == id }); i >= 0 {
			return "t." + strconv.Itoa(i)
		}
		return ""
	}
	s.Children = slices.DeleteFunc(s.Children, func(c Child) bool { return !c.live() && rename(c.By) == "" })
	for i := range s.Children {
		s.Children[i].By, s.Children[i].Call = rename(s.Children[i].By), rename(s.Children[i].Call)
	}
	for i := range s.Requests {
		s.Requests[i].CallID = rename(s.Requests[i].CallID)
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		c.Since, c.Request, c.Note, c.ProviderID = time.Time{}, "", "", ""
		if c.Result != nil {
			c.Result = &agent.ToolResult{Status: c.Result.Status}
		}
	}
	for i := range s.Calls {
		s.Calls[i].ID = "t." + strconv.Itoa(i)
	}
	s.Heavy = max(-1, s.Heavy-s.Turn)
	s.Base = agent.Limits{Turns: s.Turn - s.Base.Turns}
	s.Turn = min(s.Turn, 1)
	s.Ask = min(s.Ask, 1)
	var done []agent.ToolCount // what was done at all is what Require asks for
	for _, t := range s.Tools {
		done = append(done, agent.ToolCount{Tool: t.Tool, OK: min(t.OK, 1)})
	}
	s.Tools = done
}

// waits leaves of what the run waits for when it is over, and how it is decided.
func (e *essential) waits(stored int64) {
	s := e.State
	if w := s.Wait; w != nil {
		w.ID, w.Cause, w.Reason, w.Turn, w.At = "", "", "", 0, time.Time{}
		if w.Seq <= stored {
			w.Seq = 0
		}
		w.Seq = min(w.Seq, 1)
	}
	for i, r := range s.Requests {
		s.Requests[i].Request = agent.Request{
			ID: "q-" + strconv.Itoa(i), Type: r.Type, Choices: r.Choices, Default: r.Default, Cause: r.Cause, Call: r.Call,
			Deadline: e.left(r.Deadline), RemindAt: e.left(r.RemindAt),
		}
		if r.Call != nil {
			s.Requests[i].Request.Call = &agent.RequestCall{Tool: r.Call.Tool}
		}
	}
	if s.Park != nil {
		c := s.Park.Conditions
		c.At, c.Any = e.left(c.At), slices.Clone(c.Any)
		for i := range c.Any {
			c.Any[i].At = e.left(c.Any[i].At)
		}
		s.Park.Conditions = c
	}
	if s.Giving != nil {
		s.Giving = &Giving{Until: e.left(s.Giving.Until)}
	}
	if p := s.Stopping; p != nil {
		s.Stopping = &Stopping{Drain: e.left(p.Drain), Until: e.left(p.Until), Summed: p.Summed}
	}
}

// talk leaves how much there is to say.
func (e *essential) talk() {
	s := e.State
	letters := slices.Clone(s.Letters)
	for i, l := range letters {
		letters[i].Message = agent.Message{ID: given(l.Message.ID != ""), Note: l.Message.Note}
	}
	s.Letters = letters
	events := make([]agent.EmitOrder, len(s.Events))
	s.Events = events
	s.Note, s.Ticks = given(s.Note != ""), min(s.Ticks, 3)
}

// tree leaves how the runs around this one stand to it.
func (e *essential) tree() {
	s := e.State
	for i, h := range s.Holds {
		s.Holds[i] = agent.Hold{From: h.From, Verb: h.Verb, By: h.By}
		if knows(s.Heard, agent.Heard{Session: h.Session, N: holdNumber(h) + 1}) {
			s.Holds[i].ID = "old"
		}
	}
	s.Heard = nil
	if s.Early != nil {
		s.Early = &agent.Heard{}
	}
	for i := range s.Children {
		c := &s.Children[i]
		c.Session, c.Run, c.Task, c.Seq, c.Heard, c.Outcome = strconv.Itoa(i), "", "", 0, time.Time{}, nil
		for j := range c.Owed {
			c.Owed = slices.Clone(c.Owed)
			c.Owed[j] = agent.HoldOrder{Verb: c.Owed[j].Verb, Own: c.Owed[j].Own}
		}
	}
	s.LeaseAt, s.LookAt, s.LeaveBy = e.left(s.LeaseAt), e.left(s.LookAt), e.left(s.LeaveBy)
}
