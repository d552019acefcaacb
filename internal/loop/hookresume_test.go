package loop

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A resume that a hook refuses leaves its token good: it can be said again, and joins itself while it
// waits. One that is carried out uses the token.
func TestARefusedResumeKeepsItsToken(t *testing.T) {
	d := played(t, `begin go`, `opened {"tools":["ask_user","await_resumption"],"toolset":[{"name":"add"}],"hooks":{"before_resume":{"checks":[{"name":"gate","tool":"may_go"}]}}}`, `interrupt {}`, `calls add {}`, `sealed`)
	take := func(s State, in Input) State {
		t.Helper()
		next, _, err := Step(s, Moment{At: d.now, Revision: Revision}, in)
		require.NoError(t, err)
		return next
	}
	resume := CommandReceived{ID: "x", Command: agent.ResumeCommand{}, PolicyChecked: true, Proofs: []Proof{{Principal: "ana", Nonce: "n-1", Expires: d.now.Add(time.Hour)}}}
	says := func(s State, status agent.CallStatus, text string) ToolReturned {
		return ToolReturned{Result: agent.ToolResult{Call: s.SuspensionHooks.Current.Call, Tool: "may_go", Status: status, Text: text}}
	}
	s := take(d.state, resume)
	s = take(s, resume)
	s = take(s, says(s, agent.CallFailed, "no network"))
	require.Equal(t, agent.StatusSuspended, s.Status())
	s = take(s, resume)
	s = take(s, says(s, agent.CallOK, `{"verdict":"accept"}`))
	require.Equal(t, agent.StatusRunning, s.Status())
	require.Equal(t, []UsedToken{{"n-1", d.now.Add(time.Hour).Unix()}}, s.Verbs.UsedTokens)
}

// The words of a hook are bounded, and a resume that waits takes space of what waits. Its hook's words
// take the space of its own.
func TestAResumeThatWaitsTakesSpace(t *testing.T) {
	d := played(t, `begin go`, `opened {"tools":["ask_user","await_resumption"],"toolset":[{"name":"add"}],"hooks":{"before_resume":{"checks":[{"name":"gate","tool":"may_go"},{"name":"other","tool":"may_go"}]}}}`, `interrupt {}`, `calls add {}`, `sealed`)
	before := d.state.space()
	s, _, err := Step(d.state, Moment{At: d.now, Revision: Revision}, CommandReceived{Command: agent.ResumeCommand{Message: strings.Repeat("x", 100<<10)}})
	require.NoError(t, err)
	require.LessOrEqual(t, s.space(), before-100<<10)
	text, err := json.Marshal(agent.Verdict{Decision: agent.DecisionAccept, Text: strings.Repeat("é", 60<<10)})
	require.NoError(t, err)
	s, _, err = Step(s, Moment{At: d.now, Revision: Revision}, ToolReturned{Result: agent.ToolResult{Call: s.SuspensionHooks.Current.Call, Tool: "may_go", Status: agent.CallOK, Text: string(text)}})
	require.NoError(t, err)
	said := s.SuspensionHooks.Resume.Command.Message
	require.LessOrEqual(t, len(said), maxHookText)
	require.Greater(t, s.space(), before-20<<10)
	require.LessOrEqual(t, s.space(), before-len(said))
}
