package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// How limits bound a tree. A run's limits hold for it and for all runs below it. A sub-agent gets a
// part of what is left when it starts. What it has not used is free again when it ends. In between
// no messages are needed, unless something runs short:
//
//   - A run with little left asks its parent for more, early enough that it need not be
//     suspended. If nothing is left, it is suspended until it gets a grant.
//   - The parent grants from what it has. Otherwise it asks its own parent. If its own limit
//     binds, it recalls what its other sub-agents have not used.
//   - When all is used, the run that has the limit fails or asks a person, as its Spec says.
//
// A run handles these messages in every phase before its end: held, parked, suspended, between two
// executions. So a parent that waits for a child can grant to it. budgetview.go decides which of
// these things a run does, and shows why no runs wait for each other in a circle.

// moreToCome is how many parts each working sub-agent of an earlier turn reserves, so that later
// ones get a share, too. If maxWorking of them begin one after the other, a quarter is left.
const moreToCome = 4

// pendingDelegations counts the pending calls that will start sub-agents.
func (s *State) pendingDelegations() (n int64) {
	for _, c := range s.Calls.List {
		if c.State == CallPending && s.toolOf(c).Executor == agent.ExecutorSubAgent {
			n++
		}
	}
	return n
}

// mayDelegate reports whether it is known if one more agent may be started: either one is left, or
// no limit will allow another. In the second case delegate rejects the call.
func (s *State) mayDelegate() bool {
	k := s.budgetView()
	return k.remaining(wire.ResourceAgents) > 0 || s.noMoreAgents(k)
}

// noMoreAgents reports whether a limit of this run or of an ancestor forbids another agent for good.
func (s *State) noMoreAgents(k budgetView) bool {
	return k.exhausted(wire.ResourceAgents) || k.FromParent != nil && k.FromParent.Denied
}

// levelsBelow returns how many levels of runs may be below this one.
func (s *State) levelsBelow() int {
	levels := s.Budget.Limits.Depth
	if b := s.Parent.Start; b != nil {
		levels = min(levels, b.MaxDepth)
	}
	return levels
}

// grantFor opens the account of a new sub-agent and returns its grant; nil if no resource is limited.
func (s *step) grantFor(session string, sub agent.SubAgent) *wire.Amounts {
	// The turn's sub-agents get half of what is left, in equal parts: each call counts once while
	// it is pending, and once more for the half that stays.
	parts := s.pendingDelegations()
	for _, c := range s.Calls.List {
		if s.toolOf(c).Executor == agent.ExecutorSubAgent {
			parts++
		}
	}
	for _, a := range s.Ledger.Accounts { // of earlier turns: the more there are, the more may come
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

// startGrant returns what a new sub-agent gets if what is left is divided into so many parts; lower is
// what its own limits allow.
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
			grant[r] = 1 + (left-1)/parts // one for the sub-agent itself
		case r.Shared():
			grant[r] = max(1, left/parts)
		default: // time passes for all alike: nobody gets less of it
			grant[r] = left
		}
		if lower[r] != wire.Unlimited {
			grant[r] = min(grant[r], lower[r])
		}
	}
	return grant
}

// closeAccount closes the account of a sub-agent that has ended.
func (s *step) closeAccount(c Child, o *agent.Outcome) {
	switch {
	case o.Tree.Agents > 0:
		s.Ledger.close(c.Session, &o.Tree)
	case !c.Started && o.Status == agent.StatusFailed: // it could not be started, and has used nothing
		s.Ledger.close(c.Session, &agent.Tally{})
	default: // it did not say what it used, as after a termination
		s.Ledger.close(c.Session, nil)
	}
}

// childBudgetReported handles a sub-agent's report of its account, and reports whether it is news. A
// sub-agent that asks before the last grant has reached it gets that grant once more.
func (s *step) childBudgetReported(r wire.ChildReport) bool {
	i := s.Ledger.find(r.Session)
	if c := s.Children.find(r.Session); r.Budget == nil || i < 0 || !s.Children.List[c].Started {
		return false // it cannot get orders yet
	}
	s.resumed.Cause = agent.Initiator(firstOf(string(s.resumed.Cause), string(agent.InitiatorTriggered)))
	news, behind := s.Ledger.report(i, *r.Budget)
	if behind && !s.outcomeDecided() {
		s.sendGrant(i, false, false)
	}
	return news || behind
}

// budgetReport returns the run's account as the parent is told of it.
func (s *step) budgetReport() *wire.BudgetReport {
	r := &wire.BudgetReport{Used: s.treeTally()}
	if a := s.Ledger.FromParent; a != nil {
		r.Granted, r.Returned = a.Granted, a.Returned
		wants, level := s.requestFromParent()
		for n := range wants {
			// Only what the rule has asked for: other reports must not ask on their own.
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

// reportBudget reports only the run's account to the parent. The report has no Seq, so the parent does
// not take it for a report of the run's status.
func (s *step) reportBudget() {
	b := s.Parent.Start
	s.do(ReportToParent{Session: b.Parent.Session, Report: wire.ChildReport{
		Run: b.Parent.Run, Session: s.Session, From: s.Run, Status: s.Status(), Budget: s.budgetReport(),
	}})
}

func (s *step) grantToChild() {
	i, more := s.nextGrant()
	s.Ledger.grant(i, more)
	// Now, and not with the child's next report: until then the run would count the child as
	// suspended, though it works.
	s.Children.granted(s.Ledger.Accounts[i].Session)
	s.sendGrant(i, false, false)
}

// sendGrant tells a sub-agent the sum of its grants, with a recall or a denial.
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

// takeGrant handles a grant, a recall or a denial of the parent.
func (s *step) takeGrant(o wire.GrantOrder) error {
	switch {
	case s.outcomeDecided():
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

// Bounds of the text with a question about a limit: how many agents it lists, and its length in JSON.
const (
	maxProgressAgents = 20
	maxProgress       = 8 << 10
)

// progress returns a text for a question about a limit: what the run and its sub-agents have used.
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
		if n == maxProgressAgents {
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

// budgetReasons returns the reason of a run that waits for a grant.
func (s *State) budgetReasons() reasons {
	if !s.lacksBudget() && !s.onlyAwaitsGrantBelow() {
		return nil
	}
	return reasons{{kind: agent.SuspensionAwaitingBudget, owner: agent.OwnerRuntime, finds: []string{"budget"}}}
}

// onlyAwaitsGrantBelow reports whether the turn waits for sub-agents that do not work, and one of
// them waits for a grant that this run can only pass on. Then nothing works below this run, too:
// if it did not say so, an ancestor that asks a person for more would wait for it, and never show
// what it asks.
func (s *State) onlyAwaitsGrantBelow() bool {
	if s.Ledger.FromParent == nil || s.cannotUseGrant() {
		return false
	}
	// Calls of an agent that have not begun may have to wait for the next execution, and with it
	// for the sub-agent. But one that a person has decided begins now.
	decided := func(c Call) bool { return c.State == CallPending && c.hasDecision() }
	rests := s.awaitsCalls() && s.Calls.runningCount() == 0 && !s.awaitsWorkingChild() && !slices.ContainsFunc(s.Calls.List, decided)
	if s.isFlow() {
		rests = s.stepsRest(func(session string) bool { return !s.Children.isWorking(session) })
	}
	if !rests {
		return false
	}
	k := s.budgetView()
	return slices.ContainsFunc(s.Calls.List, func(c Call) bool {
		return c.State == CallAwaitingChildren && slices.ContainsFunc(s.awaitedChildren(c), func(on string) bool {
			i := k.find(on)
			return i >= 0 && s.Children.List[s.Children.find(on)].awaitsGrant() && k.parentMustGrant(k.Accounts[i])
		})
	})
}

// parentMustGrant reports whether the run's own grant, and not a limit of its own, keeps it from
// giving an account something that it is blocked on.
func (k budgetView) parentMustGrant(a Account) bool {
	for r := range wire.Resources {
		if a.blockedOn(r) && k.grantRemaining(r) <= 0 && k.ownRemaining(r) > 0 {
			return true
		}
	}
	return false
}
