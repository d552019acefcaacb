package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// A run waits, and another build with other instructions is deployed. Whatever ends the wait: with
// refresh_on_resume the next request has the instructions of the new build, and the log has their digest.
// Without it the run keeps those with which it began. The end of a second wait on the same build records
// nothing (PA-23).
func TestTheInstructionsAreNewAfterEverySuspension(t *testing.T) {
	t.Parallel()
	parks := testsuite.Reply{Calls: call(agent.AwaitResumptionTool, map[string]any{"reason": "not paid", "conditions": map[string]any{"event": map[string]any{"topic": "paid"}}})}
	pays := testsuite.Reply{Calls: call("echo", map[string]any{"text": "paid"})}
	for name, c := range map[string]struct {
		waits testsuite.Reply
		ends  agent.Command
		keeps bool // without the policy
	}{
		"a resume":                     {waits: parks, ends: agent.ResumeCommand{}},
		"an event":                     {waits: parks, ends: agent.EmitCommand{Topic: "paid"}},
		"an answer":                    {waits: asks("Where to?"), ends: agent.AnswerCommand{Request: "q-1", Text: "Rome"}},
		"an approval":                  {waits: pays, ends: agent.ApproveCommand{Request: "q-1"}},
		"a rejection":                  {waits: pays, ends: agent.RejectCommand{Request: "q-1", Reason: "no"}},
		"an answer without the policy": {waits: asks("Where to?"), ends: agent.AnswerCommand{Request: "q-1", Text: "Rome"}, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def := agent.Definition{
				Instructions: "Be brief.", RefreshOnResume: !c.keeps, Tools: []string{agent.AskUserTool, agent.AwaitResumptionTool},
				Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"echo"}}},
			}
			script := testsuite.NewScript(c.waits, asks("And then?"), testsuite.Reply{Text: "done"})
			s := setup(t, def, script, echo(nil))
			run := s.begin(t, "go", &client.StartOptions{})
			s.suspended(t, run)
			s.worker.Stop()
			newer := def
			newer.Instructions = "Be kind."
			s.work(t, newer, script, echo(nil))
			s.say(t, run, c.ends)
			again := s.suspended(t, run).Requests[0]
			s.say(t, run, agent.AnswerCommand{Request: again.ID, Text: "home"})
			o := s.result(t, run)
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			want, changes := "Be kind.", []agent.InstructionsChange{agent.NewInstructions("Be kind.", "")}
			if c.keeps {
				want, changes = "Be brief.", nil
			}
			var read []string
			for _, r := range script.Requests() {
				read = append(read, ownPart(r))
			}
			require.Equal(t, []string{"Be brief.", want, want}, read)
			require.Equal(t, changes, s.refreshed(t, run.Session))
		})
	}
}

// The build that is deployed lacks the agent. An answer is not refused for that, and the run is not stuck: it
// goes on with the instructions that it has, and its log says why (PA-23).
func TestARunGoesOnWithoutNewInstructions(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(asks("Where to?"), testsuite.Reply{Text: "done"})
	s := setup(t, agent.Definition{Instructions: "Be brief.", RefreshOnResume: true, Tools: []string{agent.AskUserTool}}, script)
	run := s.begin(t, "go", &client.StartOptions{})
	s.suspended(t, run)
	s.worker.Stop()
	s.open(t, &worker.Options{
		TaskQueue: s.queue, Agents: []agent.Definition{{Name: "other", Model: "script"}}, Store: s.store, Logger: zap.NewNop(),
		Models: map[string]model.Model{"script": script}, Temporal: stopsSoon,
	})
	s.say(t, run, agent.AnswerCommand{Request: "q-1", Text: "Rome"})
	o := s.result(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "Be brief.", ownPart(script.Requests()[1]))
	kept := s.refreshed(t, run.Session)
	require.Len(t, kept, 1)
	require.Equal(t, agent.CodeUnknownAgent, kept[0].Error.Code)
	require.Contains(t, kept[0].Error.Message, `agent "tester" is not in this worker's build; it has other`)
	require.Equal(t, 1, s.events(t, run, agent.EventInstructionsKept))
}

// Each agent of a tree says for itself whether its instructions are renewed: here the helper does, and the
// lead above it does not (PA-23).
func TestASubAgentRefreshesByItsOwnDefinition(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	read := map[string][]string{}
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		mu.Lock()
		defer mu.Unlock()
		task := r.Messages[0].Text()
		read[task] = append(read[task], ownPart(*r))
		switch {
		case replies(r) > 0:
			return saysText("done")
		case task == "lead":
			return callsTool("subagent__helper", `{"task":"help"}`)
		}
		return callsTool(agent.AskUserTool, `{"question":"Where to?"}`)
	})
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	build := func(instructions string) *worker.Worker {
		return s.open(t, &worker.Options{
			TaskQueue: s.queue, Store: s.store, Logger: zap.NewNop(), Models: map[string]model.Model{"script": m}, Temporal: stopsSoon,
			Agents: []agent.Definition{
				{Name: "tester", Model: "script", Instructions: instructions, Agents: []agent.SubAgent{{Agent: "helper"}}},
				{Name: "helper", Model: "script", Instructions: instructions, RefreshOnResume: true, Tools: []string{agent.AskUserTool}},
			},
		})
	}
	old := build("Be brief.")
	run := s.begin(t, "lead", nil)
	s.suspended(t, run)
	old.Stop()
	build("Be kind.")
	helper, err := s.Get(t.Context(), run.Session+"/helper-1")
	require.NoError(t, err)
	s.say(t, helper, agent.AnswerCommand{Request: "q-1", Text: "Rome"})
	o := s.result(t, run)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string][]string{"lead": {"Be brief.", "Be brief."}, "help": {"Be brief.", "Be kind."}}, read)
}
