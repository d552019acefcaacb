package loop

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/wire"
)

// branch is a tree of ledgers: agents that spend, start others and tell each other what
// they may use, over messages that come late, twice or never.
type branch struct {
	t      *rapid.T
	agents []*spender
	lossy  bool
	peak   int // how many were at work at once, or had ended without being heard
}

type spender struct {
	budgetView
	session string
	parent  *spender
	tally   agent.Tally
	over    bool // it spends no more
	heard   bool // the parent knows of its end
	up      []wire.BudgetReport
	down    []wire.GrantOrder
	ended   *agent.Tally // the report of its end, under way
}

const mostReply = 100

// A tree of ledgers never grants more than there is: what a run thinks that one below may
// use is at least what it may, and all together spend no more than the limit and one reply
// for each agent at work, however late or often messages come.
func TestALedgerConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &branch{t: t, lossy: rapid.Bool().Draw(t, "lossy")}
		limits := agent.Limits{Tokens: rapid.Int64Range(1, 2000).Draw(t, "tokens"), Turns: rapid.IntRange(1, 40).Draw(t, "turns"), Agents: rapid.IntRange(1, 8).Draw(t, "agents")}
		b.add(nil, nil, wire.LimitAmounts(limits))
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			b.step()
			b.check(limits)
		}
	})
}

func (b *branch) add(parent *spender, grant *wire.Amounts, ceiling wire.Amounts) {
	s := &spender{session: "s", parent: parent, budgetView: budgetView{allowance: ceiling}}
	if parent != nil {
		s.session = parent.session + "/" + string(rune('a'+len(b.agents)))
	}
	s.tally.Agents = 1
	s.own = wire.UsedAmounts(s.tally)
	s.start(grant)
	b.agents = append(b.agents, s)
}

func (b *branch) step() {
	s := rapid.SampledFrom(b.agents).Draw(b.t, "agent")
	switch rapid.SampledFrom([]string{"spend", "spend", "spend", "start", "ask", "ask", "serve", "serve", "recall", "back", "up", "up", "down", "down", "end", "kill", "carry"}).Draw(b.t, "does") {
	case "spend":
		b.spend(s)
	case "start":
		b.start(s)
	case "ask":
		b.ask(s)
	case "serve":
		b.serve(s)
	case "recall":
		b.recall(s)
	case "back":
		if s.FromParent != nil && s.FromParent.Recalled && !s.over {
			s.giveBack(s.returnable(), true)
			b.tell(s)
		}
	case "up":
		b.deliverUp(s)
	case "down":
		b.deliverDown(s)
	case "end":
		b.end(s)
	case "kill":
		if s.parent != nil && b.lossy && !s.over { // nothing is told; the parent hears that it is gone
			s.over, s.heard = true, true
			s.parent.close(s.session, nil)
		}
	case "carry":
		raw, err := json.Marshal(s.Ledger)
		require.NoError(b.t, err)
		s.Ledger = Ledger{}
		require.NoError(b.t, json.Unmarshal(raw, &s.Ledger))
	}
}

// spend makes a model call, if something is left of all that it needs.
func (b *branch) spend(s *spender) {
	if s.over || s.remaining(wire.ResourceTokens) <= 0 || s.remaining(wire.ResourceTurns) <= 0 {
		return
	}
	s.tally.Turns++
	s.tally.Usage.Input += rapid.Int64Range(1, mostReply).Draw(b.t, "tokens")
	s.own = wire.UsedAmounts(s.tally)
}

func (b *branch) start(s *spender) {
	if s.over || s.remaining(wire.ResourceAgents) < 1 {
		return
	}
	grant := s.startGrant(rapid.Int64Range(1, 6).Draw(b.t, "parts"), wire.LimitAmounts(agent.Limits{}))
	ceiling := wire.LimitAmounts(agent.Limits{Tokens: rapid.Int64Range(0, 200).Draw(b.t, "own")})
	b.add(s, &grant, ceiling)
	s.open(b.agents[len(b.agents)-1].session, grant)
}

func (b *branch) ask(s *spender) {
	if s.FromParent == nil || s.over {
		return
	}
	var levels wire.Amounts
	for r := range wire.Resources {
		if r.Shared() && s.grantRemaining(r) <= 0 {
			levels[r] = askUrgent
		}
	}
	s.setRequested(levels)
	b.tell(s)
}

func (b *branch) tell(s *spender) {
	r := wire.BudgetReport{Used: s.whole(), Granted: s.FromParent.Granted, Returned: s.FromParent.Returned}
	for n := range r.Requested {
		r.Requested[n] = 10 * min(1, s.FromParent.Requested[n])
	}
	s.up = append(s.up, r)
}

// whole is what it and all below it are known to have used.
func (s *spender) whole() agent.Tally {
	t := s.tally.Add(s.EndedUsage)
	for _, a := range s.Accounts {
		t = t.Add(a.Used)
	}
	return t
}

func (b *branch) serve(s *spender) {
	for i := range s.Accounts {
		if more := s.grantShare(i); more != (wire.Amounts{}) && !s.over {
			s.grant(i, more)
			b.order(s, i, false)
		}
	}
}

func (b *branch) recall(s *spender) {
	for i := range s.Accounts {
		if !s.over {
			s.Ledger.recall(i)
			b.order(s, i, true)
		}
	}
}

func (b *branch) order(s *spender, i int, recall bool) {
	a := s.Accounts[i]
	c := b.find(a.Session)
	c.down = append(c.down, wire.GrantOrder{Granted: a.Granted, Recall: recall})
}

func (b *branch) find(session string) *spender {
	return b.agents[slices.IndexFunc(b.agents, func(s *spender) bool { return s.session == session })]
}

// pick takes one of some messages: the first, or where they may be lost any, perhaps
// without removing it.
func pick[T any](b *branch, from *[]T) (one T, ok bool) {
	if len(*from) == 0 {
		return one, false
	}
	i := 0
	if b.lossy {
		i = rapid.IntRange(0, len(*from)-1).Draw(b.t, "which")
	}
	one = (*from)[i]
	if !b.lossy || rapid.Bool().Draw(b.t, "once") {
		*from = slices.Delete(slices.Clone(*from), i, i+1)
	}
	return one, !b.lossy || rapid.IntRange(0, 9).Draw(b.t, "lost") > 0
}

func (b *branch) deliverUp(s *spender) {
	if s.parent == nil || s.parent.over {
		return
	}
	if r, ok := pick(b, &s.up); ok {
		if i := s.parent.Ledger.find(s.session); i >= 0 {
			s.parent.Ledger.report(i, r)
		}
	}
	if len(s.up) == 0 && s.ended != nil {
		s.heard = true
		s.parent.close(s.session, s.ended)
	}
}

func (b *branch) deliverDown(s *spender) {
	if o, ok := pick(b, &s.down); ok && !s.over {
		s.takeGrant(o)
	}
}

// end ends an agent whose agents have all ended, or are given up.
func (b *branch) end(s *spender) {
	if s.over || s.parent == nil {
		return
	}
	t := s.tally.Add(s.maxUsed())
	s.over, s.ended = true, &t
}

func (b *branch) check(limits agent.Limits) {
	atWork, turns, tokens := 0, 0, int64(0)
	for _, s := range b.agents {
		turns, tokens = turns+s.tally.Turns, tokens+s.tally.Usage.Total()
		if !s.heard {
			atWork++
		}
		if i := parentAccount(s); i >= 0 {
			a := s.parent.Accounts[i]
			for r := range wire.Resources {
				may := max(0, s.FromParent.Granted[r]-s.FromParent.Returned[r]-s.used(r)) // by itself and all below
				if r.Shared() && s.FromParent.Granted[r] != wire.Unlimited {
					require.GreaterOrEqual(b.t, wire.UsedAmounts(a.Used)[r]+a.unused(r), min(s.used(r), s.FromParent.Granted[r]-s.FromParent.Returned[r])+may, "%s of %s: more is reserved than there is", r, s.session)
				}
			}
		}
	}
	b.peak = max(b.peak, atWork)
	if b.lossy {
		b.peak = len(b.agents)
	}
	require.LessOrEqual(b.t, turns, limits.Turns, "turns are exact")
	require.LessOrEqual(b.t, len(b.agents)-1, limits.Agents, "and agents")
	require.LessOrEqual(b.t, tokens, limits.Tokens+int64(b.peak)*mostReply, "one reply for each agent at work is too much, at most")
}

func parentAccount(s *spender) int {
	if s.parent == nil {
		return -1
	}
	return s.parent.Ledger.find(s.session)
}

// Amounts cross the wire by the names of their limits.
func TestAmountsAreNamed(t *testing.T) {
	a := wire.Amounts{1, wire.Unlimited, 3, 0, 5}
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, `{"turns":1,"tokens":-1,"cost_usd":3,"wall_clock":5}`, string(raw))
	var back wire.Amounts
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, a, back)
	require.Error(t, json.Unmarshal([]byte(strings.Repeat("[", 3)), &back))
}

// What a sub-agent claims of its account is believed as far as it can be true: no number
// falls, overflows, or gives back what was not there.
func TestClaimsOfASubAgentAreBounded(t *testing.T) {
	begin := func() *player {
		return played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true,"limits":{"tokens":1000}}`, `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`)
	}
	granted := begin().state.Ledger.Accounts[0].Granted
	tokens := func(n int64) (a wire.Amounts) { a[wire.ResourceTokens] = n; return a }
	huge := agent.Tally{Usage: agent.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, Cost: math.MaxInt64}
	for what, r := range map[string]wire.BudgetReport{
		"more came back than was granted": {Returned: tokens(math.MaxInt64 / 2), Granted: granted},
		"it came back, and was spent":     {Returned: tokens(math.MaxInt64), Used: agent.Tally{Usage: agent.Usage{Input: 500}}, Granted: granted},
		"less than nothing came back":     {Returned: tokens(math.MinInt64), Granted: granted},
		"more was spent than there is":    {Used: huge, Granted: granted},
		"less than nothing was spent":     {Used: agent.Tally{Agents: -1, Usage: agent.Usage{Input: math.MinInt64}, Cost: -1}, Granted: granted},
		"it needs all there is":           {Requested: tokens(math.MaxInt64), Blocked: tokens(math.MaxInt64), Granted: granted},
		"it needs less than nothing":      {Requested: tokens(math.MinInt64), Blocked: tokens(-1), Granted: granted},
	} {
		t.Run(what, func(t *testing.T) {
			p := begin()
			p.step(ChildReported{Report: wire.ChildReport{Run: "r", Session: "s/b-1", From: "run of s/b-1", Status: agent.StatusRunning, Budget: &r}})
			k := p.state.budgetView()
			require.LessOrEqual(t, k.remaining(wire.ResourceTokens), int64(1000))
			require.GreaterOrEqual(t, k.used(wire.ResourceTokens), int64(0))
			for _, a := range k.Accounts {
				require.LessOrEqual(t, a.Returned[wire.ResourceTokens], a.Granted[wire.ResourceTokens])
				require.GreaterOrEqual(t, a.Returned[wire.ResourceTokens], int64(0))
				require.GreaterOrEqual(t, a.Requested[wire.ResourceTokens], int64(0))
			}
			require.Equal(t, r.Used.Usage == huge.Usage, k.exhausted(wire.ResourceTokens))
			raw, err := json.Marshal(p.state)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(raw, new(State)), "the run can be carried over")
		})
	}
}

// An outcome's tally is bounded as well.
func TestTalliesOfOutcomesAreBounded(t *testing.T) {
	for _, tree := range []agent.Tally{
		{Agents: 1, Usage: agent.Usage{Input: math.MinInt64 + 5}, Cost: -1}, {Agents: -1}, {Agents: math.MaxInt, Turns: math.MaxInt, Usage: agent.Usage{Input: math.MaxInt64, Output: math.MaxInt64}, Cost: math.MaxInt64},
	} {
		p := played(t, `begin go`, `opened {"agents":[{"agent":"b"}],"lifecycle":true,"limits":{"agents":3,"tokens":1000}}`, `calls subagent__b {"task":"one","background":true}`, `child-started s/b-1`)
		spent := p.state.usedAmounts()
		p.step(ChildEnded{Session: "s/b-1", Outcome: &agent.Outcome{Status: agent.StatusCompleted, Usage: tree.Usage, Cost: tree.Cost, Tree: tree}})
		require.NoError(t, p.wrong)
		for r := range wire.Resources {
			require.GreaterOrEqual(t, p.state.usedAmounts()[r], spent[r], "%v: %s", tree, r)
		}
		kept := p.state.Children.List[0].Outcome
		require.Equal(t, []any{tree.Bounded(), tree.Usage.Bounded(), amount.Clamp(tree.Cost)}, []any{kept.Tree, kept.Usage, kept.Cost})
		raw, err := json.Marshal(p.state)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, new(State)))
	}
}

// A grant names the run that it is for.
func TestAGrantNamesItsRun(t *testing.T) {
	p := played(t, `begin-child {"parent":{"session":"s","run":"r0"},"depth":1,"grant":{"tokens":20,"turns":-1,"cost_usd":-1,"agents":1,"wall_clock":-1},"max_depth":7}`, `opened {"tools":["add"],"toolset":[{"name":"add"}]}`)
	more := wire.Amounts{-1, math.MaxInt64, -1, 10_000, -1}
	for _, run := range []string{"", "r0", "other"} {
		p.step(ParentGranted{Order: wire.GrantOrder{Run: run, From: p.state.Parent.Start.Parent.Run, Granted: more}})
		require.ErrorIs(t, p.wrong, agent.CodeStale, run)
	}
	p.step(ParentGranted{Order: wire.GrantOrder{Run: p.state.Run, From: p.state.Parent.Start.Parent.Run, Granted: more}})
	require.NoError(t, p.wrong)
	require.Equal(t, int64(3), latest(agent.Tally{}, agent.Tally{Usage: agent.Usage{Searches: 3}}).Usage.Searches)
	require.Equal(t, int64(amount.Max), p.state.Ledger.FromParent.Granted[wire.ResourceTokens])
}

// A run that was reset to before a grant learns of it from the sub-agent, and grants more.
func TestAForgottenGrantIsLearnt(t *testing.T) {
	var l Ledger
	l.open("s/b-1", wire.Amounts{wire.ResourceTokens: 100})
	news, behind := l.report(0, wire.BudgetReport{Granted: wire.Amounts{wire.ResourceTokens: 250}, Requested: wire.Amounts{wire.ResourceTokens: 50}})
	require.Equal(t, []bool{true, false}, []bool{news, behind})
	require.EqualValues(t, 250, l.Accounts[0].Granted[wire.ResourceTokens])
	require.EqualValues(t, 50, l.Accounts[0].Requested[wire.ResourceTokens])
}

// What a sub-agent wants that has not heard of a part of it is not granted: it would come
// alone, and meet a recall alone. It is told again, and says then what it wants.
func TestNothingIsGrantedPartByPart(t *testing.T) {
	var l Ledger
	l.open("s/b-1", wire.Amounts{wire.ResourceTurns: 1, wire.ResourceTokens: 100})
	wants := wire.Amounts{wire.ResourceTurns: 1, wire.ResourceTokens: 50}
	old := l.Accounts[0].Granted
	l.grant(0, wire.Amounts{wire.ResourceTokens: 50})
	_, behind := l.report(0, wire.BudgetReport{Granted: old, Requested: wants, Blocked: wire.Amounts{1, 1}})
	require.True(t, behind)
	require.Zero(t, l.Accounts[0].Requested)
	_, behind = l.report(0, wire.BudgetReport{Granted: l.Accounts[0].Granted, Requested: wants, Blocked: wire.Amounts{1, 1}})
	require.False(t, behind)
	require.Equal(t, wants, l.Accounts[0].Requested)
}

// However much sub-agents claim to have been granted, what is reserved for them and what is
// left never overflows: the run has no more than its limit, and whoever looks can read it.
func TestClaimedGrantsNeverOverflow(t *testing.T) {
	all := func(n int64) (a wire.Amounts) {
		for r := range a {
			a[r] = n
		}
		return a
	}
	for begin, limits := range map[string]string{
		`begin go`: `{"tokens":1000,"turns":90,"cost_usd":5,"agents":9}`,
		`begin-child {"parent":{"session":"s","run":"r"},"depth":1,"grant":{"tokens":1000,"turns":90,"cost_usd":5000000,"agents":9,"wall_clock":-1},"max_depth":7}`: `{}`,
	} {
		p := played(t, begin, `opened {"agents":[{"agent":"b"}],"lifecycle":true,"limits":`+limits+`,"price":{"input":1}}`)
		p.step(ParentGranted{Order: wire.GrantOrder{Run: "r", From: "r", Granted: all(math.MaxInt64)}})
		most := p.state.budgetView()
		const one = `subagent__b {"task":"x","background":true}`
		p.lines("calls " + one + " | " + one + " | " + one + " | " + one)
		for _, c := range p.state.Children.List {
			p.lines("child-started " + c.Session)
		}
		require.Len(t, p.state.Children.List, 4)
		for n, c := range p.state.Children.List {
			share := wire.BudgetReport{Granted: all(math.MaxInt64), Returned: all(math.MaxInt64 / 2), Requested: all(math.MaxInt64), Blocked: all(math.MaxInt64)}
			p.step(ChildReported{Report: wire.ChildReport{Run: "r", Session: c.Session, From: c.Run, Status: agent.StatusRunning, Budget: &share}})
			require.NoError(t, p.wrong)
			k := p.state.budgetView()
			for r := range wire.ResourceTime {
				require.LessOrEqual(t, k.remaining(r), most.remaining(r), "%s after %d", r, n)
				require.GreaterOrEqual(t, k.unused(r), int64(0), "%s after %d", r, n)
			}
		}
		shown := p.state.View(p.now)
		raw, err := json.Marshal([]any{shown, shown.Remaining, p.state.remaining(), p.state.Nodes()})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &[]any{new(agent.RunStatus), new(agent.Budget), new(agent.Remaining), new([]agent.Node)}), "%s", raw)
	}
}

// A sub-agent wants nothing of what no limit bounds: nobody could grant it, and others would
// wait behind it.
func TestNothingUnboundedIsWanted(t *testing.T) {
	var l Ledger
	l.open("s/b-1", wire.Amounts{wire.ResourceTokens: wire.Unlimited})
	l.report(0, wire.BudgetReport{Granted: l.Accounts[0].Granted, Requested: wire.Amounts{1, 1}, Blocked: wire.Amounts{1, 1}})
	require.Equal(t, wire.Amounts{1, 0}, l.Accounts[0].Requested)
	require.Equal(t, wire.Amounts{1, 0}, l.Accounts[0].Blocked)
}
