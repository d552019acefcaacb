package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// played is a machine after some lines of a scenario.
func played(t *testing.T, lines ...string) *player {
	t.Helper()
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.lines(lines...)
	return p
}

func (p *player) lines(lines ...string) {
	for _, line := range lines {
		p.line(line)
		require.NoError(p.t, p.wrong, line)
	}
}

// An idle daemon whose hold is removed waits for nobody but what comes.
func TestAnIdleDaemonIsPausedByNobody(t *testing.T) {
	p := played(t, `begin watch`, `opened {"daemon":{"compact":true}}`, `says watching`, `pause {"reason":"lunch"}`, `says it was watched`, `sealed`)
	v := p.state.Suspension()
	require.Equal(t, []any{agent.InitiatorOperator, "pause", "lunch"}, []any{v.Initiator, v.Cause, v.Reason})
	p.lines(`resume {}`)
	v = p.state.Suspension()
	require.Equal(t, []any{agent.SuspensionParked, agent.InitiatorSelf, causeIdle, ""}, []any{v.Kind, v.Initiator, v.Cause, v.Reason})
}

// An event for which a daemon has parked is kept in the head as one that waits, while
// a hold keeps the daemon from it.
func TestAnEventThatMetAParkIsKept(t *testing.T) {
	p := played(t, `started {"agent":"a"}`, `opened {"daemon":{},"tools":["await_resumption"]}`, `sealed`, `emit @e1 {"topic":"t"}`,
		`calls await_resumption {"reason":"not paid","conditions":{"event":{"topic":"paid"}}}`, `sealed`, `pause {}`, `emit @e2 {"topic":"t"}`, `sealed`)
	p.lines(`emit @e3 {"topic":"paid","payload":3}`)
	require.NotZero(t, p.state.Log.SealingSeq, "the head is put")
	paid := agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: "e3"}, Topic: "paid", Payload: json.RawMessage("3")}
	require.Equal(t, remembered.Backlog{Unfinished: true, Events: []agent.EmitCommand{paid, {CommandHeader: agent.CommandHeader{ID: "e2"}, Topic: "t"}}}, p.state.Backlog())
}

// A daemon that is being stopped says that an event is worth another try; one that does
// not hear the topic does not.
func TestAStoppingDaemonIsWorthAnotherTry(t *testing.T) {
	p := played(t, `begin watch`, `opened {"daemon":{"topics":["t"]},"toolset":[{"name":"add"}]}`, `calls add {"a":1}`, `stop {}`)
	for topic, again := range map[string]bool{"t": true, "other": false} {
		p.step(CommandReceived{Command: agent.EmitCommand{Topic: topic}, ID: "e1"})
		require.ErrorIs(t, p.wrong, agent.CodeStale)
		require.Equal(t, again, asError(p.wrong).Retryable, topic)
	}
}

// However many messages another agent's runs get meanwhile, an event that waits is
// known by its id.
func TestAWaitingEventIsKnownByItsID(t *testing.T) {
	p := played(t, `started {"agent":"a"}`, `opened {"daemon":{}}`, `sealed`, `pause {}`, `emit @e1 {"topic":"t"}`, `emit @e2 {"topic":"t"}`, `terminated`, `sealed`, `sealed`)
	p.lines(`next`, `begin go`, `opened`)
	for n := range maxReceipts + 10 {
		p.lines(fmt.Sprintf(`send @m%d {"text":"and?"}`, n))
	}
	require.Len(t, p.state.Messages.Receipts, maxReceipts+12, "a daemon's are remembered over the runs of others")
	p.state.Messages.Receipts = p.state.Messages.Receipts[10:] // a head that was written before the end has the last ones
	p.lines(`terminated`, `sealed`, `next`, `started {"agent":"a"}`, `opened {"daemon":{}}`)
	before := len(p.state.Messages.Emitted)
	p.lines(`emit @e2 {"topic":"t"}`)
	require.Len(t, p.state.Messages.Emitted, before)
}

// The events that wait are bounded by what they have when they are written: names,
// and characters that JSON writes as six.
func TestTheSizeOfWaitingEvents(t *testing.T) {
	for name, o := range map[string]agent.EmitCommand{
		"names":  {CommandHeader: agent.CommandHeader{By: strings.Repeat("b", 256)}, Topic: strings.Repeat("t", 128), Payload: json.RawMessage(`"` + strings.Repeat("p", 100) + `"`)},
		"escape": {Topic: "t", Payload: json.RawMessage(`"` + strings.Repeat("<", 60_000) + `"`)},
	} {
		t.Run(name, func(t *testing.T) {
			p := played(t, `started {"agent":"a"}`, `opened {"daemon":{"queue":1000}}`, `sealed`, `pause {}`)
			s, refusal := p.state, error(nil)
			for n := 0; refusal == nil; n++ {
				s, _, refusal = Step(s, Moment{At: p.now}, CommandReceived{Command: o, ID: fmt.Sprintf("%064d", n)})
			}
			require.ErrorIs(t, refusal, agent.CodeQueueFull)
			require.Less(t, len(s.Messages.Emitted), 1000)
			require.Less(t, eventShare-s.Messages.EmittedSize, 2*eventJSONLen(s.Messages.Emitted[0]))
			require.LessOrEqual(t, written(s.Messages.Emitted), eventShare)
		})
	}
}

// A handoff names the last calls of unknown outcome: the older ones are long past in
// a run that continues for months.
func TestTheLastUnknownCallsAreNamed(t *testing.T) {
	p := played(t, `begin go`, `opened {"toolset":[{"name":"add"}],"limits":{"turns":100}}`)
	for n := 1; n <= maxUnknown+2; n++ {
		p.lines(fmt.Sprintf(`calls add {"a":%d}`, n), fmt.Sprintf(`result t%d.1 unknown ?`, n))
		if p.state.Log.SealingSeq > 0 {
			p.lines(`sealed`)
		}
	}
	require.Len(t, p.state.Calls.Unknown, maxUnknown)
	require.Equal(t, "t3.1", p.state.Calls.Unknown[0].Call)
}

// What a listing finds a run by is there once, and does not count twice.
func TestWhatARunWaitsForIsListedOnce(t *testing.T) {
	topic := strings.Repeat("t", 120)
	s := State{Phase: RunActive, Suspensions: Suspensions{Open: &OpenSuspension{ID: "s-1"}}, Park: &Park{}}
	for range 20 {
		s.Park.Conditions.Any = append(s.Park.Conditions.Any, agent.Condition{Event: &agent.EventCondition{Topic: topic}})
	}
	s.Park.Conditions.Any = append(s.Park.Conditions.Any, agent.Condition{Event: &agent.EventCondition{Topic: "last"}})
	require.Equal(t, []string{"parked", "topic:" + topic, "topic:last"}, s.WaitsFor())
}

// An agent below another hears no topic, also while its tools are listed.
func TestAnAgentBelowHearsNothing(t *testing.T) {
	p := played(t, `begin-child {"parent":{"session":"s","run":"r"},"depth":1}`)
	in := p.input("opened", `{"daemon":{"topics":["t"]}}`).(Opened)
	in.Sources = []string{"mcp"}
	p.step(in)
	require.Equal(t, RunListing, p.state.Phase)
	require.Empty(t, p.state.WaitsFor())
}

// A run tells in the log that the one before it is lost.
func TestARunTellsOfALostOne(t *testing.T) {
	for _, input := range []string{``, `{"daemon":{}}`} {
		p := played(t, `begin go`)
		in := p.input("opened", input).(Opened)
		in.Head, in.Seq, in.Unrecovered = "old", 40, "run r0 is gone"
		p.step(in)
		require.Equal(t, "run r0 is gone", p.state.Log.Tail[0].Started.Unrecovered)
	}
	p := played(t, `begin go`)
	in := p.input("opened-old", ``).(Opened) // it has to be located first
	in.Unrecovered = "run r0 is gone"
	p.step(in)
	p.lines(`located`)
	require.Equal(t, "run r0 is gone", p.state.Log.Tail[0].Started.Unrecovered)
}
