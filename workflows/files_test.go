package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// paint shows a document with the name that it gets.
func paint() tool.Tool {
	return tool.New("paint", "paints", func(ctx context.Context, c *tool.Call, in struct{ Name string }) (string, error) {
		return "painted", c.AddFile(ctx, agent.FileInput{Name: in.Name, Data: []byte("%PDF-1.4 " + in.Name)})
	}, nil)
}

func paints(name string) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: "paint", Arguments: map[string]any{"Name": name}}}}
}

// passes gives work to the agent "scout".
func passes(arguments map[string]any) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: "subagent__scout", Arguments: arguments}}}
}

// withScout adds the agent "scout" with a model of its own and all tools of the tester.
func withScout(b *bench, script *testsuite.Script) {
	scout := b.acts.Agents["tester"]
	scout.Spec.Name, scout.Spec.Model, scout.Spec.Agents, scout.Spec.Flow = "scout", "scout", nil, false
	b.acts.Agents["scout"], b.acts.Client = scout, away{}
	b.acts.ParentChecks = activities.NewParentChecks()
	lead := b.acts.Model
	b.acts.Model = func(name string) (activities.Model, error) {
		if name == "scout" {
			return activities.Model{Model: script, Name: name}, nil
		}
		return lead(name)
	}
}

// A sub-agent gets the files that its parent's model names, and gives back those that its answer
// names. Each session has copies of its own.
func TestFilesGoToASubAgentAndBack(t *testing.T) {
	lead := testsuite.NewScript(paints("plan.pdf"), passes(map[string]any{"task": "Draw a map.", "files": []string{"plan.pdf"}}), testsuite.Reply{Text: "Both are here."})
	scout := testsuite.NewScript(paints("draft.pdf"), paints("map.pdf"), testsuite.Reply{Text: "I have drawn map.pdf, as plan.pdf says."})
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}}, lead, paint())
	withScout(b, scout)
	require.Equal(t, "Both are here.", b.run(t, "go").Text)

	own, below := "default-test-workflow-id", "default-test-workflow-id/scout-1"
	asked := scout.Requests()[0]
	given := asked.Messages[len(asked.Messages)-1].Files()
	require.Len(t, given, 1)
	require.Equal(t, "plan.pdf", given[0].Name)
	require.Equal(t, below, given[0].Session)
	require.Equal(t, "%PDF-1.4 plan.pdf", string(asked.Files[given[0].Digest]))

	last := lead.Requests()[2]
	back := last.Messages[len(last.Messages)-1].Files()
	require.Len(t, back, 1, "it was sent the plan, and does not name the draft")
	require.Equal(t, "map.pdf", back[0].Name)
	require.Equal(t, own, back[0].Session)
	require.Equal(t, "%PDF-1.4 map.pdf", string(last.Files[back[0].Digest]))
}

// A name that no file of the conversation has starts no sub-agent, and the model reads which there are.
func TestAFileThatIsNotThere(t *testing.T) {
	lead := testsuite.NewScript(paints("plan.pdf"), passes(map[string]any{"task": "Look.", "files": []string{"plan.png"}}), testsuite.Reply{Text: "I see."})
	scout := testsuite.NewScript()
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}}, lead, paint())
	withScout(b, scout)
	require.Equal(t, "I see.", b.run(t, "go").Text)
	require.Empty(t, scout.Requests())
	last := lead.Requests()[2]
	r := last.Messages[len(last.Messages)-1].Parts[0].Result
	require.Equal(t, agent.CallRejected, r.Status)
	require.Contains(t, r.Text, `there is no file "plan.png"; there are: plan.pdf#`)
}

// A flow gives files of its steps to an agent, and returns those that the agent gives back.
func TestAFlowPassesFiles(t *testing.T) {
	f := flow.New("tester", func(c flow.Context, _ string) (flow.WithFiles[string], error) {
		plan, err := flow.Tool[flow.WithFiles[string]](c, "paint", map[string]string{"Name": "plan.pdf"}, nil)
		if err != nil {
			return plan, err
		}
		return flow.Agent[flow.WithFiles[string]](c, "scout", "Draw a map.", &flow.AgentOptions{Files: plan.Files})
	}, &flow.Options{Tools: []string{"paint"}, Agents: []agent.SubAgent{{Agent: "scout"}}})
	b := setupFlow(t, f)
	p := paint()
	lead := b.acts.Agents["tester"]
	lead.Spec.Toolset = append(lead.Spec.Toolset, p.Spec())
	b.acts.Agents["tester"], b.acts.Tools["paint"] = lead, p
	scout := testsuite.NewScript(paints("map.pdf"), testsuite.Reply{Text: "See map.pdf."})
	withScout(b, scout)
	o := b.run(t, "go")
	require.Equal(t, "See map.pdf.", o.Text, "%v", o.Err())
	require.Len(t, o.Files, 1)
	require.Equal(t, "map.pdf", o.Files[0].Name)
	require.Equal(t, "default-test-workflow-id", o.Files[0].Session)
	asked := scout.Requests()[0]
	given := asked.Messages[0].Files()
	require.Len(t, given, 1)
	require.Equal(t, "%PDF-1.4 plan.pdf", string(asked.Files[given[0].Digest]))
}

// A file goes to a sub-agent that waits, with the words of a resume. Orders after it come after it.
func TestAFileGoesWithAResume(t *testing.T) {
	call := func(tool string, arguments map[string]any) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: tool, Arguments: arguments}}}
	}
	below := "default-test-workflow-id/scout-1"
	lead := testsuite.NewScript(
		paints("plan.pdf"), passes(map[string]any{"task": "Wait.", "background": true}), call("subagent_wait", map[string]any{}),
		call("subagent_resume", map[string]any{"child": below, "input": "Read this.", "files": []string{"plan.pdf"}}),
		call(agent.AwaitResumptionTool, map[string]any{"reason": "it reads", "conditions": map[string]any{"after": "1m"}}), testsuite.Reply{Text: "It has read it."},
	)
	scout := testsuite.NewScript(call(agent.AwaitResumptionTool, map[string]any{"reason": "nothing to read"}), testsuite.Reply{Text: "I have read it."})
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}, Lifecycle: true, Tools: []string{agent.AwaitResumptionTool}}, lead, paint())
	withScout(b, scout)
	require.Equal(t, "It has read it.", b.run(t, "go").Text)
	asked := scout.Requests()[1]
	var given []*agent.File
	for _, m := range asked.Messages {
		given = append(given, m.Files()...)
	}
	require.Len(t, given, 1)
	require.Equal(t, below, given[0].Session)
	require.Equal(t, "%PDF-1.4 plan.pdf", string(asked.Files[given[0].Digest]))
}

// A sub-agent that is stopped while it copies files has a head already, by which a deletion finds what
// it has copied.
func TestCopiesHaveAHead(t *testing.T) {
	lead := testsuite.NewScript(paints("plan.pdf"), passes(map[string]any{"task": "Read.", "files": []string{"plan.pdf"}}), testsuite.Reply{Text: "I see."})
	b := setup(t, agent.Definition{Agents: []agent.SubAgent{{Agent: "scout"}}}, lead, paint())
	withScout(b, testsuite.NewScript(testsuite.Reply{Text: "Read."}))
	copied := false
	b.OnActivity(activities.CopyFiles.Name, mock.Anything, mock.Anything).Return(func(ctx context.Context, in activities.CopyFilesInput) (activities.CopiedFiles, error) {
		head, err := b.acts.Log.Store().Head(ctx, in.To)
		copied = true
		require.NoError(t, err)
		require.Equal(t, in.To, head.Session)
		return activities.CopiedFiles{}, nil
	})
	require.Equal(t, "I see.", b.run(t, "go").Text)
	require.True(t, copied)
}
