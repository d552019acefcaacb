package loop

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
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

// pendingDelegations counts the calls that wait to be given to sub-agents.
func (s *State) pendingDelegations() (n int64) {
	for _, c := range s.Calls.List {
		if tool, _ := s.Spec.Tool(c.Tool); c.State == CallPending && tool.Executor == agent.ExecutorSubAgent {
			n++
		}
	}
	return n
}

// mayDelegate reports whether it is decided if one more agent may be started.
func (s *State) mayDelegate() bool {
	k := s.budgetView()
	return k.remaining(wire.ResourceAgents) > 0 || s.noMoreAgents(k)
}

// noMoreAgents reports whether no limit above or here allows another agent.
func (s *State) noMoreAgents(k budgetView) bool {
	return k.exhausted(wire.ResourceAgents) || k.FromParent != nil && k.FromParent.Denied
}

// levelsBelow is how many runs may stand below this one.
func (s *State) levelsBelow() int {
	levels := s.Budget.Limits.Depth
	if b := s.Parent.Start; b != nil {
		levels = min(levels, b.MaxDepth)
	}
	return levels
}

// grantFor opens the account of a sub-agent that is started; nil if nothing bounds it.
func (s *step) grantFor(session string, sub agent.SubAgent) *wire.Amounts {
	parts := s.pendingDelegations() // as many as are granted now stay with the run
	for _, c := range s.Calls.List {
		if tool, _ := s.Spec.Tool(c.Tool); tool.Executor == agent.ExecutorSubAgent {
			parts++
		}
	}
	for _, a := range s.Ledger.Accounts { // the more are at work already, the more may come
		if c := s.Children.List[s.Children.find(a.Session)]; s.Calls.find(c.StartedBy) < 0 {
			parts += moreToCome
		}
	}
	grant := s.budgetView().startGrant(parts, wire.LimitAmounts(sub.Limits))
	s.Ledger.open(session, grant)
	if grant == wire.LimitAmounts(agent.Limits{}) {
		return nil
	}
	return &grant
}

// startGrant is what one of some sub-agents is granted at its birth, when so many parts are
// made of what is left; lower is what its own limits allow.
func (k budgetView) startGrant(parts int64, lower wire.Amounts) (grant wire.Amounts) {
	for r := range wire.Resources {
		left := k.remaining(r)
		switch {
		case left == unlimited:
			grant[r] = wire.Unlimited
			continue
		case left <= 0:
			continue
		case r == wire.ResourceAgents:
			grant[r] = 1 + (left-1)/parts
		case r.Shared():
			grant[r] = max(1, left/parts)
		default:
			grant[r] = left
		}
		if lower[r] != wire.Unlimited {
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
	case !c.Started && o.Status == agent.StatusFailed: // it never was
		s.Ledger.close(c.Session, &agent.Tally{})
	default:
		s.Ledger.close(c.Session, nil)
	}
}

// childBudgetReported takes what a sub-agent says of its account, and reports whether that is news.
// One that asks and has not heard of all that it was granted is told again.
func (s *step) childBudgetReported(r wire.ChildReport) bool {
	i := s.Ledger.find(r.Session)
	if c := s.Children.find(r.Session); r.Budget == nil || i < 0 || !s.Children.List[c].Started {
		return false // it can be told nothing yet
	}
	s.resumed.Cause = agent.Initiator(firstOf(string(s.resumed.Cause), string(agent.InitiatorTriggered)))
	news, behind := s.Ledger.report(i, *r.Budget)
	if behind && !s.decided() {
		s.sendGrant(i, false, false)
	}
	return news || behind
}

// budgetReport is what the parent is told of the run's account.
func (s *step) budgetReport() *wire.BudgetReport {
	r := &wire.BudgetReport{Used: s.treeTally()}
	if a := s.Ledger.FromParent; a != nil {
		r.Granted, r.Returned = a.Granted, a.Returned
		wants, level := s.requestFromParent()
		for n := range wants {
			if a.Requested[n] > 0 {
				r.Requested[n], r.Blocked[n] = wants[n], level[n]/askUrgent
			}
		}
	}
	return r
}

func (s *step) askParentForBudget() {
	_, level := s.requestFromParent()
	s.Ledger.setRequested(level)
	s.reportBudget()
}

// reportBudget tells the parent of the run's account alone: the report has no number, so
// that it is not taken for one of how the run stands.
func (s *step) reportBudget() {
	b := s.Parent.Start
	s.do(ReportToParent{Session: b.Parent.Session, Report: wire.ChildReport{
		Run: b.Parent.Run, Session: s.Session, From: s.Run, Status: s.Status(), Budget: s.budgetReport(),
	}})
}

func (s *step) grantToChild() {
	i, more := s.nextGrant()
	s.Ledger.grant(i, more)
	s.Children.granted(s.Ledger.Accounts[i].Session)
	s.sendGrant(i, false, false)
}

// sendGrant tells a sub-agent what it was granted in all.
func (s *step) sendGrant(i int, recall, denied bool) {
	a := s.Ledger.Accounts[i]
	c := s.Children.List[s.Children.find(a.Session)]
	s.do(GrantChild{Session: a.Session, Order: wire.GrantOrder{Run: c.Run, From: s.Run, Granted: a.Granted, Recall: recall, Denied: denied}})
}

func (s *step) denyChild() {
	i := s.nextDenial()
	s.Ledger.deny(i)
	s.sendGrant(i, false, true)
}

func (s *step) recallFromChildren() {
	i := s.nextRecall()
	s.Ledger.recall(i)
	s.sendGrant(i, true, false)
}

func (s *step) giveBack() {
	s.Ledger.giveBack(s.budgetView().returnable(), !s.awaitsReturns())
	s.askParentForBudget()
}

// takeGrant takes what the parent says of what the run may use.
func (s *step) takeGrant(o wire.GrantOrder) error {
	switch {
	case s.decided():
		return s.refuse("the run is ending")
	case o.Run != s.Run:
		return s.refuse("a grant from above is for run %s", o.Run)
	case !s.Parent.is(o.From):
		return s.refuse("a grant from above is from run %s, which did not start this one", o.From)
	case s.Ledger.FromParent == nil:
		return s.refuse("no limit above bounds the run")
	}
	s.resumed = agent.Resumed{Cause: agent.InitiatorParent}
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
			used = s.Ledger.Accounts[i].Used
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %d model calls, %d tokens, %s USD; %s", c.Session, c.Status, used.Turns, used.Usage.Total(), used.Cost, quote(c.Task)))
	}
	return strings.Join(lines, "\n")
}

// budgetReasons is the grant that the run waits for.
func (s *State) budgetReasons() reasons {
	if !s.lacksBudget() {
		return nil
	}
	return reasons{{kind: agent.SuspensionAwaitingBudget, owner: agent.OwnerRuntime, finds: []string{"budget"}}}
}
