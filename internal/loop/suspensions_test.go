package loop

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A run says that it is suspended when that is stored, carries over once a suspension if it
// rests for long, and counts how long it rested.
func TestHowARunRests(t *testing.T) {
	at := time.Unix(100, 0)
	r := Suspensions{Since: at, Open: &OpenSuspension{ID: "s-1"}}
	require.Equal(t, []bool{false, false}, []bool{r.atRest(), r.published()})
	require.Zero(t, r.continueAsNewAt())
	r.Open.AtRest, r.Open.Published = true, true
	require.Equal(t, at.Add(continueAsNewAfter), r.continueAsNewAt())
	r.markContinuedAsNew()
	require.Zero(t, r.continueAsNewAt())
	require.Equal(t, time.Minute, r.close(at.Add(time.Minute)))
	require.Equal(t, []any{time.Minute, false}, []any{r.SuspendedFor, r.atRest()})
	require.Zero(t, r.close(at.Add(time.Hour)))
	require.Equal(t, time.Minute, r.SuspendedFor)
}

// run.suspended names the run's newest checkpoint and the reason (HX-68). run.resumed names the
// checkpoint, the turns until then, and with what the run continues (HX-69). All of it is in JSON.
func TestSuspensionsNameTheirCheckpoint(t *testing.T) {
	turns := []string{"begin go", `opened {"toolset":[{"name":"add"}],"lifecycle":true}`, "calls add {}", "result t1.1 ok 1"}
	daemon := []string{"begin watch", `opened {"daemon":{"topics":["paid"],"every":"1h"}}`, "says watching"}
	held := append(slices.Clone(turns), `interrupt {"reason":"the client rings"}`, "fails cancelled")
	asked := []string{"begin go", `opened {"tools":["ask_user"]}`, `calls ask_user {"question":"Where?"}`}
	for name, c := range map[string]struct {
		lines      []string
		checkpoint string
		turn       int
		mode       agent.ResumeMode
		reason     string
	}{
		"continue":       {append(slices.Clone(held), "resume {}"), "cp-12-043a71", 2, agent.ResumedContinue, "the client rings"},
		"with a message": {append(slices.Clone(held), `resume {"message":"He has rung."}`), "cp-12-043a71", 2, agent.ResumedMessage, "the client rings"},
		"with an answer": {append(slices.Clone(asked), `answer {"request":"q-1","text":"Rome"}`), "cp-2-043a71", 1, agent.ResumedAnswer, "Where?"},
		"by an event":    {append(slices.Clone(daemon), `emit {"topic":"paid"}`), "cp-5-043a71", 1, agent.ResumedEvent, ""},
		"by a message":   {append(slices.Clone(daemon), `send {"text":"Look."}`), "cp-5-043a71", 1, agent.ResumedMessage, ""},
		"by a time":      {append(slices.Clone(daemon), "after 1h", "timer"), "cp-5-043a71", 1, agent.ResumedTimeout, ""},
		"by a stop":      {append(slices.Clone(held), "stop {}"), "cp-12-043a71", 2, agent.ResumedStop, "the client rings"},
		"before a turn":  {[]string{`begin go`, "pause {}", `opened {}`, "resume {}"}, "", 0, agent.ResumedContinue, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			var suspended, resumed *agent.Event
			for _, line := range c.lines {
				p.line(line)
				for _, e := range p.state.Log.Tail {
					switch e.Type {
					case agent.EventRunSuspended:
						suspended = &e
					case agent.EventRunResumed:
						resumed = &e
					}
				}
			}
			require.NotNil(t, suspended, p.out.String())
			require.NotNil(t, resumed, p.out.String())
			require.Equal(t, c.checkpoint, suspended.Suspension.Checkpoint, p.out.String())
			require.Equal(t, c.reason, suspended.Suspension.Reason)
			require.Equal(t, c.checkpoint, resumed.Resumed.Checkpoint)
			require.Equal(t, c.turn, resumed.Resumed.Turn)
			require.Equal(t, c.mode, resumed.Resumed.Mode)
		})
	}
}

// A run that begins with a summary has its newest checkpoint behind it.
func TestACheckpointBehindASummary(t *testing.T) {
	p := played(t, `started {"carry":"compact","input":{"text":"and now?"}}`, `opened-old`, "located {}", "says we paid invoice 118")
	require.Equal(t, TurnAsking, p.state.Turn.Phase)
	tail := p.state.Log.Tail
	require.Equal(t, agent.EventTurnStarted, tail[len(tail)-1].Type)
	require.Equal(t, tail[len(tail)-2].Seq, p.state.Turn.Checkpoint)
}

// A daemon that is woken under a hold resumes with what woke it.
func TestAHeldDaemonResumesWithWhatWokeIt(t *testing.T) {
	for says, mode := range map[string]agent.ResumeMode{
		`send {"text":"hello","by":"bob"}`: agent.ResumedMessage,
		`emit {"topic":"t","by":"bob"}`:    agent.ResumedEvent,
	} {
		p := played(t, "begin", `opened {"daemon":{"topics":["t"]}}`, "sealed", `pause {"by":"ana"}`, says, "sealed", `resume {"by":"ana"}`)
		var modes []agent.ResumeMode
		for _, e := range p.state.Log.Tail {
			if e.Resumed != nil {
				modes = append(modes, e.Resumed.Mode)
			}
		}
		require.Equal(t, []agent.ResumeMode{mode}, modes, says)
	}
}
