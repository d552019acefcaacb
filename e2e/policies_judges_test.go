package e2e

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// judgeRows are those of when a judge is asked: passed over after a veto, in every second turn, when the
// run repeats itself, and before the run.
func judgeRows() []policyRow {
	pay, look, listen := call("pay", nil), call("look", nil), call("listen", nil)
	judge := &agent.Judge{Model: "looks"}
	cadence := checkedBy("cadence", agent.Check{Judge: judge, Cadence: agent.Cadence{Every: 2, MaxInvocations: 1}})
	cadence.end = completes(policyEnd{Checks: 1, Vetoes: 1})
	cadence.checks = 0 // a fork answers in its first turn
	return []policyRow{
		cadence,
		{ // a call is accepted, the next one vetoed, and the one after it not looked at; an interrupt skips the first one
			name: "skip", at: "looks", before: 1, after: 3, kept: hasDecided(agent.PointBeforeCalls, "skipped"),
			def: agent.Definition{Tools: []string{"pay", "look", "listen"}, Hooks: agent.Hooks{
				BeforeCalls: agent.CallHooks{Checks: []agent.Check{{Name: "plan", Judge: judge, Skip: agent.Skip{Attempts: 1}}}},
			}},
			replies: turns("done", listen, look, look, pay),
			end:     completes(policyEnd{Hooks: "before_calls: accept; before_calls: veto; before_calls: skipped; before_calls: accept; "}),
			held:    func(e *policyEnd) { e.Hooks = strings.TrimPrefix(e.Hooks, "before_calls: accept; ") },
		},
		{ // an interrupt skips the calls, and the judge is asked when the run repeats itself again
			name: "stalled", at: "looks", before: 2, after: 4, kept: hasDecided(agent.PointStalled, "accept"),
			def: agent.Definition{Tools: []string{"pay", "look", "listen"}, Verify: agent.Verify{
				Checks: []agent.Check{{Name: "done", Judge: judge, Cadence: agent.Cadence{When: agent.CadenceStalled}}},
			}},
			replies: turns("done", pay, look, look, look, listen, look, look, look),
			end:     policyEnd{Status: agent.StatusCompleted, Paid: 1, Checks: 1, Hooks: "stalled: accept; "},
		},
		{ // it looks at each run's task before the run's first checkpoint: a fork has the run's verdict, and its own
			name: "guard", at: "looks", before: 1, after: 1, in: inBoth,
			kept: func(r model.Request, e policyEnd) bool {
				looked := 1
				if forked(r.Call.Session) {
					looked = 2
				}
				return strings.Count(e.Hooks, "before_run: accept; ") == looked
			},
			def:     agent.Definition{Tools: []string{"pay"}, Hooks: agent.Hooks{BeforeRun: agent.RunHooks{Checks: []agent.Check{{Name: "guard", Judge: judge}}}}},
			replies: turns("done", pay),
			end:     completes(policyEnd{Hooks: "before_run: accept; "}),
		},
	}
}
