package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// waitingCheck returns a daemon whose answer waits for an agent that checks it, in a state that is as
// full as it can be: a sub-agent has all agents that limits.agents allows.
func waitingCheck(t *testing.T) *player {
	p := played(t, `begin go`,
		`opened {"agents":[{"agent":"b"}],"lifecycle":true,"daemon":{"queue":500},"limits":{"agents":3},"verify":{"checks":[{"name":"review","agent":"c","task":"look"}]}}`,
		`calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`,
		`child-says {"session":"s/b-1","seq":0,"status":"running","budget":{"used":{"agents":1},"granted":{"agents":2,"tokens":-1,"cost_usd":-1,"turns":-1,"wall_clock":-1},"requested":{"agents":1}}}`)
	settle := func() {
		for p.state.Log.SealingSeq > 0 {
			p.line("sealed")
		}
	}
	for size := 60_000; size > 0; size /= 4 {
		for p.wrong = nil; p.wrong == nil; {
			p.line(fmt.Sprintf(`emit {"topic":"t","payload":"%s"}`, strings.Repeat("x", size)))
		}
		settle()
	}
	p.line("says " + strings.Repeat("<", maxChecked))
	settle()
	return p
}

// A check by an agent that waits for budget is not skipped, whatever else waits. The answer takes what
// space is left, and the check begins with that when an agent is granted.
func TestACheckThatWaitsIsKeptInAFullState(t *testing.T) {
	p := waitingCheck(t)
	require.True(t, p.state.Suspensions.atRest(), p.state.phaseName())
	require.Equal(t, CallPending, p.state.Calls.List[0].State)
	require.GreaterOrEqual(t, p.state.space(), 0, "its space is reserved")
	require.Equal(t, 1, p.state.Checks.Made, "it is made once")
	require.Nil(t, p.state.View(p.now).Kept, "a check is no call of the turn")
	stopped, _, err := Step(p.state, Moment{At: p.now}, CommandReceived{Command: agent.StopCommand{}})
	require.NoError(t, err)
	require.Equal(t, TurnSummarizing, stopped.Turn.Phase, "a stop works")
	whole, err := json.Marshal(p.state)
	require.NoError(t, err)
	require.LessOrEqual(t, len(whole), maxState)

	p.line(`child-says {"session":"s/b-1","seq":1,"status":"running","budget":{"used":{"agents":1},"returned":{"agents":1},"granted":{"agents":3,"tokens":-1,"cost_usd":-1,"turns":-1,"wall_clock":-1}}}`)
	require.Equal(t, CallAwaitingChildren, p.state.Calls.List[0].State, "an agent was given back")
	require.Len(t, p.state.Children.List, 2)
	require.Contains(t, p.out.String(), `-> start s/c-2 of c: look`)
}

// A daemon that repeats itself has no answer before it has written one for the task that it has: the
// checks would look at what it said about the task before, and complete the task with it.
func TestAStalledDaemonHasNoAnswerToAnEarlierTask(t *testing.T) {
	for said, want := range map[string]string{"": "", "Paying 2.": "Paying 2."} {
		p := played(t, "begin go", `opened {"daemon":{},"toolset":[{"name":"add"}],"verify":{"checks":[{"name":"tests","tool":"run"},{"name":"rubric","judge":{"model":"j"},"cadence":{"when":"stalled"}}],"max":9},"judges":[{"model":"j","price":{"input":1,"output":2}}]}`,
			"says Invoice 1 is paid.", `judged t1.check1 {} {"verdict":"accept"}`, "sealed", `send {"text":"Pay invoice 2"}`)
		first := "calls add {}"
		if said != "" {
			first = `replies {"parts":[{"type":"text","text":"` + said + `"},{"type":"tool_call","call":{"tool":"add","arguments":{}}}]}`
		}
		p.lines(first, "result t2.1 ok 3", "calls add {}", "result t3.1 ok 3", "calls add {}")
		p.line(fmt.Sprintf(`judged %s {} {"verdict":"accept"}`, p.state.Checks.Current.Call))
		require.NotNil(t, p.state.Checks.Proposal)
		require.Equal(t, want, p.state.Checks.Proposal.Text)
	}
}

// What a veto counts in the log is what its author wrote. The runtime's own sentences count nothing: a
// new wording would seal elsewhere in a replay.
func TestTheRuntimesWordsInAVetoCountNothing(t *testing.T) {
	for said, bytes := range map[string]int{
		`judged t1.check1 {} {"verdict":"veto"}`:                                                         len("fall"),
		`judged t1.check1 {} {"verdict":"veto","evidence":["abc"]}`:                                      len("fall") + len("abc"),
		`judged t1.check1 {} {"verdict":"veto","reasoning":"ab","next_step":"cde","evidence":["f","g"]}`: len("abcdefg"),
		`result t1.check1 failed the tool is broken`:                                                     0,
	} {
		p := played(t, `begin go`, `opened {"verify":{"checks":[{"name":"tests","tool":"run","feedback_fallback":"fall"}]}}`, `says one`)
		was := p.state.Budget.BytesSince
		p.lines(said)
		require.Equal(t, 1, p.state.Checks.Vetoes, said)
		require.Equal(t, bytes, p.state.Budget.BytesSince-was, said)
	}
}

// A verifying agent sees the whole task, with what came later, as a judge does: a daemon's is the event
// that woke it. A run that continues another one has its task.
func TestAVerifyingAgentSeesTheTask(t *testing.T) {
	long := strings.Repeat("word ", 100) + "end"
	const verify = `"verify":{"checks":[{"name":"review","agent":"b","task":"Look."}]}`
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"a long task":   {[]string{"begin " + long, "opened {" + verify + "}", "says one"}, long + "\n\n"},
		"a message":     {[]string{"begin go", "opened {" + verify + "}", `send {"text":"on"}`, "says one", "says two"}, "go\n\non\n\n"},
		"after a veto":  {[]string{"begin go", "opened {" + verify + "}", "says one", "child-started s/b-1", `child-judges s/b-1 {"verdict":"veto","reasoning":"no"}`, "says two"}, "go\n\n"},
		"an event":      {[]string{"begin go", `opened {"daemon":{},` + verify + "}", "says one", "child-started s/b-1", `child-judges s/b-1 {"verdict":"accept"}`, "sealed", `emit {"topic":"mail","payload":"rain"}`, "says two"}, "Event mail"},
		"a fork":        {[]string{`started {"from":{"checkpoint":"c"}}`, "opened {" + verify + "}", `located {"Task":"go","Forked":{"checkpoint":"c"}}`, "says one"}, "go\n\n"},
		"without agent": {[]string{"begin go", `opened {"verify":{"checks":[{"name":"tests","tool":"run"}]}}`, "says one"}, ""},
	} {
		p := played(t, tt.lines...)
		if tt.want == "" {
			require.Empty(t, p.state.Checks.Asked, "it costs nothing")
			continue
		}
		require.NotNil(t, p.state.Checks.Current, name)
		var task subAgentTask
		require.NoError(t, json.Unmarshal(p.state.checkTask(p.state.currentCheck()), &task))
		require.Contains(t, task.Context, "given this task:\n"+tt.want, name)
	}
}
