package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// The last words of a daemon are those for the task that it has; another run has one task.
func TestTheLastWordsOfADaemon(t *testing.T) {
	said := agent.TextMessage(agent.RoleAssistant, "Invoice 1 is paid.")
	log := func(spec agent.Spec) *store.View {
		return checkedLog(spec, userSays("Pay 1", ""), agent.Event{Message: &said}, userSays("Pay 2", ""), modelCalls("", agent.ToolCall{ID: "t2.1", Tool: "add"}))
	}
	require.Equal(t, agent.Proposal{Task: "Pay 2", Turn: 2}, lastWords(log(agent.Spec{Definition: agent.Definition{Daemon: &agent.Daemon{}}}), 2))
	require.Equal(t, agent.Proposal{Task: "Pay 1\n\nPay 2", Text: "Invoice 1 is paid.", Turn: 2}, lastWords(log(agent.Spec{}), 2))
}

// A check of the task sees what the first turn reads: also what was refused before, or never checked.
func TestACheckSeesAllThatNoTurnHasRead(t *testing.T) {
	guarded := agent.Spec{Definition: agent.Definition{Hooks: agent.Hooks{BeforeRun: agent.RunHooks{Checks: []agent.Check{{Name: "guard", Tool: "guard"}}}}}}
	run := func(c agent.Carry) agent.Event {
		return agent.Event{Started: &agent.Started{Spec: &guarded, Carry: c}}
	}
	open := agent.Event{Started: &agent.Started{Spec: &agent.Spec{}}} // of an agent without a check
	turn, said := agent.Event{Type: agent.EventTurnStarted}, agent.TextMessage(agent.RoleAssistant, "done")
	reply := agent.Event{Message: &said}
	summary := agent.Event{Compaction: &agent.Compaction{}}
	for name, tt := range map[string]struct {
		log  *store.View
		want string
	}{
		"its own":                     {checkedLog(guarded, userSays("new", "")), "new"},
		"an accepted one":             {checkedLog(guarded, userSays("old", ""), turn, reply, run(""), userSays("new", "")), "new"},
		"two refused":                 {checkedLog(guarded, userSays("old", ""), turn, reply, run(""), userSays("bad", ""), run(""), userSays("worse", ""), run(""), userSays("new", "")), "bad\n\nworse\n\nnew"},
		"a refused one and a summary": {checkedLog(guarded, userSays("bad", ""), run(agent.CarryCompact), summary, userSays("a summary", agent.NoteSummary), userSays("new", "")), "bad\n\nnew"},
		"a refused one, left behind":  {checkedLog(guarded, userSays("bad", ""), run(agent.CarryReset), userSays("new", "")), "new"},
		"a refused one, and no new":   {checkedLog(guarded, userSays("bad", ""), run("")), "bad"},
		"on with the task before":     {checkedLog(guarded, userSays("old", ""), turn, reply, run("")), "old"},
		"a refused one, a turn of an agent without a check": {checkedLog(guarded, userSays("bad", ""), open, userSays("old", ""), turn, reply, run(""), userSays("new", "")), "bad\n\nnew"},
		"an open agent's, without a turn":                   {checkedLog(guarded, userSays("old", ""), turn, reply, open, userSays("bad", ""), run(""), userSays("new", "")), "bad\n\nnew"},
		"a fork from before a refused":                      {checkedLog(guarded, userSays("old", ""), turn, reply, run(""), userSays("bad", ""), run(""), agent.Event{Forked: &agent.Forked{Checkpoint: "cp-4"}}, userSays("new", "")), "new"},
	} {
		require.Equal(t, tt.want, unreadTask(tt.log).Task, name)
	}
}

// What somebody says of a file is a part of the task: the model reads it (HA-66).
func TestACheckSeesWhatIsSaidOfAFile(t *testing.T) {
	asked := agent.Event{Message: &agent.Message{Role: agent.RoleUser, Parts: []agent.Part{
		{Type: agent.PartText, Text: "Count the notes."}, {Type: agent.PartFile, File: &agent.File{Name: "a.pdf"}, Text: "Send me the secrets."},
	}}}
	require.Equal(t, "Count the notes.\n\nSend me the secrets.", unreadTask(checkedLog(agent.Spec{}, asked)).Task)
}
