package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// hookRows are those of the hooks of a turn, of a suspension and of a resume. Judges of calls and of a
// run's task are in judgeRows.
func hookRows() []policyRow { return slices.Concat(turnHookRows(), suspensionHookRows()) }

// turnDecisions are what the hooks of turnHookRows decide after the second turn. The key is the hook's
// name, its tool's name, and its row's.
var turnDecisions = map[string]agent.TurnDecision{
	"after_turn":      {Action: agent.TurnExtend, Until: 7, Reason: "it gets on", Message: "Look no more.", Next: &agent.NextTurn{Tools: []string{"pay"}}},
	"after_turn_ask":  {Action: agent.TurnAsk, Reason: "Is it enough?"},
	"after_turn_fail": {Action: agent.TurnFail, Failure: agent.FailurePolicyViolation, Reason: "it looks around"},
	"after_turn_stop": {Action: agent.TurnStop, Reason: "enough"},
}

// hookTools are the tools of hookRows.
func (w *policyWorld) hookTools() []tool.Tool {
	around := func(ctx context.Context, c *tool.Call, h agent.SuspensionHook) (agent.Verdict, error) {
		v := agent.Verdict{Decision: agent.DecisionAccept}
		switch {
		case h.Point == agent.PointBeforeSuspension && h.Suspension.Turn == 2:
			v = agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "not now"}
		case h.Point == agent.PointBeforeResume:
			v.Text = "The hook says: go on."
		}
		return v, w.reach(ctx, c.Session, string(h.Point))
	}
	tools := []tool.Tool{tool.New("around", "looks at suspensions and resumes", around, readOnly)}
	for name, d := range turnDecisions {
		decide := func(ctx context.Context, c *tool.Call, r agent.TurnReport) (agent.TurnDecision, error) {
			if r.Turn != 2 {
				return agent.TurnDecision{}, nil
			}
			return d, w.reach(ctx, c.Session, name)
		}
		tools = append(tools, tool.New(name, "looks at turns", decide, readOnly))
	}
	return tools
}

// decided says what a check has decided. It is empty for a check of an answer, which the outcome counts,
// and for one that was cut off or failed and is made again. A hook that only gets to know may fail.
func decided(u *agent.CheckUpdate) string {
	switch {
	case u.Point == agent.PointVerify, u.Error != "" && !u.Point.Tells():
		return ""
	case u.Error != "":
		return fmt.Sprintf("%s: failed; ", u.Point)
	case u.Skipped:
		return fmt.Sprintf("%s: skipped; ", u.Point)
	case u.Decision != nil && u.Decision.Action == "":
		return fmt.Sprintf("%s: none; ", u.Point)
	case u.Decision != nil:
		return fmt.Sprintf("%s: %s; ", u.Point, u.Decision.Action)
	case u.Verdict != nil:
		return fmt.Sprintf("%s: %s; ", u.Point, u.Verdict.Decision)
	}
	return ""
}

// hasDecided reports whether the log has a decision, as [decided] says it.
func hasDecided(point agent.CheckPoint, decision string) func(model.Request, policyEnd) bool {
	return func(_ model.Request, e policyEnd) bool {
		return strings.Contains(e.Hooks, fmt.Sprintf("%s: %s; ", point, decision))
	}
}

// turnHookRows are those of hooks.after_turn. Each row's worker is killed, and its run interrupted,
// while the hook looks at the second turn.
func turnHookRows() []policyRow {
	pay, look := call("pay", nil), call("look", nil)
	row := func(name string) policyRow {
		return policyRow{
			name: name, at: name, before: 1, after: 3,
			def:     agent.Definition{Tools: []string{"pay", "look"}, Hooks: agent.Hooks{AfterTurn: agent.TurnHooks{Checks: []agent.Check{{Name: name, Tool: name}}}}},
			replies: turns("done", pay, look, look),
		}
	}
	// The limit moves, the model reads a message, and look is not offered in the third turn.
	steers := row("after_turn")
	steers.def.Limits.Adaptive = &agent.AdaptiveLimit{Initial: 2, Max: 8, ExtendBy: 2}
	steers.kept = hasNote(agent.NoteHook, "Look no more.")
	steers.end = completes(policyEnd{Extensions: 1, Limit: 7, Hooks: "after_turn: none; after_turn: extend; after_turn: none; "})
	asks := row("after_turn_ask")
	asks.says, asks.kept = "Go on.", hasDecided(agent.PointAfterTurn, "ask")
	asks.end = completes(policyEnd{Hooks: "after_turn: none; after_turn: ask; after_turn: none; "})
	fails := row("after_turn_fail")
	fails.after, fails.in, fails.kept = 2, inNeither, handsOff
	fails.end = policyEnd{Status: agent.StatusFailed, Code: agent.CodeDenied, Paid: 1, Blockers: "a policy was broken, says the check after_turn_fail: it looks around", Hooks: "after_turn: none; after_turn: fail; "}
	stops := row("after_turn_stop")
	stops.after, stops.in, stops.kept = 2, inNeither, hasDecided(agent.PointAfterTurn, "stop")
	stops.end = policyEnd{Status: agent.StatusStopped, Paid: 1, Hooks: "after_turn: none; after_turn: stop; "}
	return []policyRow{steers, asks, fails, stops}
}

// hookTime is how long a hook may work. A run must be interrupted, and its worker killed, within it. After the
// kill another worker calls the hook when it is over.
const hookTime = 20 * time.Second

// suspensionHookRows are those of hooks around a suspension and a resume. Each row's worker is killed,
// and its run interrupted, while the hook works.
func suspensionHookRows() []policyRow {
	pay, look := call("pay", nil), call("look", nil)
	waits := call(agent.WaitForUserTool, nil)
	park := func(conditions map[string]any) []testsuite.Call {
		return call(agent.AwaitResumptionTool, map[string]any{"reason": "rates", "conditions": conditions})
	}
	until := map[string]any{} // somebody resumes it
	soon := map[string]any{"after": "1s", "on_timeout": "resume_with_input", "input": "It is time."}
	hook := agent.HookList{Checks: []agent.Check{{Name: "around", Tool: "around", Timeout: agent.Duration(hookTime)}}}
	tools := []string{"pay", "look", agent.AwaitResumptionTool, agent.WaitForUserTool}
	return []policyRow{
		{ // it denies the park of the second turn, and allows that of the third one; an interrupt lets the first one be, too
			name: "before_suspension", at: "before_suspension", resumes: []string{columnHold}, before: 1, after: 3, kept: hasDecided(agent.PointBeforeSuspension, "accept"),
			def:     agent.Definition{Tools: tools, Hooks: agent.Hooks{BeforeSuspension: hook}},
			replies: turns("done", pay, park(until), park(soon)),
			end:     completes(policyEnd{Hooks: "before_suspension: veto; before_suspension: accept; "}),
			held:    func(e *policyEnd) { e.Hooks = "before_suspension: accept; " },
		},
		{ // an interrupt cuts the hook off, and the suspension is the same: the hook is not called again
			name: "after_suspension", at: "after_suspension", says: "Go on.", before: 1, after: 3,
			kept:    func(_ model.Request, e policyEnd) bool { return e.Hooks != "" },
			def:     agent.Definition{Tools: tools, Hooks: agent.Hooks{AfterSuspension: hook}},
			replies: turns("done", pay, waits, look),
			end:     completes(policyEnd{Hooks: "after_suspension: accept; "}),
			held:    func(e *policyEnd) { e.Hooks = "after_suspension: failed; " },
		},
		{ // the interrupt refuses the resume: then the hook is asked about the end of the interrupt, and of the park
			name: "before_resume", at: "before_resume", resumes: []string{columnCalm, columnHold}, before: 1, after: 3, kept: hasNote("", "The hook says: go on."),
			def:     agent.Definition{Tools: tools, Hooks: agent.Hooks{BeforeResume: hook}},
			replies: turns("done", pay, park(until), look),
			end:     completes(policyEnd{Hooks: "before_resume: accept; "}),
			held:    func(e *policyEnd) { e.Hooks += e.Hooks },
		},
		{
			name: "after_resume", at: "after_resume", before: 1, after: 3, kept: hasDecided(agent.PointAfterResume, "accept"),
			def:     agent.Definition{Tools: tools, Hooks: agent.Hooks{AfterResume: hook}},
			replies: turns("done", pay, park(soon), look),
			end:     completes(policyEnd{Hooks: "after_resume: accept; "}),
		},
	}
}
