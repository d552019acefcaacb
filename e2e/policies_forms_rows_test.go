package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// questionWait is the deadline of a question. A run must be interrupted, and its worker killed, within it.
const questionWait = 20 * time.Second

// doneMark is the sentinel of a row.
const doneMark = "##DONE##"

// formRows are those of forms that an option has beside the form of another row. The question comes
// first: the table starts the runs in this order, and its deadline begins with it.
func formRows() []policyRow {
	pay := call("pay", nil)
	return append([]policyRow{
		{ // its worker is killed, and it is interrupted, while the question waits; nobody answers
			name: "answer_timeouts", at: "waits", before: 1, after: 2, kept: hasResult("nobody is there"),
			def:     agent.Definition{Tools: []string{"pay", agent.AskUserTool}, AnswerTimeouts: agent.AnswerTimeouts{Deadline: agent.Duration(questionWait), Default: "nobody is there"}},
			replies: turns("done", pay, call(agent.AskUserTool, map[string]any{"question": "Go on?"})),
			end:     completes(policyEnd{}),
		},
		{ // matched before each turn: "go" names the skill, and the text of a fork does not
			name: "skill_match", at: "turn 2", before: 1, after: 2, in: inNeither,
			kept:    func(r model.Request, _ policyEnd) bool { return strings.Contains(r.Instructions, "The words of go.") },
			def:     agent.Definition{Tools: []string{"pay", "look"}, Skills: []string{"go", "ship"}, SkillMatch: &agent.SkillMatch{Sticky: new(bool)}},
			replies: turns("done", pay),
			end:     completes(policyEnd{Skills: "skill.activated go matched"}),
		},
		{ // its worker is killed, and it is interrupted, while the sub-agent works in its worktree
			name: "own_workspace", at: "puts", before: 1, after: 2, stays: true, kept: hasResult(`"result":"merged"`),
			def: agent.Definition{Tools: []string{"pay"}, Agents: []agent.SubAgent{{Agent: "coder", Tools: []string{"put"}, Workspace: &agent.OwnWorkspace{
				Kind: agent.WorkspaceWorktree, AtEnd: agent.WorkspaceMerge, Env: map[string]string{"STAGE": "review"},
			}}}},
			replies: turns("done", pay, call(agent.SubAgentPrefix+"coder", map[string]any{"task": "put it there"})),
			end:     completes(policyEnd{Merged: "put in review"}),
		},
	}, turnFormRows()...)
}

// turnFormRows are those of the form of a turn, of loops, and of a conversation that is summed up.
func turnFormRows() []policyRow {
	pay, text := call("pay", nil), testsuite.Reply{Text: `<tool_call>{"name":"pay","arguments":{}}</tool_call>`}
	scan := func(page int) testsuite.Call {
		return testsuite.Call{Tool: "scan", Arguments: map[string]any{"page": page}}
	}
	return []policyRow{
		{ // the run's first call as text was made before the last worker began, so the second is refused
			name: "done_sentinel", at: "turn 4", before: 1, after: 4,
			kept: func(r model.Request, e policyEnd) bool {
				return nudges(doneMark)(r, e) && hasResult("Not executed: the call was written as text.")(r, e) && r.Reasoning == agent.ReasoningHigh
			},
			def: agent.Definition{
				Tools: []string{"pay"}, DoneSentinel: doneMark, TextCalls: agent.TextCallsAllowOnce,
				ReasoningPolicy: &agent.ReasoningPolicy{Scale: agent.ReasoningLarge},
			},
			replies: []testsuite.Reply{{Calls: pay}, {Text: "Almost."}, text, text, {Text: "done " + doneMark}},
			end:     completes(policyEnd{Paid: 2}),
		},
		{ // a tool that only reads is hidden after two turns without a call of it
			name: "require_action", at: "turn 3", before: 1, after: 3,
			kept: func(r model.Request, e policyEnd) bool {
				return nudges("Your reply has no tool call")(r, e) && hasResult("Not executed: read is not among the tools")(r, e) && !slices.Contains(offered(r), "read")
			},
			def: agent.Definition{
				Tools: []string{"pay", "read", "say"}, TurnPolicy: &agent.TurnPolicy{RequireAction: true}, StopAfter: []string{"say"},
				ToolNarrowing: &agent.ToolNarrowing{WindowTurns: 2},
			},
			replies: []testsuite.Reply{{Calls: pay}, {Text: "Almost."}, {Calls: call("read", map[string]any{"page": 1})}, {Calls: call("say", map[string]any{"text": "done"})}},
			end:     completes(policyEnd{}),
		},
		{ // equal results are counted over the kill; equal calls of one reply are the second loop
			name: "loop_results", at: "turn 4", before: 1, after: 5, kept: corrects("Stop that."),
			def: agent.Definition{
				Tools: []string{"pay", "scan"}, LoopDetection: agent.LoopDetection{Results: 3, Parallel: 2},
				Recovery: agent.Recovery{agent.FailureLoop: {Do: agent.RecoverCorrect, Text: "Stop that.", Then: agent.RecoverFail}},
			},
			replies: turns("done", pay, []testsuite.Call{scan(1)}, []testsuite.Call{scan(2)}, []testsuite.Call{scan(3)}, []testsuite.Call{scan(4), scan(4)}),
			end:     policyEnd{Status: agent.StatusFailed, Code: agent.CodeLoopDetected, Paid: 1},
		},
		{ // the model itself sums up; the point is its request for that. The window is that of two tools
			name: "compaction_hybrid", at: "last reply", window: 2800, before: 1, after: 4, kept: hasNote(agent.NoteSummary, "Summed up: "),
			def:     agent.Definition{Tools: []string{"pay", "read"}, AwaitResumption: new(bool), Compaction: agent.CompactionPolicy{Strategy: agent.CompactionHybrid, KeepLast: 2}},
			replies: turns("done", pay, call("read", map[string]any{"page": 1}), call("read", map[string]any{"page": 2})),
			end:     completes(policyEnd{Compacted: "hybrid"}),
		},
	}
}

// nudges is corrects for a reply of another form.
func nudges(text string) func(model.Request, policyEnd) bool {
	return func(r model.Request, e policyEnd) bool {
		return hasNote(agent.NoteNudge, text)(r, e) || hasNote(agent.NoteNudge, "Continue.")(r, e)
	}
}

// hasResult is hasNote for a result of a call.
func hasResult(text string) func(model.Request, policyEnd) bool {
	return func(r model.Request, _ policyEnd) bool {
		return slices.ContainsFunc(resultsIn(r), func(result string) bool { return strings.Contains(result, text) })
	}
}

// forkReply is the one reply of a fork, in the form that ends a run of its agent. Before it a fork calls
// find, if it has that tool.
func forkReply(r *model.Request) *model.Reply {
	tools := offered(*r)
	switch {
	case slices.Contains(tools, agent.FinishTool):
		return asksFor(model.CallPart("", agent.FinishTool, `{"summary":"forked"}`))
	case slices.Contains(tools, "say"):
		return asksFor(model.CallPart("", "say", `{"text":"forked"}`))
	case slices.Contains(tools, "find") && r.Messages[len(r.Messages)-1].Role == agent.RoleUser:
		return asksFor(model.CallPart("", "find", "{}"))
	case strings.Contains(r.Instructions, doneMark):
		return saysText("forked " + doneMark)
	}
	return saysText("forked")
}

// addForms gives a worker what formRows need: tools, a sub-agent, and a place for worktrees, in which
// the files of the store are not.
func (w *policyWorld) addForms(o *worker.Options) (done func() error, err error) {
	if err := os.MkdirAll(w.tree(), 0o700); err != nil {
		return nil, err
	}
	tree, err := workspace.Open(w.tree(), &workspace.Options{Own: filepath.Join(w.Dir, "own"), AsRoot: true})
	if err != nil {
		return nil, err
	}
	put := func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		dir, err := tree.Dir(c)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fileName(c.Session)), []byte("put in "+c.Env["STAGE"]), 0o600)
		}
		return "It is there.", errors.Join(err, w.reach(ctx, c.Session, "puts"))
	}
	says := func(_ context.Context, _ *tool.Call, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	}
	scan := func(_ context.Context, _ *tool.Call, _ struct {
		Page int `json:"page"`
	}) (string, error) {
		return "nothing", nil
	}
	o.Workspaces, o.Models["codes"] = tree, modelFunc(coder)
	o.Tools = append(o.Tools, tool.New("put", "puts a file", put, &tool.Options{Attempts: 5}), tool.New("say", "says it", says, nil), tool.New("scan", "scans a page", scan, nil))
	o.Agents = append(o.Agents, agent.Definition{Name: "coder", Model: "codes", Tools: []string{"put"}})
	return tree.Close, nil
}

// coder is the model of a sub-agent that puts its file until it is there.
func coder(_ context.Context, r *model.Request) *model.Reply {
	if hasResult("It is there.")(*r, policyEnd{}) {
		return saysText("coded")
	}
	return callsTool("put", "{}")
}

func (w *policyWorld) tree() string { return filepath.Join(w.Dir, "tree") }

// fileName is the file that a session's sub-agent puts.
func fileName(session string) string {
	root, _, _ := strings.Cut(session, "/")
	return root + ".txt"
}

// merged is what a session's sub-agent has put into its parent's files; empty if there is nothing.
func (w *policyWorld) merged(session string) string {
	text, err := os.ReadFile(filepath.Join(w.tree(), fileName(session)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Sprint(err)
	}
	return string(text)
}
