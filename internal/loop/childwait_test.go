package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// restsAt is the report of a sub-agent that waits for an event.
func restsAt(seq int, more string) string {
	return fmt.Sprintf(`child-says {"session":"s/b-1","seq":%d,"status":"suspended","suspension":{"id":"s-1","kind":"parked","owner":"runtime"%s}}`, seq, more)
}

const itsOwnerFailed = `,"owner_failed":{"suspension":"s-1","owner":"runtime","code":"expired"}`

// released returns a run whose call of a sub-agent has returned while that rests, as the model has read.
func released(t *testing.T) *player {
	t.Helper()
	p := played(t, "begin go", `opened {"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"pay"}`, "child-started s/b-1", restsAt(10, itsOwnerFailed))
	require.Equal(t, TurnAsking, p.state.Turn.Phase)
	return p
}

// waited returns the result of the wait that is over.
func (p *player) waited() agent.ToolResult {
	require.Equal(p.t, TurnAsking, p.state.Turn.Phase, p.out.String())
	for i := len(p.state.Log.Tail) - 1; i >= 0; i-- {
		if m := p.state.Log.Tail[i].Message; m != nil {
			for _, part := range m.Parts {
				if part.Result != nil && part.Result.Tool == waitTool {
					return *part.Result
				}
			}
		}
	}
	require.Fail(p.t, "no wait has returned", p.out.String())
	return agent.ToolResult{}
}

// A wait for a sub-agent that rests, as the model has read, waits until the sub-agent reports anything
// newer, or has ended. Nothing else lets it wait for ever (HL-99).
func TestAWaitIsForNews(t *testing.T) {
	const wait = "calls subagent_wait {}"
	for name, c := range map[string]struct {
		before []string // what the wait would hang on
		then   []string // what ends it
		shows  string
	}{
		"an event wakes the child, which ends":   {nil, []string{`child-says {"session":"s/b-1","seq":12,"status":"running"}`, "child-ended s/b-1 completed paid"}, `"text":"paid"`},
		"the child is suspended for more":        {nil, []string{`child-says {"session":"s/b-1","seq":12,"status":"running"}`, `child-says {"session":"s/b-1","seq":15,"status":"suspended","suspension":{"id":"s-2","kind":"parked"}}`}, `"s-2"`},
		"the child goes on after a resume":       {[]string{`calls subagent_resume {"child":"s/b-1"}`}, []string{`child-says {"session":"s/b-1","seq":12,"status":"running"}`, "child-ended s/b-1 completed paid"}, `"text":"paid"`},
		"the child refuses the resume":           {[]string{`calls subagent_resume {"child":"s/b-1"}`}, []string{restsAt(11, "")}, `"s-1"`},
		"a person holds the child":               {[]string{`calls subagent_resume {"child":"s/b-1"}`}, []string{`child-says {"session":"s/b-1","seq":12,"status":"suspended","suspension":{"id":"s-1","kind":"held","owner":"operator"}}`}, `"held"`},
		"the child ends by a stop":               {[]string{`calls subagent_stop {"child":"s/b-1"}`}, []string{"child-ended s/b-1 stopped half"}, `"stopped"`},
		"the child is cancelled":                 {[]string{`calls subagent_stop {"child":"s/b-1","graceful":false}`}, []string{"child-ended s/b-1 cancelled x"}, `"cancelled"`},
		"the child is lost":                      {nil, []string{"child-ended s/b-1 failed x"}, `"failed"`},
		"the child is lost when it should go on": {[]string{`calls subagent_resume {"child":"s/b-1"}`}, []string{"child-ended s/b-1 failed x"}, `"failed"`},
		"it waits for a grant, and gets it":      {[]string{`child-says {"session":"s/b-1","seq":12,"status":"suspended","suspension":{"id":"s-2","kind":"awaiting_budget","owner":"runtime"}}`, wait}, []string{"child-ended s/b-1 completed paid"}, `"text":"paid"`},
		"the model has looked at it":             {[]string{"calls subagent_list {}"}, []string{restsAt(11, "")}, `"s-1"`},
		"another child ends":                     {[]string{`calls subagent__b {"task":"x"} | subagent_list {}`, "child-started s/b-2", `child-says {"session":"s/b-2","seq":3,"status":"suspended","suspension":{"id":"s-1","kind":"parked","owner":"runtime","owner_failed":{"suspension":"s-1","owner":"runtime","code":"expired"}}}`}, []string{"child-ended s/b-2 completed yes"}, `"text":"yes"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := released(t)
			p.lines(c.before...)
			p.lines(wait)
			require.Equal(t, TurnWorking, p.state.Turn.Phase, "it returns what the model has read already")
			p.lines(c.then...)
			require.Contains(t, p.waited().Text, c.shows)
		})
	}
}

// A sub-agent that has an order to go on counts as working: its parent is not shown as suspended meanwhile.
func TestAChildThatWasOrderedWorks(t *testing.T) {
	p := released(t)
	p.lines(`calls subagent_resume {"child":"s/b-1"}`, "calls subagent_wait {}")
	require.Equal(t, agent.StatusRunning, p.state.Status())
	p.lines(restsAt(11, ""), "calls subagent_wait {}")
	require.Equal(t, agent.SuspensionAwaitingChildren, p.state.Suspension().Kind, "it does not go on, and nothing else works")
}

// A wait that nothing could end returns at once, and says so. A model that repeats it does not wait, so it
// is in a loop.
func TestAWaitForNothing(t *testing.T) {
	paused := `child-says {"session":"s/b-1","seq":12,"status":"suspended","suspension":{"id":"s-1","kind":"held","owner":"parent"}}`
	for name, c := range map[string]struct {
		before []string
		says   string
	}{
		"the model has paused it":    {[]string{`calls subagent_pause {"child":"s/b-1","reason":"later"}`, paused, "calls subagent_wait {}"}, "this agent waits for you"},
		"it has ended":               {[]string{`child-ended s/b-1 completed paid`, "calls subagent_wait {}"}, "you have read its end"},
		"there is none":              {nil, "There is no agent"},
		"the call has shown its end": {[]string{`calls subagent__b {"task":"x"}`, "child-started s/b-1", "child-ended s/b-1 completed yes"}, "you have read its end"},
	} {
		t.Run(name, func(t *testing.T) {
			p := played(t, "begin go", `opened {"agents":[{"agent":"b"}],"lifecycle":true}`)
			if len(c.before) > 0 && !strings.HasPrefix(c.before[0], "calls subagent__b") {
				p.lines(`calls subagent__b {"task":"x","background":true}`, "child-started s/b-1")
			}
			p.lines(c.before...)
			for range repeatLimit {
				if p.state.End.Outcome == nil {
					p.lines("calls subagent_wait {}")
				}
				if p.state.End.Outcome == nil {
					require.Contains(t, p.waited().Text, c.says)
				}
			}
			require.Equal(t, agent.CodeLoopDetected, p.state.End.Outcome.Error.Code)
		})
	}
}

// A parent that waits again and again, each time for something new, is in no loop.
func TestAParentThatWaitsIsInNoLoop(t *testing.T) {
	p := released(t)
	for i := range 3 * repeatLimit {
		p.lines("calls subagent_wait {}")
		require.Equal(t, TurnWorking, p.state.Turn.Phase)
		p.lines(restsAt(11+i, ""))
	}
	require.Nil(t, p.state.End.Outcome)
}

// All calls of one turn show the same: the model reads their results together.
func TestCallsOfOneTurnShowTheSame(t *testing.T) {
	p := released(t)
	p.lines(restsAt(11, ""), `calls subagent_list {} | subagent_wait {} | subagent_wait {"children":["s/b-1"]}`)
	require.Equal(t, TurnAsking, p.state.Turn.Phase, "a wait hangs on what another call of its turn has shown")
}

// The model reads the whole answer of a sub-agent that its call had waited for, once. Then the run keeps its
// beginning.
func TestTheAnswerOfAReleasedChildIsWhole(t *testing.T) {
	text := strings.Repeat("word ", 8_000) + "THE END"
	for name, lines := range map[string][]string{
		"it ends while the model waits": {"calls subagent_wait {}", "child-ended s/b-1 completed " + text},
		"it ended before":               {"child-ended s/b-1 completed " + text, "calls subagent_list {}", "calls subagent_wait {}"},
	} {
		t.Run(name, func(t *testing.T) {
			p := released(t)
			p.lines(lines...)
			require.Contains(t, p.waited().Text, text)
			require.LessOrEqual(t, len(p.state.Children.List[0].Outcome.Text), maxChildText)
			require.LessOrEqual(t, written(p.state), maxState)
			p.lines("calls subagent_list {}")
		})
	}
}

// What the model reads of sub-agents is JSON, however many there are and however much they say.
func TestAWaitsResultIsWholeJSON(t *testing.T) {
	for name, n := range map[string]int{"some": 5, "many": 200} {
		t.Run(name, func(t *testing.T) {
			p := played(t, "begin go", `opened {"agents":[{"agent":"b"}],"lifecycle":true}`)
			for at := 0; at < n; at += 5 {
				var calls []string
				for range 5 {
					calls = append(calls, fmt.Sprintf(`subagent__b {"task":"%d","background":true}`, at+len(calls)))
				}
				p.lines("calls " + strings.Join(calls, " | "))
				for i := range 5 {
					p.lines(fmt.Sprintf("child-started s/b-%d", at+i+1))
				}
			}
			for i := range n {
				p.lines(fmt.Sprintf("child-ended s/b-%d completed %s", i+1, strings.Repeat("paid ", 400)))
			}
			// Each may be as long as the results of a turn allow.
			calls := slices.Repeat([]string{waitTool + " {}", listTool + " {}"}, maxCalls/2)
			for _, line := range []string{strings.Join(calls[:2], " | "), strings.Join(calls, " | ")} {
				p.lines("calls " + line)
				m := p.state.Log.Tail[len(p.state.Log.Tail)-3].Message
				require.NotNil(t, m)
				for _, part := range m.Parts {
					var read []childAnswer
					require.NoError(t, json.Unmarshal([]byte(part.Result.Text), &read), part.Result.Text)
					require.NotEmpty(t, read[0].Child)
					if last := read[len(read)-1]; last.Child == "" {
						require.Contains(t, last.Note, "more agents are not shown")
					}
				}
			}
		})
	}
}

// A sub-agent that an earlier execution started, and that is lost, is found by a check while a wait is for it.
func TestAWaitForALostChildEnds(t *testing.T) {
	p := released(t)
	p.state.Children.newExecution(p.now)
	p.lines("calls subagent_wait {}", "sealed")
	require.Equal(t, agent.StatusSuspended, p.state.Status())
	p.now = p.now.Add(2 * time.Hour)
	p.lines("timer")
	require.Contains(t, p.out.String(), "-> check child")
}
