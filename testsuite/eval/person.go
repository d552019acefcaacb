package eval

import (
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
)

// By is who answers, as the runs record it.
const By = "evaluation"

// Player returns the person as the test kit plays it. m answers questions that no rule
// matches; nil leaves them open.
func (p *Person) Player(m model.Model) *testsuite.Person {
	if p == nil {
		p = &Person{}
	}
	player := &testsuite.Person{By: By, MaxReplies: firstInt(p.MaxReplies, defaultMaxReplies), Model: m, Goal: p.Goal}
	for _, r := range p.Rules {
		player.Rules = append(player.Rules, testsuite.PersonRule{
			Type: r.Type, Agent: r.Agent, Tool: r.Tool, Match: r.Match, Times: r.Times, Approve: r.Approve, Arguments: r.Arguments,
			Reject: r.Reject, Text: r.Text, Choice: r.Choice, Data: r.Data, Ignore: r.Ignore, Stop: r.Stop, Fail: r.Fail,
		})
	}
	return player
}
