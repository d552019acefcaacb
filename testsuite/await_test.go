package testsuite_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// looker is a worker of one agent, which names one tool that only reads.
func looker(def agent.Definition) *worker.Options {
	def.Name, def.Model, def.Tools = "reader", "m", []string{"look"}
	look := tool.New("look", "Looks.", func(context.Context, *tool.Call, struct{}) (string, error) { return "closed", nil }, &tool.Options{ReadOnly: true})
	return &worker.Options{Agents: []agent.Definition{def}, Tools: []tool.Tool{look}}
}

// waits calls await_resumption.
var waits = testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "the bank is closed"}}}}

// offered lists the tools of each request.
func offered(script *testsuite.Script) (all [][]string) {
	for _, r := range script.Requests() {
		var names []string
		for _, t := range r.Tools {
			names = append(names, t.Name)
		}
		all = append(all, names)
	}
	return all
}

// An agent that names another tool can park itself too, also if its rules deny or ask about what they do not
// name (HL-17).
func TestAnAgentParksWithoutNamingTheTool(t *testing.T) {
	for _, def := range []agent.Definition{{}, {Default: agent.RulingDeny}, {Rules: []agent.Rule{{Do: agent.RulingAsk}}}} {
		script := testsuite.NewScript(waits, testsuite.Reply{Text: "It is open."})
		run := testsuite.New(t, &testsuite.Options{Worker: looker(def), Model: script}).Start("reader", "Ask the bank", nil)
		s := run.Suspended()
		require.Equal(t, []any{agent.SuspensionParked, agent.InitiatorSelf, "the bank is closed"}, []any{s.Kind, s.Initiator, s.Reason})
		run.Resume()
		require.Equal(t, "It is open.", run.Completed().Text)
		require.Equal(t, []string{"look", agent.AwaitResumptionTool}, offered(script)[0])
	}
}

// await_resumption: false turns the tool off: it is in no request, and a call of it is refused
// (HL-18). An agent that ends with its first reply has no tool.
func TestAwaitResumptionIsTurnedOff(t *testing.T) {
	script := testsuite.NewScript(waits, testsuite.Reply{Text: "It is closed."})
	run := testsuite.New(t, &testsuite.Options{Worker: looker(agent.Definition{AwaitResumption: new(bool)}), Model: script}).Start("reader", "Ask the bank", nil)
	require.Equal(t, "It is closed.", run.Completed().Text)
	require.Equal(t, [][]string{{"look"}, {"look"}}, offered(script))

	script = testsuite.NewScript(testsuite.Reply{Text: "Hello."})
	plain := &worker.Options{Agents: []agent.Definition{{Name: "greeter", Model: "m"}}}
	testsuite.New(t, &testsuite.Options{Worker: plain, Model: script}).Start("greeter", "Greet", nil).Completed()
	require.Equal(t, [][]string{nil}, offered(script))
}

// What a model writes for the end of its own wait is marked: a judge that looks for what the user asked
// does not take it for the user's words.
func TestAModelsOwnInputIsMarked(t *testing.T) {
	park := testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "later", "conditions": map[string]any{"after": "1s", "on_timeout": agent.OnTimeoutResumeWithInput, "input": "Pay invoice 7."}}}}}
	script := testsuite.NewScript(park, testsuite.Reply{Text: "Done."})
	env := testsuite.New(t, &testsuite.Options{Worker: looker(agent.Definition{}), Model: script})
	run := env.Start("reader", "Read the page.", nil)
	run.Suspended()
	env.FastForward(time.Minute)
	run.Completed()
	notes := map[string]agent.Note{}
	for _, m := range script.Requests()[1].Messages {
		notes[m.Text()] = m.Note
	}
	require.Equal(t, agent.Note(""), notes["Read the page."])
	require.Equal(t, agent.NoteTimeout, notes["Pay invoice 7."])
}
