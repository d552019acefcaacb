package workflows_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// staged returns an env for one agent whose model follows a script.
func staged(t *testing.T, def agent.Definition, script *testsuite.Script, tools ...tool.Tool) *testsuite.Env {
	t.Helper()
	def.Name, def.Model = "tester", "script/m"
	for _, one := range tools {
		def.Tools = append(def.Tools, one.Spec().Name)
	}
	return testsuite.New(t, &testsuite.Options{Worker: &worker.Options{
		Agents: []agent.Definition{def}, Tools: tools, Models: map[string]model.Model{"script": script},
	}})
}

// HL-27: a suspension says why the run rests and what it waits for. What was said in the
// conversation, what tools returned, and what is said at the resume are not in it, nor in the
// events of the suspension.
func TestASuspensionHasNothingOfTheTranscript(t *testing.T) {
	secret := tool.New("secret", "", func(context.Context, *tool.Call, none) (string, error) { return "canary-result", nil }, nil)
	script := testsuite.NewScript(
		testsuite.Reply{Text: "canary-text", Calls: calls("secret")},
		testsuite.Reply{Text: "canary-more", Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "the bank is closed"}}}},
		testsuite.Reply{Text: "done"},
	)
	r := staged(t, agent.Definition{Tools: []string{agent.AwaitResumptionTool}}, script, secret).Start("tester", "canary-task", nil)
	envelope := r.Suspended()
	require.Equal(t, "the bank is closed", envelope.Reason)
	shown := func(v any) string {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return string(raw)
	}
	require.NotContains(t, shown(envelope), "canary")
	require.NotContains(t, shown(r.Status().Suspension), "canary")

	r.Command(agent.ResumeCommand{Message: "canary-resume"})
	r.Completed()
	looked, said := 0, 0
	for _, e := range r.Events() {
		switch {
		case e.Type == agent.EventRunSuspended || e.Type == agent.EventRunResumed:
			looked++
			require.NotContains(t, shown(e), "canary", e.Type)
		case e.Message != nil && e.Message.Text() == "canary-resume":
			said++
		}
	}
	require.Equal(t, 2, looked)
	require.Equal(t, 1, said, "what is said at the resume is a message")
}

// HL-60: with 100 tokens allowed and 140 used, nothing is left, and not less.
func TestWhatIsLeftIsNeverNegative(t *testing.T) {
	script := testsuite.NewScript(
		testsuite.Reply{Calls: calls("look"), Usage: testsuite.Usage{Input: 130, Output: 10}},
		testsuite.Reply{Text: `{"summary":"looked"}`, Usage: testsuite.Usage{Input: 30, Output: 5}},
	)
	look := tool.New("look", "", func(context.Context, *tool.Call, none) (string, error) { return "seen", nil }, nil)
	r := staged(t, agent.Definition{Limits: agent.Limits{Tokens: 100}, OnLimit: agent.LimitActionAsk}, script, look).Start("tester", "go", nil)
	require.Equal(t, agent.RequestLimit, r.Suspended().Requests[0].Type)
	status := r.Status()
	require.EqualValues(t, 140, status.Usage.Total())
	require.Zero(t, *status.Remaining.Tokens)

	r.Stop("enough")
	o := r.Ended()
	require.Equal(t, agent.StatusStopped, o.Status)
	require.NotNil(t, o.Handoff)
	require.Greater(t, o.Handoff.Usage.Total(), int64(100))
	require.Zero(t, o.Handoff.Remaining.Tokens)
	require.GreaterOrEqual(t, o.Handoff.Remaining.Turns, 0)
}
