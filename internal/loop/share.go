package loop

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// How limits bound a tree. A run's limits hold for it and for all below it. A sub-agent is
// granted a part of what is left at its birth, and what it has not used comes back with
// its end. In between nothing is said, unless something runs short:
//
//   - A run with little left asks the parent for more, early enough that it need not
//     rest. If it has nothing left, it rests until it is granted something.
//   - The parent grants from what it has; else it asks above in turn. If its own limit
//     is what bounds it, it wants back what the others below have not used.
//   - When all is used, the run whose limit it is fails or asks, as its Spec says.
//
// A run takes all of this whatever it is at: held, parked, resting, between executions. So
// a parent that waits for a child grants to it. Which of these a run does, and why nobody
// waits in a circle, stands in reckon.go.

// moreToCome is how many parts are left over for each sub-agent of earlier turns that is at
// work: so maxWorking of them, begun one after the other, leave a quarter of what there was.
const moreToCome = 4

// delegates counts the calls that wait to be given to sub-agents.
func (s *State) delegates() (n int64) {
	for _, c := range s.Calls.List {
		if tool, _ := s.Spec.Tool(c.Tool); c.State == Waiting && tool.By == agent.BySubAgent {
			n++
		}
	}
	return n
}

// mayDelegate reports whether it is decided if one more agent may be started.
func (s *State) mayDelegate() bool {
	k := s.reckon()
	return k.left(agent.ResourceAgents) > 0 || s.noMoreAgents(k)
}

// noMoreAgents reports whether no limit above or here allows another agent.
func (s *State) noMoreAgents(k reckoning) bool {
	return k.exhausted(agent.ResourceAgents) || k.Above != nil && k.Above.Denied
}

// levels is how many runs may stand below this one.
func (s *State) levels() int {
	levels := s.Budget.Limits.Depth
	if b := s.Parent.Birth; b != nil {
		levels = min(levels, b.Levels)
	}
	return levels
}

// grantFor opens the account of a sub-agent that is started; nil if nothing bounds it.
func (s *step) grantFor(session string, sub agent.SubAgent) *agent.Amounts {
	parts := s.delegates() // as many as are granted now stay with the run
	for _, c := range s.Calls.List {
		if tool, _ := s.Spec.Tool(c.Tool); tool.By == agent.BySubAgent {
			parts++
		}
	}
	for _, a := range s.Ledger.Accounts { // the more are at work already, the more may come
		if c := s.Children.List[s.Children.find(a.Session)]; s.Calls.find(c.By) < 0 {
			parts += moreToCome
		}
	}
	grant := s.reckon().atBirth(parts, sub.Limits.Amounts())
	s.Ledger.open(session, grant)
	if grant == (agent.Limits{}).Amounts() {
		return nil
	}
	return &grant
}

// atBirth is what one of some sub-agents is granted at its birth, when so many parts are
// made of what is left; lower is what its own limits allow.
func (k reckoning) atBirth(parts int64, lower agent.Amounts) (grant agent.Amounts) {
	for r := range agent.Resources {
		left := k.left(r)
		switch {
		case left == plenty:
			grant[r] = agent.NotBounded
			continue
		case left <= 0:
			continue
		case r == agent.ResourceAgents:
			grant[r] = 1 + (left-1)/parts
		case r.Shared():
			grant[r] = max(1, left/parts)
		default:
			grant[r] = left
		}
		if lower[r] != agent.NotBounded {
			grant[r] = min(grant[r], lower[r])
		}
	}
	return grant
}

// closeAccount takes what a sub-agent has used that has ended.
func (s *step) closeAccount(c Child, o *agent.Outcome) {
	switch {
	case o.Tree.Agents > 0:
		s.Ledger.close(c.Session, &o.Tree)
	case !c.Started && o.Status == agent.Failed: // it never was
		s.Ledger.close(c.Session, &agent.Tally{})
	default:
		s.Ledger.close(c.Session, nil)
	}
}

// heardShare takes what a sub-agent says of its account, and reports whether that is news.
// One that asks and has not heard of all that it was granted is told again.
func (s *step) heardShare(r agent.ChildReport) bool {
	i := s.Ledger.find(r.Session)
	if c := s.Children.find(r.Session); r.Share == nil || i < 0 || !s.Children.List[c].Started {
		return false // it can be told nothing yet
	}
	s.resumed.Cause = agent.Initiator(firstOf(string(s.resumed.Cause), string(agent.ByTriggered)))
	news, behind := s.Ledger.heard(i, *r.Share)
	if behind && !s.over() {
		s.tellGrant(i, false, false)
	}
	return news || behind
}

// shareReport is what the parent is told of the run's account.
func (s *step) shareReport() *agent.ShareReport {
	r := &agent.ShareReport{Spent: s.treeTally()}
	if a := s.Ledger.Above; a != nil {
		r.Granted, r.Returned = a.Granted, a.Returned
		wants, level := s.wantsAbove()
		for n := range wants {
			if a.Asked[n] > 0 {
				r.Wants[n], r.Rests[n] = wants[n], level[n]/askDry
			}
		}
	}
	return r
}

func (s *step) askAbove() {
	_, level := s.wantsAbove()
	s.Ledger.asks(level)
	s.tellShare()
}

// tellShare tells the parent of the run's account alone: the report has no number, so
// that it is not taken for one of how the run stands.
func (s *step) tellShare() {
	b := s.Parent.Birth
	s.do(TellParent{Session: b.Parent.Session, Report: agent.ChildReport{
		Run: b.Parent.Run, Session: s.Session, From: s.Run, Status: s.Status(), Share: s.shareReport(),
	}})
}

func (s *step) grantBelow() {
	i, more := s.served()
	s.Ledger.grant(i, more)
	s.Children.granted(s.Ledger.Accounts[i].Session)
	s.tellGrant(i, false, false)
}

// tellGrant tells a sub-agent what it was granted in all.
func (s *step) tellGrant(i int, recall, denied bool) {
	a := s.Ledger.Accounts[i]
	c := s.Children.List[s.Children.find(a.Session)]
	s.do(GrantChild{Session: a.Session, Order: agent.GrantOrder{Run: c.Run, From: s.Run, Granted: a.Granted, Recall: recall, Denied: denied}})
}

func (s *step) denyBelow() {
	i := s.denied()
	s.Ledger.deny(i)
	s.tellGrant(i, false, true)
}

func (s *step) recallBelow() {
	i := s.recalled()
	s.Ledger.recall(i)
	s.tellGrant(i, true, false)
}

func (s *step) giveBack() {
	s.Ledger.gives(s.reckon().returnable(), !s.awaitsReturns())
	s.askAbove()
}

// takeGrant takes what the parent says of what the run may use.
func (s *step) takeGrant(o agent.GrantOrder) error {
	switch {
	case s.over():
		return s.refuse("the run is ending")
	case o.Run != s.Run:
		return s.refuse("a grant from above is for run %s", o.Run)
	case !s.Parent.is(o.From):
		return s.refuse("a grant from above is from run %s, which did not start this one", o.From)
	case s.Ledger.Above == nil:
		return s.refuse("no limit above bounds the run")
	}
	s.resumed = agent.Resumed{Cause: agent.ByParent}
	if !s.Ledger.takeGrant(o) {
		return s.refuse("what was granted is known")
	}
	return nil
}

// maxProgress bounds how many agents a question about a limit tells of.
const maxProgress = 20

// progress tells how far the run and those below it have come.
func (s *step) progress() string {
	if len(s.Children.List) == 0 {
		return ""
	}
	t := s.treeTally()
	lines := []string{
		fmt.Sprintf("The tree: %d agents, %d model calls, %d tokens, %s USD, %s of work.", t.Agents, t.Turns, t.Usage.Total(), t.Cost, s.Budget.Worked.Round(time.Second)),
		fmt.Sprintf("%s: %d model calls, %d tokens, %s USD.", s.Session, s.ownTurns(), s.Budget.Usage.Total(), s.Budget.Cost),
	}
	for n, c := range s.Children.List {
		if n == maxProgress {
			lines = append(lines, fmt.Sprintf("and %d more.", len(s.Children.List)-n))
			break
		}
		used := agent.Tally{}
		if c.Outcome != nil {
			used = c.Outcome.Tree
		} else if i := s.Ledger.find(c.Session); i >= 0 {
			used = s.Ledger.Accounts[i].Spent
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %d model calls, %d tokens, %s USD; %s", c.Session, c.Status, used.Turns, used.Usage.Total(), used.Cost, quote(c.Task)))
	}
	return strings.Join(lines, "\n")
}

// shareReasons is the grant that the run waits for.
func (s *State) shareReasons() reasons {
	if !s.short() {
		return nil
	}
	return reasons{{kind: agent.AwaitingBudget, owner: agent.OwnedByRuntime, finds: []string{"budget"}}}
}
