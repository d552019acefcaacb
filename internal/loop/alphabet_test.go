package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// theme is what a run is made of in a search, in the words of the scenario files.
type theme struct {
	name   string
	begin  string
	opened string
	model  []string // what its model may say beside a text
	flow   []string // what its function may ask for
	from   []string // what has happened behind opened where a search begins too
}

// place is a run as it stands at a moment.
type place struct {
	state State
	now   time.Time
	full  bool // its history is long
	half  bool // and half full
	near  bool // and nearly full
}

// moves lists what may happen at a place, each as lines of a scenario: first what
// is in flight or due, then what else could become of it, then what may be said.
func (th theme) moves(p place) (all []string) {
	s := p.state
	all = append(all, th.due(p)...)
	all = append(all, th.otherwise(p)...)
	if !p.full && s.Phase != RunEnding {
		all = append(all, "long-history")
	}
	if !p.half && s.Phase == RunActive && s.isFlow() {
		all = append(all, "half-full")
	}
	if !p.near && s.Phase == RunActive {
		all = append(all, "near-limit")
	}
	if s.Parent.Start != nil {
		all = append(all, orders(s)...)
	}
	all = append(all, verbs(s)...)
	if s.daemon() != nil {
		all = append(all, events(s)...)
	}
	return append(all, "cancelled", "terminated", "refused pause")
}

// due lists what leads on where nobody says anything: what was asked for comes, as
// well as it may, and time passes.
func (th theme) due(p place) (all []string) {
	s := p.state
	switch s.phaseName() {
	case string(RunOpening):
		all = append(all, th.opened)
	case string(RunListing):
		all = append(all, `listed {"tools":[{"name":"mcp__add"}]}`)
	case string(TurnAsking), string(TurnSummarizing):
		if (&step{State: s}).hasFinishTool() && s.Turn.Phase == TurnAsking {
			all = append(all, `replies {"finish":"tool_calls","output":{"n":1},"parts":[{"type":"tool_call","call":{"tool":"finish","arguments":{"n":1}}}]}`)
		}
		all = append(all, "says done")
	case string(TurnAdvancing): // it waits for its open steps, or is done
		if len(s.Calls.List) > 0 {
			all = append(all, "flow {}")
		} else {
			all = append(all, "returns done")
		}
	case string(RunContinuing):
		if s.Log.FinalSealDone && s.Log.SealingSeq == 0 {
			all = append(all, "continued")
		}
	case string(RunHandingOff):
		all = append(all, "handoff-made so far")
	}
	for _, c := range s.Calls.List {
		if c.State == CallRunning {
			if s.Checks.has(c.ID) {
				all = append(all, "judged "+c.ID+` {} {"verdict":"accept"}`)
				continue
			}
			all = append(all, "result "+c.ID+" ok 1")
		}
	}
	if at := s.SuspensionHooks.Current; at != nil {
		all = append(all, "judged "+at.Call+` {} {"verdict":"accept"}`)
	}
	if call := s.SuspensionHooks.Dropped; call != "" {
		all = append(all, "judged "+call+` {} {"verdict":"accept"}`)
	}
	if s.SuspensionHooks.fetching() || s.Refreshing.Fetching {
		all = append(all, "instructions be brief")
	}
	if s.Log.SealingSeq > 0 {
		all = append(all, "sealed")
	}
	if s.Watch.Looking {
		all = append(all, `looked {"marks":[{"digest":"a"}]}`)
	}
	if s.Parent.Checking && !s.outcomeDecided() {
		all = append(all, "parent-checked")
	}
	if a := s.Ledger.FromParent; a != nil && s.lacksBudget() {
		all = append(all, granted(a.Granted, 20, ""))
	}
	for _, c := range s.Children.List {
		switch {
		case !c.notEnded():
		case !c.Started:
			all = append(all, "child-started "+c.Session)
		default:
			all = append(all, "child-ended "+c.Session+" completed yes")
			if s.Checks.has(c.StartedBy) {
				all = append(all, "child-judges "+c.Session+` {"verdict":"accept"}`)
			}
		}
	}
	if !s.NextTimer.IsZero() {
		all = append(all, fmt.Sprintf("after %s\ntimer", max(0, s.NextTimer.Sub(p.now))))
	}
	return all
}

// otherwise lists how else what was asked for may come out.
func (th theme) otherwise(p place) (all []string) {
	s := p.state
	switch s.phaseName() {
	case string(RunOpening):
		all = append(all, "not-opened unknown_agent")
	case string(RunListing):
		all = append(all, "not-listed tool_failed")
	case string(TurnAsking):
		all = append(all, th.model...)
		all = append(all, "fails provider_error", `replies {"finish":"length"}`, `replies {"finish":"pause_turn","parts":[{"type":"server_tool","text":"web_search"}]}`, `replies {"finish":"too_long"}`, `replies {"finish":"filtered"}`)
	case string(TurnAdvancing):
		all = append(all, th.steps(s)...)
		all = append(all, "returns done", "flow {}", `flow {"done":true,"error":{"code":"flow_failed","message":"no"}}`, "flow-slow", "flow-fails unknown_agent", "flow-fails stuck")
	case string(TurnSummarizing):
		all = append(all, "says ", "fails provider_error", "compacts 1 the sum")
	}
	if s.Turn.Phase == TurnAsking || s.Turn.Phase == TurnSummarizing {
		all = append(all, `replies {"finish":"held","parts":[{"type":"text","text":"I was"}]}`, fmt.Sprintf(`replies {"finish":"held","hold":{"session":"s","n":%d}}`, s.newest()+1))
	}
	if s.Watch.Looking {
		all = append(all, `looked {"marks":[{"digest":"b"}],"changed":["inbox/b.txt"]}`, "not-looked no_worker")
	}
	for _, c := range s.Calls.List {
		if s.Checks.has(c.ID) && c.State == CallRunning {
			all = append(all, "judged "+c.ID+` {"input_tokens":30} {"verdict":"veto"}`, "missing "+c.ID+" run")
		}
		if c.State == CallRunning {
			all = append(all, "result "+c.ID+" failed no", "result "+c.ID+" unknown gone", "slow "+c.ID, "asks "+c.ID+" Which?", fmt.Sprintf("not-started %s s %d", c.ID, s.newest()))
		}
	}
	if at := s.SuspensionHooks.Current; at != nil {
		all = append(all, "judged "+at.Call+` {} {"verdict":"veto","text":"so"}`, "result "+at.Call+" failed no", "asks "+at.Call+" Which?", fmt.Sprintf("not-started %s s %d", at.Call, s.newest()))
	}
	if s.SuspensionHooks.fetching() || s.Refreshing.Fetching {
		all = append(all, "no-instructions unknown_agent")
	}
	if s.Log.SealingSeq > 0 {
		all = append(all, "not-sealed store_unavailable", "not-sealed chunk_damaged")
	}
	if s.Parent.Checking && !s.outcomeDecided() {
		all = append(all, "parent-checked gone")
	}
	if a := s.Ledger.FromParent; a != nil {
		all = append(all, granted(a.Granted, 0, `,"recall":true`), granted(a.Granted, 0, `,"denied":true`), granted(a.Granted, 20, ""))
	}
	for _, a := range s.Ledger.Accounts {
		if c := s.Children.List[s.Children.find(a.Session)]; a.net()[wire.ResourceTokens] != wire.Unlimited && c.Started {
			all = append(all, asking(a, c, 0), asking(a, c, 1))
		}
	}
	for _, c := range s.Children.List {
		switch {
		case !c.notEnded():
		case !c.Started:
			all = append(all, "child-refused "+c.Session)
		case c.Status == agent.StatusSuspended:
			all = append(all, fmt.Sprintf(`child-says {"session":%q,"seq":%d,"status":"running"}`, c.Session, c.Seq+1),
				fmt.Sprintf(`child-says {"session":%q,"seq":%d,"status":"suspended","suspension":{"id":"s-1","kind":"parked","owner_failed":{"code":"denied"}}}`, c.Session, c.Seq+1))
		default:
			all = append(all, "child-ended "+c.Session+" failed no", fmt.Sprintf(
				`child-says {"session":%q,"seq":%d,"status":"suspended","suspension":{"id":"s-1","kind":"input_required","requests":[{"id":"q-1","type":"question"}]}}`, c.Session, c.Seq+1))
		}
	}
	return all
}

// steps lists what a flow may ask for: none of its open steps again.
func (th theme) steps(s State) (all []string) {
	open := func(path string) bool {
		return slices.ContainsFunc(s.Calls.List, func(c Call) bool { return c.ProviderID == path })
	}
	for _, line := range th.flow {
		again := strings.Contains(line, `"provider_id":"a"`) && open("a")
		for _, one := range strings.Split(strings.TrimPrefix(line, "steps "), " | ") {
			again = again || open(strings.Fields(one)[0])
		}
		if !again {
			all = append(all, line)
		}
	}
	for _, c := range s.Calls.List {
		all = append(all, "drops "+c.ProviderID)
	}
	return all
}

// granted is what the parent may say of what this one may use: so much more of each.
func granted(was wire.Amounts, more int64, beside string) string {
	for r := range was {
		if was[r] != wire.Unlimited {
			was[r] += more
		}
	}
	raw, err := json.Marshal(was)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`granted {"granted":%s%s}`, raw, beside)
}

// asking is what a sub-agent may say that has used all its tokens, or returned them, and
// wants more; or that has returned what it had.
func asking(a Account, c Child, returns int64) string {
	left := max(0, a.unused(wire.ResourceTokens))
	a.Used.Usage.Input += left * (1 - returns)
	a.Returned[wire.ResourceTokens] += left * returns
	raw, err := json.Marshal(wire.BudgetReport{
		Used: a.Used, Granted: a.Granted, Returned: a.Returned, Requested: wire.Amounts{wire.ResourceTokens: 5}, Blocked: wire.Amounts{wire.ResourceTokens: 1},
	})
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`child-says {"session":%q,"seq":%d,"status":%q,"budget":%s}`, c.Session, c.Seq, c.Status, raw)
}

// newest is the number of the newest hold of session s that the run has heard of.
func (s State) newest() int {
	for _, h := range s.Holds.Known {
		if h.Session == "s" {
			return h.N
		}
	}
	return 0
}

// orders are what the parent session s/a-1 may want, and how it takes it back.
func orders(s State) []string {
	n := s.newest()
	held := func(verb agent.Verb, n int) string {
		return fmt.Sprintf(`ordered {"verb":%q,"holds":[{"id":"h-%d","from":"inherited","session":"s","verb":%q}],"known_holds":[{"session":"s","n":%d}]}`, verb, n, verb, n)
	}
	again := held(agent.VerbPause, n+1)
	if h := s.Holds.inherited(); h != nil {
		again = held(h.Verb, holdNumber(*h))
	}
	return []string{
		held(agent.VerbPause, n+1), held(agent.VerbInterrupt, n+1), again, fmt.Sprintf(`ordered {"verb":"resume","known_holds":[{"session":"s","n":%d}]}`, n),
		`ordered {"verb":"pause","own":true,"by":"agent:s","reason":"later"}`, `ordered {"verb":"resume","own":true,"by":"agent:s","reason":"now"}`,
		`ordered {"verb":"stop","deadline":"8s"}`, `ordered {"verb":"cancel"}`,
	}
}

// verbs are what anybody may say: of each verb its few forms that matter.
func verbs(s State) []string {
	all := []string{
		"pause {}", "interrupt {}", "resume {}", `resume {"from_summary":true,"message":"go"}`, `resume {"refresh":true}`, `stop {"deadline":"20s"}`, "cancel {}",
		`emit {"topic":"t"}`, `approve {"request":"q-0"}`,
	}
	if len(s.Messages.Pending) < 2 {
		all = append(all, `send {"text":"hi"}`, `send @m {"text":"hi","mode":"queue"}`, `send {"text":"hi","mode":"interrupt"}`)
	}
	if s.Park != nil {
		all = append(all, `emit {"topic":"t","payload":1}`)
	}
	for _, r := range s.Requests.Open {
		all = append(all, fmt.Sprintf(`answer {"request":%q,"text":"so"}`, r.ID), fmt.Sprintf(`reject {"request":%q,"reason":"no"}`, r.ID))
		switch {
		case r.Type == agent.RequestApproval:
			all = append(all, fmt.Sprintf(`approve {"request":%q}`, r.ID), fmt.Sprintf(`approve {"request":%q,"always":true}`, r.ID), fmt.Sprintf(`approve {"request":%q,"arguments":{"eur":2}}`, r.ID))
		case len(r.Choices) > 0:
			all = append(all, fmt.Sprintf(`answer {"request":%q,"choice":0}`, r.ID), fmt.Sprintf(`answer {"request":%q,"choice":1}`, r.ID))
		}
	}
	for _, c := range s.Children.List {
		if c.notEnded() {
			all = append(all, fmt.Sprintf(`answer {"request":"%s/q-1","text":"so"}`, c.Session))
		}
	}
	return all
}

// events are a new one for a daemon, and the last one again.
func events(s State) []string {
	n := len(s.Messages.Receipts)
	return []string{fmt.Sprintf(`emit @e%d {"topic":"t","payload":%d}`, n, n), fmt.Sprintf(`emit @e%d {"topic":"t","payload":%d}`, max(0, n-1), n-1)}
}

// lifts are what somebody would do to a run that waits to be let on; none where it
// waits for nobody.
func lifts(s State) []string {
	switch own := s.Holds.own(); {
	case own != nil:
		return []string{"resume {}"}
	case len(s.Holds.List) > 0:
		return []string{fmt.Sprintf(`ordered {"verb":"resume","known_holds":[{"session":"s","n":%d}]}`, s.newest())}
	case len(s.Requests.Open) > 0 && s.Requests.Open[0].Type == agent.RequestApproval:
		return []string{fmt.Sprintf(`approve {"request":%q}`, s.Requests.Open[0].ID)}
	case len(s.Requests.Open) > 0 && len(s.Requests.Open[0].Choices) > 0:
		return []string{fmt.Sprintf(`answer {"request":%q,"choice":1}`, s.Requests.Open[0].ID)}
	case len(s.Requests.Open) > 0:
		return []string{fmt.Sprintf(`answer {"request":%q,"text":"so"}`, s.Requests.Open[0].ID)}
	case s.Park != nil && !s.Park.Idle:
		return []string{"resume {}"}
	case s.Suspensions.Open == nil: // steps that wait end by what comes, not by a resume
	case len(s.Calls.waitTopics()) > 0:
		return []string{fmt.Sprintf(`emit {"topic":%q}`, s.Calls.waitTopics()[0])}
	case len(s.Calls.waiting()) > 0 && s.Calls.waitDue().IsZero():
		return []string{"resume {}"}
	}
	return nil
}
