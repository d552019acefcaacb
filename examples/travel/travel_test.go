package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
)

func script() *testsuite.Script {
	return testsuite.NewScript(
		testsuite.Reply{Match: "^Book", Calls: []testsuite.Call{{Tool: "subagent__clerk", Arguments: map[string]any{"task": "Rome, two nights"}}}},
		testsuite.Reply{Match: "^Rome", Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": 800}}}},
		testsuite.Reply{Match: "^paid", Text: "Rome is booked."},
		testsuite.Reply{Match: "Rome is booked", Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "tickets", "conditions": map[string]any{"after": "168h"}}}}},
		testsuite.Reply{Match: "tickets", Text: "The tickets are there."},
	)
}

func TestTheTicketsCome(t *testing.T) {
	person := &testsuite.Person{Rules: []testsuite.PersonRule{{Tool: "pay", Approve: true}}}
	s := testsuite.New(t, &testsuite.Options{Worker: options(), Model: script(), Person: person, Server: devserver.ForTest(t).Client(t)})
	run := s.Start("planner", "Book me Rome", nil)
	require.Equal(t, agent.SuspensionParked, run.Suspended().Kind)
	require.Len(t, person.Decisions(), 1)
	s.FastForward(7 * 24 * time.Hour)
	require.Equal(t, "The tickets are there.", run.Completed().Text)
}

// The clerk alone needs no server.
func TestNothingIsPaidWithoutApproval(t *testing.T) {
	s := testsuite.New(t, &testsuite.Options{Worker: options(), Model: testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": 800}}}},
		testsuite.Reply{Match: "too expensive", Text: "Then not."},
	)})
	run := s.Start("clerk", "Pay for Rome", nil)
	require.Equal(t, "pay", run.Suspended().Requests[0].Call.Tool)
	run.Reject("too expensive")
	require.Equal(t, "Then not.", run.Completed().Text)
	run.Golden("testdata/rejected.txt")
}

func TestEveryCrash(t *testing.T) {
	server := devserver.ForTest(t).Client(t)
	testsuite.EveryCrash(t, func(t testing.TB, c *testsuite.Crash) any {
		s := testsuite.New(t, &testsuite.Options{Worker: options(), Server: server, Crash: c, Model: testsuite.NewScript(
			testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"eur": 800}}}},
			testsuite.Reply{Text: "Rome is booked."},
		)})
		run := s.Start("clerk", "Pay for Rome", nil)
		run.Approve()
		return run.Completed().Text
	})
}

// A run that waits in production goes on with this build.
func TestWhatWaitsGoesOn(t *testing.T) {
	o := options()
	o.Models = map[string]model.Model{"anthropic": testsuite.NewScript()} // is there, and is not asked
	testsuite.Replay(t, o, "testdata/parked.json")
}
