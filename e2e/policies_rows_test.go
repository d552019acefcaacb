package e2e

import (
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
)

// policyRow is a policy, and the smallest agent that names it.
type policyRow struct {
	name    string
	def     agent.Definition
	replies []testsuite.Reply
	// at is the point in which the policy works: a turn, the last reply, who looks at an answer, or
	// a write to the memory. holdAt is where the run is interrupted; empty means at.
	at, holdAt string
	// end is what every run of the row comes to, whatever happens to it.
	end policyEnd
	// held changes end for a run that was interrupted, since a model call that was cut off is a turn;
	// nil changes nothing.
	held func(*policyEnd)
	// kept reports whether a run has what the policy keeps, by its last request and its end. Every run
	// of the row has it, also under a build whose agents name no policy; nil means that the policy leaves
	// nothing but the end. before and after are turns whose checkpoints are before and after the policy
	// acted; in says which forks have it.
	kept          func(model.Request, policyEnd) bool
	before, after int
	in            forks
	// next reports whether the next run of the session has what the policy keeps for it, by its last
	// request; nil starts none.
	next func(model.Request) bool
	// checks is how many checks a fork makes of its answer.
	checks int
	// stays means that the held run can't continue as new: it waits for a sub-agent in the foreground.
	stays bool
	// judge is that of each start. says is a message that each run waits for.
	judge *agent.Judge
	says  string
	// resumes are the columns whose runs are parked in the end, until somebody resumes them.
	resumes []string
	// window is how many tokens the model takes; zero means any number.
	window int
}

// forks says which forks of a run have what a policy keeps.
type forks int

const (
	inAfter   forks = iota // only one from after the policy acted: it keeps its state in the conversation or the session
	inBoth                 // it belongs to the agent, or to its principal
	inNeither              // it belongs to one run
)

func (r policyRow) holdPoint() string {
	if r.holdAt != "" {
		return r.holdAt
	}
	return r.at
}

// policyEnd is an end as far as it must be the same for all runs of a row.
type policyEnd struct {
	Status     agent.Status
	Code       agent.Code
	Text       string
	Paid       int // payments of the session, each made once
	Checks     int
	Vetoes     int
	Extensions int
	Limit      int // of turns, if it adapts
	Blockers   string
	Notebook   int // its version
	Todo       int // steps
	Memory     string
	Lessons    int
	Skills     string
	Judged     string // verdicts in the report
	Compacted  string // strategies
	Progress   string
	Merged     string // what its sub-agent has put into its files
	Hooks      string // decisions of checks that look at something else than an answer
}

// completes is the end of a run that pays once and answers.
func completes(more policyEnd) policyEnd {
	more.Status, more.Text, more.Paid = agent.StatusCompleted, "done", max(1, more.Paid)
	return more
}

// turns has a reply for each call, the last one a text.
func turns(text string, calls ...[]testsuite.Call) (replies []testsuite.Reply) {
	for _, c := range calls {
		replies = append(replies, testsuite.Reply{Calls: c})
	}
	return append(replies, testsuite.Reply{Text: text})
}

// hasNote reports whether a request has a message with that note and text.
func hasNote(note agent.Note, text string) func(model.Request, policyEnd) bool {
	return func(r model.Request, _ policyEnd) bool {
		return slices.ContainsFunc(r.Messages, func(m agent.Message) bool { return m.Note == note && strings.Contains(m.Text(), text) })
	}
}

// corrects is hasNote for a correction, which says no more than "Continue." after a suspension.
func corrects(text string) func(model.Request, policyEnd) bool {
	return func(r model.Request, e policyEnd) bool {
		return hasNote(agent.NoteRecovery, text)(r, e) || hasNote(agent.NoteRecovery, "Continue.")(r, e)
	}
}

// hasCall is hasNote for a call of a tool.
func hasCall(tool string) func(model.Request, policyEnd) bool {
	return func(r model.Request, _ policyEnd) bool {
		return slices.ContainsFunc(r.Messages, func(m agent.Message) bool {
			return slices.ContainsFunc(m.ToolCalls(), func(c agent.ToolCall) bool { return c.Tool == tool })
		})
	}
}

// handsOff reports whether a run has ended with a handoff.
func handsOff(_ model.Request, e policyEnd) bool { return e.Blockers != "" }

// checkedBy is a row whose answer is vetoed once.
func checkedBy(name string, c agent.Check) policyRow {
	c.Name = "sum"
	return policyRow{
		name: name, at: "looks", before: 1, after: 3, kept: hasNote(agent.NoteVerify, "not enough"), checks: 1,
		def:     agent.Definition{Tools: []string{"pay"}, Verify: agent.Verify{Checks: []agent.Check{c}}},
		replies: []testsuite.Reply{{Calls: call("pay", nil)}, {Text: "first"}, {Text: "done"}},
		end:     completes(policyEnd{Checks: 2, Vetoes: 1}),
	}
}

// commandOf is a command that blocks once, at the point that the file "block" names.
const commandOf = `f=$(cat block 2>/dev/null) && ! test -e "$f" && : >"$f" && sleep 60; exit 0`

// policyRows are the table: a row for each policy. To add one, name its agent, its point and its end.
func policyRows() []policyRow {
	return slices.Concat(formRows(), hookRows(), checkRows(), judgeRows(), failureRows(), limitRows(), knowledgeRows(), stateRows(), tellingRows(), suspensionRows(), otherRows())
}

// checkRows are those of checks.
func checkRows() []policyRow {
	command := checkedBy("check_command", agent.Check{Command: commandOf})
	command.replies, command.at, command.before, command.after = turns("done", call("pay", nil)), "command", 1, 2
	command.in, command.kept = inBoth, func(_ model.Request, e policyEnd) bool { return e.Checks == 1 } // it accepts, and leaves nothing
	command.end = completes(policyEnd{Checks: 1})
	byAgent := checkedBy("check_agent", agent.Check{Agent: "verifier", Task: "Is it right?"})
	byAgent.stays = true
	judge := agent.Judge{Instructions: "Say what is missing."}
	ofStart := checkedBy("start_judge", agent.Check{Judge: &judge})
	ofStart.judge, ofStart.checks, ofStart.end.Judged = &judge, 0, "veto accept"
	ofStart.def.Verify, ofStart.def.Report = agent.Verify{}, true
	return []policyRow{checkedBy("check_tool", agent.Check{Tool: "check"}), command, byAgent, checkedBy("check_judge", agent.Check{Judge: &agent.Judge{Model: "looks"}}), ofStart}
}

// failureRows are those of recovery and lessons.
func failureRows() []policyRow {
	pay := call("pay", nil)
	return []policyRow{
		{
			name: "unable", at: "turn 2", before: 1, after: 2, in: inNeither, kept: handsOff,
			def:     agent.Definition{Tools: []string{"pay"}, Completion: agent.CompletionTool, Recovery: agent.Recovery{agent.FailureUnable: {Do: agent.RecoverHandoff}}},
			replies: turns("", pay, call(agent.ReturnUnableTool, map[string]any{"blockers": []string{"no key"}, "rationale": "It needs one."})),
			end:     policyEnd{Status: agent.StatusFailed, Code: agent.CodeUnable, Paid: 1, Blockers: "no key"},
		},
		{ // the count of failures is the run's: the second one in a row ends it
			name: "recovery", at: "turn 3", before: 1, after: 3, kept: corrects("Look first."),
			def:     agent.Definition{Tools: []string{"pay", "broken"}, Recovery: agent.Recovery{agent.FailureToolError: {Do: agent.RecoverCorrect, Text: "Look first.", Then: agent.RecoverHandoff}}},
			replies: turns("done", pay, call("broken", nil), call("broken", map[string]any{})),
			end:     policyEnd{Status: agent.StatusFailed, Code: agent.CodeToolFailed, Paid: 1, Blockers: "the tool broken failed: out of order"},
		},
		{
			name: "lessons", at: "turn 3", before: 1, after: 2, kept: hasNote(agent.NoteLessons, "tool_error: "),
			def:     agent.Definition{Tools: []string{"pay", "broken"}, Lessons: true},
			replies: turns("done", pay, call("broken", nil)),
			end:     completes(policyEnd{Lessons: 1}),
		},
	}
}

// limitRows are those of limits and loops.
func limitRows() []policyRow {
	pay, look := call("pay", nil), call("look", nil)
	return []policyRow{
		{ // an interrupt can't hold a handoff, so it comes a turn before
			name: "finalize", at: "last reply", holdAt: "turn 2", before: 1, after: 2, in: inNeither, kept: handsOff,
			def:     agent.Definition{Tools: []string{"pay", "look"}, Limits: agent.Limits{Turns: 2}, OnLimit: agent.LimitActionFinalize},
			replies: turns("done", pay, look),
			end:     policyEnd{Status: agent.StatusFailed, Code: agent.CodeLimitTurns, Text: "Summed up: 2 replies of the script were given.", Paid: 1, Blockers: "the run has made the 2 model calls that limits.turns allows"},
			held:    func(e *policyEnd) { e.Text = "Summed up: 1 replies of the script were given." },
		},
		{
			name: "loops", at: "turn 6", before: 1, after: 6, kept: corrects("Stop that."),
			def: agent.Definition{
				Tools: []string{"pay", "look", "listen"}, LoopDetection: agent.LoopDetection{Cycles: 2},
				Recovery: agent.Recovery{agent.FailureLoop: {Do: agent.RecoverCorrect, Text: "Stop that."}},
			},
			replies: turns("done", pay, look, call("listen", nil), look, call("listen", nil)),
			end:     completes(policyEnd{}),
		},
		{
			name: "adaptive", at: "turn 3", before: 1, after: 3, in: inNeither,
			kept:    func(_ model.Request, e policyEnd) bool { return e.Limit > 2 },
			def:     agent.Definition{Tools: []string{"pay"}, Limits: agent.Limits{Adaptive: &agent.AdaptiveLimit{Initial: 2, Max: 8, ExtendBy: 2}}},
			replies: turns("done", pay, call("pay", map[string]any{}), pay),
			end:     completes(policyEnd{Paid: 3, Extensions: 1, Limit: 4}),
			held:    func(e *policyEnd) { e.Extensions, e.Limit = 2, 6 },
		},
	}
}

// knowledgeRows are those of what agents keep.
func knowledgeRows() []policyRow {
	pay := call("pay", nil)
	return []policyRow{
		{
			name: "skills", at: "turn 3", before: 1, after: 2,
			kept:    func(r model.Request, _ policyEnd) bool { return strings.Contains(r.Instructions, "The words of ship.") },
			def:     agent.Definition{Tools: []string{"pay", "look"}, Skills: []string{"ship"}},
			replies: turns("done", pay, call(agent.SkillTool, map[string]any{"name": "ship"})),
			end:     completes(policyEnd{Skills: "skill.activated ship model"}),
		},
		{
			name: "notebook", at: "turn 3", before: 1, after: 2, kept: func(_ model.Request, e policyEnd) bool { return e.Notebook == 1 },
			def:     agent.Definition{Tools: []string{"pay"}, Notebook: &agent.NotebookPolicy{}},
			replies: turns("done", pay, notes(map[string]any{"goals": []string{"pay"}, "facts": fact("it is paid", "t1.1")})),
			end:     completes(policyEnd{Notebook: 1}),
		},
		{ // a memory belongs to the agent and the principal, and not to a session
			name: "memory", at: "memory", before: 1, after: 2, in: inBoth, kept: func(_ model.Request, e policyEnd) bool { return e.Memory == "one\n" },
			def:     agent.Definition{Tools: []string{"pay", agent.MemoryTool}},
			replies: turns("done", pay, remembers("create", "/memories/a.md", "file_text", "one\n")),
			end:     completes(policyEnd{Memory: "one\n"}),
		},
	}
}

// tellingRows are those of reminders, of what a model tells people, and of a conversation that is compacted.
func tellingRows() []policyRow {
	pay, report := call("pay", nil), func(state agent.TodoState, more map[string]any) []testsuite.Call {
		more["entries"] = []map[string]any{{"text": "pay", "state": state}}
		return call(agent.ReportProgressTool, more)
	}
	reads := func(n int) []testsuite.Call { return call("read", map[string]any{"page": n}) }
	return []policyRow{
		{
			name: "reminders", at: "turn 2", before: 1, after: 2, in: inBoth, kept: hasNote(agent.NoteReminders, "Pay once."),
			def:     agent.Definition{Tools: []string{"pay"}, Reminders: []agent.Reminder{{Text: "Pay once."}}},
			replies: turns("done", pay),
			end:     completes(policyEnd{}),
		},
		{ // the second report adds to the first, which the other worker knows by the run's state
			name: "progress", at: "turn 3", before: 1, after: 2, in: inNeither, kept: func(_ model.Request, e policyEnd) bool { return e.Progress != "" },
			def:     agent.Definition{Tools: []string{"pay", agent.ReportProgressTool}},
			replies: turns("done", pay, report(agent.TodoInProgress, map[string]any{"message": "paying"}), report(agent.TodoDone, map[string]any{"replace": false})),
			end:     completes(policyEnd{Progress: "paying 1/1"}),
		},
		{ // its worker is killed, and it is interrupted, while it waits for the message
			name: "wait_for_user", at: "waits", says: "Go on.", before: 1, after: 2, kept: hasCall(agent.WaitForUserTool),
			def:     agent.Definition{Tools: []string{"pay", agent.WaitForUserTool}},
			replies: turns("done", pay, call(agent.WaitForUserTool, nil)),
			end:     completes(policyEnd{}),
		},
		{ // the replies are rules: after the compaction the conversation does not say how many were given
			name: "compaction", at: "sums up", window: 2800, before: 1, after: 4, kept: hasNote(agent.NoteSummary, "Summed up by hand."),
			def: agent.Definition{Tools: []string{"pay", "read"}, AwaitResumption: new(bool), Compaction: agent.CompactionPolicy{Strategy: agent.CompactionCustom, Tool: "sum_up", KeepLast: 2}}, // the window is that of two tools
			replies: []testsuite.Reply{
				{Match: "^go$", Calls: pay}, {Match: "^paid$", Calls: reads(1)}, {Match: "^page 1", Calls: reads(2)}, {Match: "^page 2", Text: "done"},
			},
			end: completes(policyEnd{Compacted: "custom"}),
		},
	}
}

// suspensionRows are those of what follows a suspension: the run's own, and that of a sub-agent for which a call waits.
func suspensionRows() []policyRow {
	pay, own := call("pay", nil), map[string]any{"child": sessionInReplies + "/parker-1"}
	return []policyRow{
		{ // the other worker's agent has other instructions, which the run reads when the message has come
			name: "refresh_on_resume", at: "waits", says: "Go on.", before: 1, after: 2, in: inBoth,
			kept: func(r model.Request, _ policyEnd) bool {
				build := "a"
				if strings.HasSuffix(r.Call.Session, columnKill) || strings.HasSuffix(r.Call.Session, columnHold) {
					build = "b"
				}
				return strings.HasPrefix(r.Instructions, instructionsOf(build))
			},
			def:     agent.Definition{Tools: []string{"pay", agent.WaitForUserTool}, RefreshOnResume: true},
			replies: turns("done", pay, call(agent.WaitForUserTool, nil)),
			end:     completes(policyEnd{}),
		},
		{ // the call has returned, since the sub-agent is suspended; the model resumes it
			name: "on_child_suspend", at: "turn 3", before: 1, after: 2, stays: true,
			kept: func(r model.Request, _ policyEnd) bool {
				return slices.ContainsFunc(resultsIn(r), func(text string) bool { return strings.Contains(text, `"suspended"`) })
			},
			def:     agent.Definition{Tools: []string{"pay"}, Agents: []agent.SubAgent{{Agent: "parker"}}, OnChildSuspend: agent.ChildSuspendReturn},
			replies: turns("done", pay, call("subagent__parker", map[string]any{"task": "park"}), call("subagent_resume", own), call("subagent_wait", nil)),
			end:     completes(policyEnd{}),
		},
	}
}

// otherRows are those of options of a turn, roles and the list of steps.
func otherRows() []policyRow {
	pay, look := call("pay", nil), call("look", nil)
	return []policyRow{
		{
			name: "turns", at: "turn 3", before: 1, after: 2,
			kept: func(r model.Request, _ policyEnd) bool { return slices.Contains(offered(r), "pay") },
			def: agent.Definition{
				Tools: []string{"pay", "look"}, ToolSearch: &agent.ToolSearch{Always: []string{"look"}}, StopAfter: []string{"pay"},
				TurnPolicy: &agent.TurnPolicy{MaxProseChars: 80}, TimestampMessages: true,
			},
			replies: turns("", look, call(agent.ToolSearchTool, map[string]any{"query": "pays an invoice"}), pay),
			end:     policyEnd{Status: agent.StatusCompleted, Text: "paid", Paid: 1},
		},
		{
			name: "role", at: "turn 2", before: 1, after: 2, in: inBoth,
			kept: func(r model.Request, _ policyEnd) bool {
				return strings.HasPrefix(r.Instructions, "You are a reviewer.")
			},
			def:     agent.Definition{Tools: []string{"pay"}, Role: "reviewer"},
			replies: turns("done", pay),
			end:     completes(policyEnd{}),
		},
		{
			name: "todo", at: "turn 3", before: 1, after: 2, kept: func(_ model.Request, e policyEnd) bool { return e.Todo == 1 },
			def:     agent.Definition{Tools: []string{"pay", agent.TodoTool}},
			replies: turns("done", pay, call(agent.TodoTool, map[string]any{"items": []map[string]any{{"text": "pay", "state": "done"}}})),
			end:     completes(policyEnd{Todo: 1}),
		},
	}
}
