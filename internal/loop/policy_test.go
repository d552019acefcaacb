package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// What no rule of an agent matches is decided by its rule for all else, and the agents above
// have their own: the strictest of all counts. What a tool asks for itself is never weakened.
func TestRulings(t *testing.T) {
	allow, ask, deny := agent.Rule{Do: agent.RulingAllow}, agent.Rule{Do: agent.RulingAsk}, agent.Rule{Do: agent.RulingDeny}
	otherwise := func(do agent.Ruling) agent.Rule { return agent.Rule{Do: do, Otherwise: true} }
	late := agent.Rule{Do: agent.RulingAllow, AfterCalls: 2}
	ana, bo := agent.Rule{Do: agent.RulingAsk, Approvers: []string{"ana"}}, &agent.ToolApproval{Approvers: []string{"bo"}}
	anybody := &agent.ToolApproval{}
	for name, c := range map[string]struct {
		above, own []agent.Rule
		matches    []int // of the rules one after the other, with one that closes those above
		made       int
		tool       *agent.ToolApproval
		want       agent.Ruling
		approvers  []string
	}{
		"nothing is said":                      {want: ""},
		"what a rule allows is made":           {own: []agent.Rule{allow, otherwise(agent.RulingAsk)}, matches: []int{0, 1}, want: agent.RulingAllow},
		"what no rule matches is asked for":    {own: []agent.Rule{allow, otherwise(agent.RulingAsk)}, matches: []int{1}, want: agent.RulingAsk},
		"or denied":                            {own: []agent.Rule{allow, otherwise(agent.RulingDeny)}, matches: []int{1}, want: agent.RulingDeny},
		"a rule that does not count yet":       {own: []agent.Rule{late, otherwise(agent.RulingDeny)}, matches: []int{0, 1}, made: 1, want: agent.RulingDeny},
		"and does now":                         {own: []agent.Rule{late, otherwise(agent.RulingDeny)}, matches: []int{0, 1}, made: 2, want: agent.RulingAllow},
		"an ancestor's allows nothing here":    {above: []agent.Rule{allow}, own: []agent.Rule{otherwise(agent.RulingDeny)}, matches: []int{0, 1, 2}, want: agent.RulingDeny},
		"an ancestor's default holds here":     {above: []agent.Rule{otherwise(agent.RulingDeny)}, own: []agent.Rule{allow}, matches: []int{0, 1}, want: agent.RulingDeny},
		"the strictest default":                {above: []agent.Rule{otherwise(agent.RulingDeny)}, own: []agent.Rule{otherwise(agent.RulingAsk)}, matches: []int{0, 1}, want: agent.RulingDeny},
		"an ancestor's rule speaks for itself": {above: []agent.Rule{allow, otherwise(agent.RulingDeny)}, own: []agent.Rule{otherwise(agent.RulingAsk)}, matches: []int{0, 1, 2}, want: agent.RulingAsk},
		"a tool asks by itself":                {tool: anybody, want: agent.RulingAsk},
		"whatever is allowed":                  {own: []agent.Rule{allow}, matches: []int{0}, tool: anybody, want: agent.RulingAsk},
		"and is denied by a rule":              {own: []agent.Rule{deny}, matches: []int{0}, tool: bo, want: agent.RulingDeny},
		"a rule makes it stricter":             {own: []agent.Rule{ana}, matches: []int{0}, tool: anybody, want: agent.RulingAsk, approvers: []string{"ana"}},
		"its own approvers count":              {own: []agent.Rule{ana}, matches: []int{0}, tool: bo, want: agent.RulingAsk, approvers: []string{"bo"}},
		"before anybody":                       {own: []agent.Rule{ask}, matches: []int{0}, tool: bo, want: agent.RulingAsk, approvers: []string{"bo"}},
	} {
		s := &step{State: State{Spec: &agent.Spec{Definition: agent.Definition{Rules: mergeRules(c.above, c.own)}}}}
		rule, _ := s.ruling(c.matches, c.made, agent.ToolSpec{Name: "pay", Approval: c.tool})
		require.Equal(t, c.want, rule.Do, name)
		require.Equal(t, c.approvers, rule.Approvers, name)
	}
}
