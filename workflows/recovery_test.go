package workflows_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// After two failures the last message of the next request lists both, and the request before it in
// the transcript is as it was (PA-27, PA-76).
func TestLessonsEndTheRequest(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "", errors.New("disk full") }, nil)
	b := setup(t, agent.Definition{Lessons: true, Rules: []agent.Rule{{Do: agent.RulingDeny, Tools: []string{"pay"}}}}, testsuite.NewScript(
		testsuite.Reply{Calls: calls("add")}, testsuite.Reply{Calls: calls("pay")}, testsuite.Reply{Text: "I give up."}), add,
		tool.New("pay", "", func(context.Context, *tool.Call, none) (string, error) { return "paid", nil }, nil))
	require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
	requests := b.script.Requests()
	require.Len(t, requests, 3)
	last := requests[2].Messages[len(requests[2].Messages)-1]
	require.Equal(t, agent.RoleUser, last.Role)
	require.Equal(t, agent.NoteLessons, last.Note)
	require.Contains(t, last.Text(), "tool_error: the tool add failed; its result says why")
	require.NotContains(t, last.Text(), "disk full", "what the tool said stays in its result")
	require.Contains(t, last.Text(), "policy_violation: ")
	for _, m := range requests[2].Messages[:len(requests[2].Messages)-1] {
		require.NotEqual(t, agent.NoteLessons, m.Note, "the transcript has none")
	}
}

// A correction is for the reply after it. Once the run was suspended, no request has it, whether the
// model had answered to it or not; the transcript keeps it (PA-24, PA-29).
func TestNoCorrectionOutlivesASuspension(t *testing.T) {
	def := agent.Definition{Completion: agent.CompletionTool, Tools: []string{agent.AskUserTool}}
	ask := testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Which?"}}}}
	finish := testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.FinishTool, Arguments: map[string]any{"summary": "blue"}}}}
	says := testsuite.Reply{Text: "Well."}
	for name, c := range map[string]struct {
		replies    []testsuite.Reply
		pause      bool
		verb, with string
		texts      map[agent.TextName]string
	}{
		"answered to":  {[]testsuite.Reply{says, ask, finish}, false, "answer", `{"request":"q-1","text":"blue"}`, nil},
		"pending":      {[]testsuite.Reply{says, finish}, true, "resume", `{"message":"Take blue."}`, nil},
		"nothing said": {[]testsuite.Reply{says, finish}, true, "resume", `{}`, nil},
		"no note":      {[]testsuite.Reply{says, finish}, true, "resume", `{}`, map[agent.TextName]string{agent.TextResumeNote: agent.NoText}},
	} {
		t.Run(name, func(t *testing.T) {
			def.Texts = c.texts
			b := setup(t, def, testsuite.NewScript(c.replies...))
			var once sync.Once
			b.at(activities.CallModel.Name, func() {
				if c.pause {
					once.Do(func() { b.signal("pause", `{}`) })
				}
			})
			b.after(time.Minute, func() { b.signal(c.verb, c.with) })
			require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
			requests := b.script.Requests()
			last := requests[len(requests)-1].Messages
			require.False(t, corrected(last), "%+v", last)
			require.NotEqual(t, agent.RoleAssistant, last[len(last)-1].Role, "a provider refuses that")
			head, err := b.acts.Log.Store().Head(t.Context(), "default-test-workflow-id")
			require.NoError(t, err)
			log, err := b.acts.Log.View(t.Context(), head.Digest)
			require.NoError(t, err)
			require.True(t, corrected(log.Messages()), "the transcript keeps it")
		})
	}
}

func corrected(messages []agent.Message) bool {
	return slices.ContainsFunc(messages, func(m agent.Message) bool { return m.Note == agent.NoteNudge && m.Text() != "Continue." })
}

// A call of finish without its summary ends nothing: the run would have no answer, or an older text.
func TestFinishNeedsItsSummary(t *testing.T) {
	finish := func(args map[string]any) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.FinishTool, Arguments: args}}}
	}
	for _, bad := range []map[string]any{{"text": "blue"}, {"summary": " \n"}, {"summary": 3}} {
		b := setup(t, agent.Definition{Completion: agent.CompletionTool}, testsuite.NewScript(finish(bad), finish(map[string]any{"summary": "blue"})))
		o := b.run(t, "go")
		require.Equal(t, agent.StatusCompleted, o.Status)
		require.Equal(t, "blue", o.Text)
		refused := rows(b, 1)[0]
		require.Equal(t, agent.CallRejected, refused.Status)
		require.Contains(t, refused.Text, "summary must be a text that is not blank")
		require.Contains(t, refused.Text, `"required":["summary"]`)
	}
	b := setup(t, agent.Definition{Completion: agent.CompletionTool}, testsuite.NewScript(finish(nil), finish(map[string]any{"x": 1}), finish(map[string]any{"x": 2})))
	require.ErrorIs(t, b.run(t, "go").Err(), agent.CodeBadOutput, "as often as an output may be repaired")
}

// The last reply at a limit is asked for without tools, and is the outcome's text beside the
// handoff (PA-55, PA-88).
func TestFinalize(t *testing.T) {
	add := tool.New("add", "", func(context.Context, *tool.Call, none) (string, error) { return "3", nil }, nil)
	b := setup(t, agent.Definition{Limits: agent.Limits{Turns: 1}, OnLimit: agent.LimitActionFinalize}, testsuite.NewScript(
		testsuite.Reply{Match: `\Ago`, Calls: calls("add")}, testsuite.Reply{Match: "Your limit is reached", Text: "The sum is 3, as far as I know."}), add)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusFailed, o.Status)
	require.ErrorIs(t, o.Err(), agent.CodeLimitTurns)
	require.Equal(t, "The sum is 3, as far as I know.", o.Text)
	require.NotNil(t, o.Handoff)
	require.Equal(t, o.Text, o.Handoff.Summary)
	require.Equal(t, agent.SummarizedByRule, o.Handoff.SummarizedBy)
	require.Equal(t, []string{"the run has made the 1 model calls that limits.turns allows"}, o.Handoff.Blockers)
	requests := b.script.Requests()
	require.Len(t, requests, 2)
	require.True(t, requests[1].NoCalls)
	require.Contains(t, requests[1].Messages[len(requests[1].Messages)-1].Text(), "last reply")
	require.Equal(t, 1, o.Turns, "it counts as no turn")
}

// A model that refuses is passed over: the next turn asks the next of its fallbacks (PA-57).
func TestARefusalFallsBack(t *testing.T) {
	refuses := testsuite.Reply{Text: "I will not.", Finish: string(agent.FinishContentFilter)}
	b := setup(t, agent.Definition{Fallbacks: []string{"other"}, Recovery: agent.Recovery{agent.FailureRefusal: {Do: agent.RecoverFallback, Then: agent.RecoverHandoff}}}, testsuite.NewScript(refuses, refuses))
	o := b.run(t, "go")
	require.ErrorIs(t, o.Err(), agent.CodeRefusal)
	require.NotNil(t, o.Handoff)
	requests := b.script.Requests()
	require.Len(t, requests, 2)
	require.Equal(t, []string{"script", "other"}, []string{requests[0].Model, requests[1].Model})
}
