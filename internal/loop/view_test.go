package loop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// The status of a run at rest lists what it keeps: messages that the model has not read, and calls that
// have not begun, or ran as far as their question.
func TestTheStatusListsWhatIsKept(t *testing.T) {
	p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}]}`, `pause {}`, `send {"text":"Also\nlook at trains.","by":"ana"}`)
	require.Nil(t, p.state.View(p.now).Kept, "it works")
	p.lines(`calls subagent__b {"task":"one"}`, `send {"text":"`+strings.Repeat("x", 200)+`","mode":"queue"}`)
	require.Equal(t, &agent.Kept{
		Messages: []agent.KeptMessage{{By: "ana", Text: "Also look at trains."}, {Text: strings.Repeat("x", 119) + "…"}},
		Calls:    []agent.KeptCall{{Call: "t1.1", Tool: "subagent__b"}},
	}, p.state.View(p.now).Kept)
	p.lines(`resume {}`)
	require.Nil(t, p.state.View(p.now).Kept)

	p = played(t, `begin go`, `opened {"toolset":[{"name":"add"}]}`, `calls add {"a":1}`, `asks t1.1 Which?`, `pause {}`, `answer {"request":"q-1","choice":1}`)
	require.Equal(t, []agent.KeptCall{{Call: "t1.1", Tool: "add", Decided: true, Asked: true}}, p.state.View(p.now).Kept.Calls)
}

// A run whose end waits for sub-agents is shown with those that have not ended.
func TestAnEndThatWaitsShowsItsChildren(t *testing.T) {
	p := played(t, "begin go", `opened {"agents":[{"agent":"b"}],"lifecycle":true}`, `calls subagent__b {"task":"one","background":true}`,
		"child-started s/b-1", `calls subagent__b {"task":"two","background":true}`, "child-started s/b-2", "child-ended s/b-1 completed yes", `cancel {}`, "after 6s", "timer")
	require.Equal(t, []agent.InFlight{{Kind: agent.InFlightChild, Call: "t2.1", Name: "b", Since: p.state.Suspensions.Since}}, p.state.View(p.now).InFlight)
}
