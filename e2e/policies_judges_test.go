package e2e

import "github.com/fermata-agents/fermata/agent"

// judgeRows are those of when a judge is asked: passed over after a veto, in every second turn, when the
// run repeats itself, and before the run.
func judgeRows() []policyRow {
	pay, look := call("pay", nil), call("look", nil)
	judge := &agent.Judge{Model: "looks"}
	cadence := checkedBy("cadence", agent.Check{Judge: judge, Cadence: agent.Cadence{Every: 2, MaxInvocations: 1}})
	cadence.end = completes(policyEnd{Checks: 1, Vetoes: 1})
	cadence.checks = 0 // a fork answers in its first turn
	return []policyRow{
		cadence,
		{ // the first call is vetoed, and the next one is not looked at: after an interrupt that is the payment
			name: "skip", at: "looks", before: 1, after: 2,
			def: agent.Definition{Tools: []string{"pay", "look"}, Hooks: agent.Hooks{
				BeforeCalls: agent.CallHooks{Checks: []agent.Check{{Name: "plan", Judge: judge, Skip: agent.Skip{Attempts: 1}}}},
			}},
			replies: turns("done", look, look, pay),
			end:     completes(policyEnd{}),
		},
		{ // an interrupt skips the calls, and the run goes on without the judge
			name: "stalled", at: "looks", before: 2, after: 4,
			def: agent.Definition{Tools: []string{"pay", "look"}, Verify: agent.Verify{
				Checks: []agent.Check{{Name: "done", Judge: judge, Cadence: agent.Cadence{When: agent.CadenceStalled}}},
			}},
			replies: turns("done", pay, look, look, look),
			end:     policyEnd{Status: agent.StatusCompleted, Paid: 1, Checks: 1},
			held:    func(e *policyEnd) { e.Text, e.Checks = "done", 0 },
		},
		{
			name: "guard", at: "looks", before: 1, after: 1,
			def:     agent.Definition{Tools: []string{"pay"}, Hooks: agent.Hooks{BeforeRun: agent.RunHooks{Checks: []agent.Check{{Name: "guard", Judge: judge}}}}},
			replies: turns("done", pay),
			end:     completes(policyEnd{}),
		},
	}
}
