package loop

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Beginnings of a sub-agent's run, and what its parent orders.
const (
	beginBelow   = `begin-child {"parent":{"session":"s","run":"p"},"depth":1}`
	openBelow    = `opened {"tools":["await_resumption"]}`
	parkBelow    = `calls await_resumption {"reason":"not paid","conditions":{"any":[{"after":"1h"},{"event":{"topic":"paid","match":{"type":"object","required":["order"]}}}],"on_timeout":"resume_with_input","input":"look again"}}`
	parentPauses = `ordered {"verb":"pause","own":true,"by":"agent:s","reason":"later"}`
	parentGoesOn = `ordered {"verb":"resume","own":true,"by":"agent:s"}`
	holdsAbove   = `ordered {"verb":"pause","by":"ana","holds":[{"id":"h-1","session":"s","verb":"pause"}],"known_holds":[{"session":"s","n":1}]}`
	noHoldAbove  = `ordered {"verb":"resume","by":"ana","known_holds":[{"session":"s","n":1}]}`
)

// resumes are the ends of suspensions that a log has.
func (p *player) resumes() (all []agent.Resumed) {
	for _, e := range p.state.Log.Tail {
		if e.Resumed != nil {
			all = append(all, *e.Resumed)
		}
	}
	return all
}

// The same park is resumed by a person, by the parent's model, by an event and by a time, each with a
// message. The logs are the same but for who it was, and for the words (HL-121).
func TestWhoeverResumesLeavesTheSameTrace(t *testing.T) {
	trace := func(p *player) (out []string) {
		said := false // what comes with the resume
		for _, e := range p.state.Log.Tail {
			switch {
			case e.Resumed != nil:
				r := *e.Resumed
				r.Cause, r.By, r.Event, r.Mode = "", "", "", ""
				e.Resumed, said = &r, true
			case e.Message != nil && said:
				e.Message = &agent.Message{Role: e.Message.Role}
			}
			raw, err := json.Marshal(e)
			require.NoError(t, err)
			out = append(out, string(raw))
		}
		return out
	}
	var traces [][]string
	for _, c := range []struct {
		line string
		who  agent.Resumed
	}{
		{`resume {"by":"ana","message":"look again"}`, agent.Resumed{Cause: agent.InitiatorOperator, By: "ana", Mode: agent.ResumedMessage}},
		{`ordered {"verb":"resume","own":true,"by":"agent:s","reason":"look again"}`, agent.Resumed{Cause: agent.InitiatorParent, By: "agent:s", Mode: agent.ResumedMessage}},
		{`emit {"topic":"paid","payload":{"order":118},"by":"shop"}`, agent.Resumed{Cause: agent.InitiatorTriggered, By: "shop", Event: "paid", Mode: agent.ResumedEvent}},
		{"timer", agent.Resumed{Cause: agent.InitiatorTimeout, Mode: agent.ResumedTimeout}},
	} {
		p := played(t, beginBelow, openBelow, parkBelow, "sealed", "after 1h", c.line)
		require.Equal(t, TurnAsking, p.state.Turn.Phase, p.out.String())
		c.who.Suspension, c.who.Checkpoint, c.who.Turn = "s-1", agent.CheckpointID("s/a-1", 8), 1
		require.Equal(t, []agent.Resumed{c.who}, p.resumes(), c.line)
		traces = append(traces, trace(p))
	}
	require.Len(t, traces[0], 3, "run.resumed, the message and turn.started")
	for _, one := range traces[1:] {
		require.Equal(t, traces[0], one)
	}
}

// A suspension has one owner. If two resume it, one is taken and the other is refused, and the run
// goes on once (HL-95).
func TestOfTwoWhoResumeOneIsTaken(t *testing.T) {
	ana, bo := `resume @r-1 {"by":"ana","suspension":"s-1"}`, `resume @r-2 {"by":"bo","suspension":"s-1"}`
	for name, c := range map[string]struct {
		holds         string
		owner         agent.Owner
		first, second string
		refused       []agent.Code // of both; empty if it is taken
		by            agent.Resumed
	}{
		"two people":                    {`pause {"by":"cy"}`, agent.OwnerOperator, ana, bo, []agent.Code{"", agent.CodeNotSuspended}, agent.Resumed{Cause: agent.InitiatorOperator, By: "ana"}},
		"the parent, and a person":      {parentPauses, agent.OwnerParent, parentGoesOn, bo, []agent.Code{"", agent.CodeNotSuspended}, agent.Resumed{Cause: agent.InitiatorParent, By: "agent:s"}},
		"a person, and the parent":      {parentPauses, agent.OwnerParent, bo, parentGoesOn, []agent.Code{"", agent.CodeNotSuspended}, agent.Resumed{Cause: agent.InitiatorOperator, By: "bo"}},
		"a hold that is not a parent's": {`pause {"by":"cy"}`, agent.OwnerOperator, parentGoesOn, ana, []agent.Code{agent.CodeStale, ""}, agent.Resumed{Cause: agent.InitiatorOperator, By: "ana"}},
		"a hold from above":             {holdsAbove, agent.OwnerParent, bo, noHoldAbove, []agent.Code{agent.CodeHeldByParent, ""}, agent.Resumed{Cause: agent.InitiatorParent, By: "ana"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := played(t, beginBelow, openBelow, c.holds, "calls add {}")
			if p.state.Log.SealingSeq > p.state.Log.storedTo() {
				p.lines("sealed")
			}
			require.Equal(t, c.owner, p.state.Suspension().Owner)
			for i, line := range []string{c.first, c.second} {
				p.line(line)
				code := agent.CodeOf(p.wrong)
				if r := p.state.Log.Tail[len(p.state.Log.Tail)-1].Refusal; p.wrong == nil && r != nil { // of an order
					code = r.Error.Code
				}
				require.Equal(t, c.refused[i], code, line)
				require.Equal(t, i == 0 && c.refused[0] != "", p.state.Status() == agent.StatusSuspended, p.out.String())
			}
			c.by.Suspension, c.by.Mode, c.by.Checkpoint, c.by.Turn = "s-1", agent.ResumedContinue, agent.CheckpointID("s/a-1", 9), 1
			require.Equal(t, []agent.Resumed{c.by}, p.resumes())
		})
	}
}

// The owner of a suspension does not let the run go on: the parent's model orders it wrongly, or says
// nothing for a day; the event does not fit; the time does not come. A person can still resume, stop
// and cancel the run (HL-99).
func TestAnOwnerThatFails(t *testing.T) {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		suspended []string
		owner     agent.Owner
		fails     []string
		code      agent.Code
	}{
		"the parent is another run by now":    {[]string{parentPauses, "calls add {}", "sealed"}, agent.OwnerParent, []string{`ordered {"verb":"resume","own":true,"by":"agent:s","from":"p2"}`}, agent.CodeStale},
		"the parent orders what nobody knows": {[]string{parentPauses, "calls add {}", "sealed"}, agent.OwnerParent, []string{`ordered {"verb":"resumme","own":true,"by":"agent:s"}`}, agent.CodeStale},
		"the parent says nothing":             {[]string{parentPauses, "calls add {}", "sealed"}, agent.OwnerParent, []string{"after 1m", "timer", "parent-checked"}, ""},
		"an event that does not fit":          {[]string{parkBelow, "sealed"}, agent.OwnerRuntime, []string{`emit {"topic":"paid","payload":{}}`}, agent.CodeStale},
		"a time that does not come":           {[]string{`calls await_resumption {"reason":"not paid","conditions":{"after":"9000h"}}`, "sealed"}, agent.OwnerRuntime, []string{"after 1m", "timer", "parent-checked"}, ""},
	} {
		for verb, want := range map[string]agent.Status{"resume": agent.StatusCompleted, "stop": agent.StatusStopped, "cancel": agent.StatusCancelled} {
			t.Run(name+", "+verb, func(t *testing.T) {
				p := played(t, append([]string{beginBelow, openBelow}, c.suspended...)...)
				require.Equal(t, c.owner, p.state.Suspension().Owner)
				for _, line := range c.fails {
					p.line(line)
				}
				require.Equal(t, c.code, agent.CodeOf(p.wrong))
				require.Equal(t, agent.StatusSuspended, p.state.Status(), p.out.String())
				p.now = day
				p.lines(verb + ` {"by":"ana"}`)
				switch verb {
				case "resume":
					require.Equal(t, agent.StatusRunning, p.state.Status())
					require.Equal(t, "ana", p.resumes()[0].By)
					p.lines("says done")
				case "stop":
					p.lines(`says {"summary":"nothing"}`, "handoff-made nothing")
				}
				p.lines("sealed")
				require.Equal(t, want, p.state.End.Outcome.Status, p.out.String())
				require.Equal(t, RunEnded, p.state.Phase)
			})
		}
	}
}
