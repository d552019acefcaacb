package loop

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/remembered"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/internal/wire"
)

// written is the length of a value in JSON.
func written(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return len(raw)
}

// No text is longer in JSON than is counted, and what is cut to a length has it at most.
func TestNothingIsLongerThanIsCounted(t *testing.T) {
	hostile := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("\x00\x01\b\f\n\x1f\x7f<>&\"\\/\u2028\u2029\ufffdé𝄐x"))),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		text := hostile.Draw(t, "text")
		require.LessOrEqual(t, written(text)-2, jsonLen(text))
		var back string
		raw, err := json.Marshal(text)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &back))
		require.LessOrEqual(t, written(back)-2, jsonLen(text), "nor does what came of it")
		require.LessOrEqual(t, written(json.RawMessage(raw)), rawJSONLen(raw))
		require.LessOrEqual(t, written(string(raw))-2, rawJSONLen(raw), "JSON as a text")
		most := rapid.IntRange(3, 100).Draw(t, "most")
		require.LessOrEqual(t, jsonLen(fit(text, most)), most)
		require.True(t, strings.HasPrefix(text, text[:bytesWithin(text, most)]))
		require.LessOrEqual(t, jsonLen(text[:bytesWithin(text, most)]), most)
	})
}

// share is a share of maxState, and the fields of State that it is for. A part whose fields
// belong to several shares is named field by field.
type share struct {
	name   string
	most   int
	fields string
}

var shares = []share{
	// What space counts.
	{"what waits", waitShare, "Messages.Pending Messages.Emitted Requests.Open Calls.List Park Checks.Proposal Checks.Asked Hooks.Calls Hooks.NextTurn Hooks.Note SuspensionHooks.Resume Flow.StateChanges Flow.Answers"},
	{"children", childShare, "Children"},
	{"accounts", ledgerShare, "Ledger"},
	{"verbs", verbShare + refuseShare, "Verbs"},
	{"receipts", receiptShare, "Messages.Receipts"},
	{"turn", turnShare, "Turn"},
	{"artifacts", artifactShare, "Artifacts.List Artifacts.Left"},
	{"children's artifacts", artifactShare, "Artifacts.Children"},
	{"log", alongShare, "Log"},
	{"decided", pastShare, "Requests.Decided Late"},
	// The Spec's length counts the reports that the agent asks for.
	{"spec", specShare, "Spec Parent Requests.Always RunReport Progress Loops.Equal"},
	// A verdict is in a Current only within a step.
	{"policies", policyShare, "Recovery Lessons Loops.Calls Loops.Results Loops.Idle Adaptive Skills Watch Daemon Workspace Notebook Refreshing Checks.Current Checks.Made Checks.Invocations Checks.Vetoes Checks.VetoesBy Checks.AskedBy Checks.Replied Checks.Capped Checks.CappedBy " +
		"Hooks.Task Hooks.Vetoes Hooks.VetoesBy Hooks.Done Hooks.Due Hooks.Next Hooks.TextCalls Hooks.NoteBytes Flow.News Flow.Full Flow.Freed SuspensionHooks.Current SuspensionHooks.Dropped SuspensionHooks.Resumed SuspensionHooks.Denied"},
	{"calls of unknown outcome", unknownShare, "Calls.Unknown"},
	{"the rest", fixedShare, "V Session Run Phase Origin Counters Budget Holds Suspensions End NextTimer TraceSegment TaskLoad Calls.Counts Calls.InheritedCounts Messages.PendingSize Messages.EmittedSize Messages.ReceiptSize"},
}

// values returns the fields of a share.
func (h share) values(s State) (all []any) {
	for _, path := range strings.Fields(h.fields) {
		v := reflect.ValueOf(s)
		for name := range strings.SplitSeq(path, ".") {
			v = v.FieldByName(name)
		}
		all = append(all, v.Interface())
	}
	return all
}

// Each field of a state has one share, and the shares together are at most maxState. So no
// new field makes a state too long for a new execution.
func TestEachFieldOfTheStateHasAShare(t *testing.T) {
	var named, fields []string
	split := map[string]bool{}
	sum := 0
	for _, one := range shares {
		sum += one.most
		for _, path := range strings.Fields(one.fields) {
			part, _, within := strings.Cut(path, ".")
			named, split[part] = append(named, path), split[part] || within
		}
	}
	for f := range reflect.TypeFor[State]().Fields() {
		if !split[f.Name] {
			fields = append(fields, f.Name)
			continue
		}
		for sub := range f.Type.Fields() {
			fields = append(fields, f.Name+"."+sub.Name)
		}
	}
	require.ElementsMatch(t, fields, named)
	require.LessOrEqual(t, sum, maxState)

	a := Account{Session: strings.Repeat("s", 256), Recalled: true}
	for r := range wire.Resources {
		a.Granted[r], a.Blocked[r] = maxGrant(r), askUrgent
	}
	a.Returned, a.Requested = a.Granted, a.Granted
	u := agent.Usage{Input: amount.Max, Output: amount.Max, CacheRead: amount.Max, CacheWrite: amount.Max}
	a.Used = agent.Tally{Agents: amount.Max, Turns: amount.Max, Usage: u, Cost: amount.Max, Estimated: agent.Estimate{Tokens: amount.Max, Cost: amount.Max}}
	require.LessOrEqual(t, (maxWorking+2)*written(a), ledgerShare, "with the run's own grant, and what has ended")
}

// fillPolicies fills the parts of policies with as much as they take.
func fillPolicies(s *State) {
	s.Recovery.setNote(times(maxRecoveryNote), 1e6)
	for i := range maxFailureCounts + 1 {
		s.Recovery.count(agent.FailurePolicyViolation, fmt.Sprintf("%s%02d", strings.Repeat("t", 62), i))
	}
	for i := range agent.MaxLessons + 1 {
		s.Lessons.add(agent.Lesson{Kind: agent.FailureKind(fmt.Sprintf("%s_%d", agent.FailurePolicyViolation, i)), Text: fit(times(maxLesson), maxLesson), Turn: 1e6})
	}
	d := agent.LoopDetection{Scope: agent.LoopScopeRun, Cycles: 10, Results: 100}
	for i := range maxEqualCalls + 1 {
		digest := fmt.Sprintf("%016x", i)
		s.Loops.called(digest, d)
		s.Loops.Equal = append(s.Loops.Equal[max(0, len(s.Loops.Equal)-maxEqualCalls+1):], EqualCalls{digest, maxEqualCount})
		s.Loops.Results = append(s.Loops.Results[max(0, len(s.Loops.Results)-maxResultCounts+1):], ResultCount{fmt.Sprintf("%s%02d", strings.Repeat("t", 62), i), digest, 1e6})
	}
	for range maxMoves {
		s.Adaptive.Moves = append(s.Adaptive.Moves, agent.LimitMove{Limit: "own_turns", From: 1e6, To: 1e6, Reason: agent.MovedByHook, Turn: 1e6, Why: fit(times(maxMoveWhy), maxMoveWhy)})
	}
	for i := range agent.MaxActiveSkills {
		s.Skills.Active = append(s.Skills.Active, ActiveSkill{fmt.Sprintf("%s%d", strings.Repeat("k", 63), i), strings.Repeat("d", 64), agent.SkillMatched})
	}
	s.Skills.Load, s.Skills.Files = s.Skills.Active, slices.Repeat([]string{strings.Repeat("<", 128)}, agent.MaxWorkingFiles)
	s.Watch.take(slices.Repeat([]agent.FileMark{{Digest: times(1000), Newest: 1 << 62}}, 8))
	c := Calls{List: []Call{{ToolCall: agent.ToolCall{ID: "t1000.128", Tool: strings.Repeat("t", 64)}, Since: time.Unix(1e9, 0)}}}
	for range maxUnknown + 1 {
		c.rememberUnknown(0, strings.Repeat("r", 36), strings.Repeat("<", 200))
	}
	s.Calls.Unknown = c.Unknown
	s.Daemon.handle(agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: times(agent.MaxIDLength)}, Topic: times(128)})
}

// stuffed is a run in the middle of filling up.
type stuffed struct {
	*player
	n int // counts what was said
}

const hostile = "\x01"

func times(n int) string { return strings.Repeat(hostile, n) }

// try steps an input that may be refused.
func (p *stuffed) try(in Input) error {
	p.n++
	next, effects, err := Step(p.state, Moment{At: p.now, ContinueAsNewSuggested: p.full, NearHistoryLimit: p.near}, in)
	if err == nil {
		checkInvariants(p.t, p.state, next, effects)
		p.state = next
	}
	return err
}

func (p *stuffed) must(in Input) { require.NoError(p.t, p.try(in)) }

func (p *stuffed) id() string { return fmt.Sprintf("%s%04d", times(agent.MaxIDLength-4), p.n) }

// stuff begins a daemon whose session, agent, labels, and what was left to it, are as much
// as may be.
func stuff(t require.TestingT) *stuffed {
	p := &stuffed{player: &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 123_000_000, time.UTC)}}
	labels := map[string]string{}
	for i := range agent.MaxLabels {
		labels[fmt.Sprintf("%s%02d", times(62), i)] = times(256)
	}
	p.must(Begin{Session: strings.Repeat("s", 215), Run: strings.Repeat("r", 36), Start: agent.Start{Agent: "a", By: strings.Repeat("\x01", 256), Labels: labels, Input: agent.Input{Text: "\x02" + times(1000)}}})
	spec := agent.Spec{V: 1, Definition: agent.Definition{
		Name: "a", Model: "m", Tools: []string{agent.AskUserTool, agent.AwaitResumptionTool}, Agents: []agent.SubAgent{{Agent: strings.Repeat("b", 32)}}, Lifecycle: true,
		Rules: []agent.Rule{{Do: agent.RulingAsk}}, Daemon: &agent.Daemon{Queue: 1000}, Limits: agent.Limits{Turns: 1e18, Tokens: 1e18, WallClock: 1e18, Agents: 1e18, OwnTurns: 1e9},
	}}
	// Policies whose parts fill up with it, but decide nothing here.
	spec.Report, spec.Lessons, spec.SkillMatch, spec.Daemon.Watch = true, true, &agent.SkillMatch{}, []string{"inbox"}
	spec.LoopDetection = agent.LoopDetection{Scope: agent.LoopScopeRun, Cycles: 10, Results: 100}
	spec.Recovery = agent.Recovery{agent.FailureToolError: {Do: agent.RecoverCorrect, Times: 1e9, Text: times(100)}}
	spec.Limits.Adaptive = &agent.AdaptiveLimit{Initial: 1e9, Max: 1e9}
	spec.Definition = spec.WithDefaults()
	for i := range 128 {
		spec.Toolset = append(spec.Toolset, agent.ToolSpec{Name: fmt.Sprintf("%s_%03d", strings.Repeat("t", 58), i)})
	}
	for _, more := spec, 1<<16; more > 0; more /= 2 { // as many rules as are taken
		spec.Nudge += times(more)
		if specJSONLen(spec) > specShare-30<<10 {
			spec.Nudge = spec.Nudge[:len(spec.Nudge)-more]
		}
	}
	in := Opened{Spec: &spec}
	for i := range maxGrants { // as starts and tools may be named
		in.Counters.Grants = append(in.Counters.Grants, remembered.Grant{Agent: strings.Repeat("a", 32), Tool: spec.Toolset[i].Name, Starter: strings.Repeat("f", 16), Approver: strings.Repeat("\x01", 21)})
	}
	for i := range 1000 {
		in.Receipts = append(in.Receipts, remembered.Receipt{ID: fmt.Sprintf("%s%04d", times(60), i), Run: strings.Repeat("r", 36), Digest: "0a1b2c3d"})
	}
	p.must(in)
	p.settles()
	return p
}

// settles seals what there is to seal.
func (p *stuffed) settles() {
	for p.state.Log.SealingSeq > 0 {
		p.must(Sealed{Head: strings.Repeat("d", 64), Seq: p.state.Log.SealingSeq})
	}
}

// asksFor lets the model ask for calls.
func (p *stuffed) asksFor(text string, calls ...agent.ToolCall) {
	r := wire.Reply{Finish: agent.FinishToolCalls, Parts: []agent.Part{{Type: agent.PartText, Text: text}}}
	for _, c := range calls {
		c.ProviderID = times(256)
		r.Parts = append(r.Parts, agent.Part{Type: agent.PartToolCall, Call: &c})
	}
	p.must(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: r})
	p.settles()
}

// children gives work to as many as may work, in the background, and then some have ended.
func (p *stuffed) children(n int) {
	for range n {
		p.asksFor("", agent.ToolCall{Tool: "subagent__" + strings.Repeat("b", 32), Arguments: json.RawMessage(fmt.Sprintf(`{"task":"%d%s","background":true}`, p.n, strings.Repeat(`\u0001`, 120)))})
		if i := len(p.state.Children.List) - 1; i >= 0 && !p.state.Children.List[i].Started {
			p.must(ChildStarted{Session: p.state.Children.List[i].Session, Run: strings.Repeat("r", 36)})
		}
		p.settles()
	}
}

// A state that is full in each of its parts, with characters of which JSON makes six, can
// be carried over.
func TestAFullStateCanBeCarriedOver(t *testing.T) {
	p := stuff(t)
	require.Equal(t, TurnAsking, p.state.Turn.Phase)
	p.asksFor(times(1<<20), agent.ToolCall{Tool: "x", Arguments: json.RawMessage("{}")})
	for i := range 130 { // names that the model invents
		p.asksFor("", agent.ToolCall{Tool: fmt.Sprintf("%s_%d", strings.Repeat("u", 58), i), Arguments: json.RawMessage("{}")})
	}
	p.children(300)
	for i, c := range slices.Clone(p.state.Children.List) {
		if i%2 == 0 {
			p.must(ChildEnded{Session: c.Session, Outcome: &agent.Outcome{
				V: 1, Type: "outcome", Session: c.Session, Run: c.Run, Agent: c.Agent, Status: agent.StatusFailed, Reason: times(1000), Text: times(100_000),
				Output: json.RawMessage(`"` + strings.Repeat("<", 2000) + `"`), Error: &agent.Error{Code: agent.CodeChildFailed, Message: times(100_000), Path: times(1000)},
				Usage: agent.Usage{Input: 1e12, Output: 1e12}, Cost: 1e12, Turns: 1e9, Tree: agent.Tally{Agents: 1e9, Turns: 1e9, Usage: agent.Usage{Input: 1e12, Output: 1e12, CacheRead: 1e12, CacheWrite: 1e12}, Cost: 1e12, Estimated: agent.Estimate{Tokens: 1e12, Cost: 1e12}}, Tools: make([]agent.ToolCount, 129),
				Artifacts: childArtifacts(c.Session),
			}})
		}
	}
	p.children(200)
	for _, c := range p.state.Children.List {
		n := agent.SuspensionSummary{ID: times(100), Kind: agent.SuspensionInputRequired, Reason: times(1000), Owner: agent.OwnerOperator}
		for range 64 {
			n.Requests = append(n.Requests, agent.RequestSummary{ID: times(64), Type: agent.RequestApproval, Text: times(500), Tool: times(64), Digest: times(16), Approvers: []string{times(300), times(300)}})
		}
		share := wire.BudgetReport{Used: agent.Tally{Agents: 1e10, Turns: 1e10, Usage: agent.Usage{Input: 1e13, Output: 1e12, CacheRead: 1e14, CacheWrite: 1e14, Reasoning: 1e14}, Cost: 1e14, Estimated: agent.Estimate{Tokens: 1e14, Cost: 1e14}}}
		for r := range wire.Resources {
			share.Returned[r], share.Requested[r], share.Blocked[r] = 1e10, 1e18, 1
		}
		_ = p.try(ChildReported{Report: wire.ChildReport{Run: p.state.Run, Session: c.Session, From: c.Run, Seq: maxAhead, Status: agent.StatusSuspended, Suspension: &n, Budget: &share}})
	}
	require.Equal(t, maxWorking, p.state.Children.countNotEnded())
	for range 70 { // questions that were decided
		p.asksFor("", agent.ToolCall{Tool: agent.AskUserTool, Arguments: json.RawMessage(fmt.Sprintf(`{"question":"%d?"}`, p.n))})
		p.must(CommandReceived{ID: p.id(), Command: agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: times(256)}, Request: p.state.Requests.Open[0].ID, Text: "x"}})
		p.settles()
	}
	for range 600 {
		p.must(CommandReceived{ID: p.id(), Command: agent.PauseCommand{}})
		p.must(CommandReceived{ID: p.id(), Command: agent.ResumeCommand{}})
		p.settles()
	}
	for range 10 {
		p.must(CommandRefused{Verb: times(1000), By: times(256), Err: &agent.Error{Code: agent.CodeInvalidInput, Message: times(100_000), Path: times(512), Session: p.state.Session, Run: p.state.Run}})
	}
	p.fill()
	p.must(CommandReceived{ID: p.id(), Command: agent.PauseCommand{CommandHeader: agent.CommandHeader{By: times(256)}, Reason: times(60_000)}})
	p.carry(t)
}

// fill lets calls wait for people, and messages and events for the model, until no more
// is taken.
func (p *stuffed) fill() {
	var calls []agent.ToolCall
	for i := range 200 {
		calls = append(calls, agent.ToolCall{Tool: p.state.Spec.Toolset[i%10].Name, Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("<", 1+1500*(i%4))))})
	}
	r := wire.Reply{Finish: agent.FinishToolCalls}
	for i, c := range calls {
		r.Parts = append(r.Parts, agent.Part{Type: agent.PartToolCall, Call: &c})
		r.RuleMatches = append(r.RuleMatches, map[bool][]int{true: {0}}[i%3 > 0])
	}
	p.must(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: r})
	for asked := true; asked; {
		asked = false
		for _, c := range p.state.Calls.List {
			if c.State == CallRunning {
				asked = true
				in := ToolReturned{Result: agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallOK, Text: times(100_000), Files: manyFiles(p.state.Session, 25)}, Artifacts: manyArtifacts(p.state.Session, c.ID), StateChanges: map[string]json.RawMessage{c.ID: json.RawMessage(`"` + strings.Repeat("&", 30_000) + `"`)}}
				if len(p.state.Requests.Open)%2 == 0 {
					in.Question = &agent.ToolQuestion{Text: times(4000), Context: times(4000), Choices: slices.Repeat([]string{times(200)}, 16), State: json.RawMessage(`"` + strings.Repeat(">", 16_000) + `"`)}
				}
				p.must(in)
			}
		}
	}
	p.settles()
	for i, o := range p.state.Requests.Open { // more comes with the answers
		if o.RetryCall && i%2 == 0 {
			_ = p.try(CommandReceived{ID: p.id(), Command: agent.AnswerCommand{Request: o.ID, Data: json.RawMessage(`"` + strings.Repeat("<", 50_000) + `"`)}})
		} else if o.Type == agent.RequestApproval && i%2 == 0 {
			_ = p.try(CommandReceived{ID: p.id(), Command: agent.ApproveCommand{Request: o.ID, Arguments: json.RawMessage(`{"text":"` + strings.Repeat("<", 20_000) + `"}`)}})
		}
	}
	for size := 100_000; size > 0; size /= 2 {
		for p.try(CommandReceived{ID: p.id(), Command: agent.SendCommand{CommandHeader: agent.CommandHeader{By: times(256)}, Text: times(size), Mode: agent.SendQueue}}) == nil {
		}
		for p.try(CommandReceived{ID: p.id(), Command: agent.EmitCommand{CommandHeader: agent.CommandHeader{By: times(256)}, Topic: "t", Payload: json.RawMessage(`"` + strings.Repeat("<", size) + `"`)}}) == nil {
		}
	}
	p.settles()
}

// carry makes the run continue in a new execution, and measures what it takes with it.
func (p *stuffed) carry(t *testing.T) {
	p.settles()
	require.True(t, p.state.Suspensions.atRest(), p.state.phaseName())
	p.full = true
	p.must(TimerFired{})
	require.Equal(t, RunContinuing, p.state.Phase)
	for range 20 {
		p.must(CommandRefused{Verb: times(1000), By: times(256), Err: &agent.Error{Code: agent.CodeInvalidInput, Message: times(100_000), Path: times(512)}})
	}
	p.settles()
	require.True(t, p.state.Log.FinalSealDone)
	s := p.state
	s.Calls.InheritedCounts = s.Calls.Counts // of a fork
	fillPolicies(&s)
	for _, one := range shares {
		n := written(one.values(s))
		t.Logf("%s: %d of %d bytes", one.name, n, one.most)
		require.LessOrEqual(t, n, one.most, one.name)
	}
	require.LessOrEqual(t, written(s.Verbs.Refused), refuseShare)
	t.Logf("in all: %d of %d bytes", written(s), maxState)
	require.LessOrEqual(t, written(s), maxState)
}

// Whatever comes, in whatever sizes and order: wherever a run could continue in a new
// execution, its state could go along.
func TestWhateverComesCanBeCarriedOver(t *testing.T) {
	t.Parallel()
	most := 20
	if testenv.All() {
		most = 60 // half a minute
	}
	rapid.Check(t, func(t *rapid.T) {
		p := stuff(t)
		for range rapid.IntRange(10, most).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "near") == 0 {
				p.full, p.near = true, true
			}
			p.anything(t)
			if p.state.Phase == RunEnded {
				return
			}
			p.settles()
			if p.state.Phase == RunContinuing {
				p.full, p.near = false, false
				p.state = overTheWire(t, p.state)
				p.must(Continued{})
				p.settles()
			}
			s := p.state
			s.Log.Tail = nil // it is sealed before
			if s.Phase == RunActive && (s.ready() || s.Suspensions.atRest()) && !(&step{State: s}).needsChildEvents() {
				require.LessOrEqual(t, written(s), maxState-alongShare)
			}
		}
	})
}

// anything gives the run something that may come, as large as it may be or small.
func (p *stuffed) anything(t *rapid.T) {
	size := func(most int) string {
		unit := rapid.SampledFrom([]string{hostile, "x", "<", "\u2028", "\xff"}).Draw(t, "unit")
		return strings.Repeat(unit, rapid.SampledFrom([]int{1, most / 20, most / 3, most}).Draw(t, "size")/len(unit)+1)
	}
	raw := func(most int) json.RawMessage {
		unit := rapid.SampledFrom([]string{"x", "<", `\"`, "\u2028"}).Draw(t, "unit")
		return json.RawMessage(`"` + strings.Repeat(unit, rapid.SampledFrom([]int{1, most / 20, most}).Draw(t, "size")/len(unit)) + `"`)
	}
	s, order := p.state, agent.CommandHeader{By: size(256)}
	said := func(c agent.Command) {
		_ = p.try(CommandReceived{ID: p.id(), Command: c})
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		said(agent.SendCommand{CommandHeader: order, Text: size(400_000), Mode: rapid.SampledFrom([]agent.SendMode{agent.SendSteer, agent.SendQueue}).Draw(t, "mode")})
	case 1:
		said(agent.EmitCommand{CommandHeader: order, Topic: "t", Payload: raw(60_000)})
	case 2:
		said(agent.PauseCommand{CommandHeader: order, Reason: size(60_000)})
	case 3:
		said(agent.ResumeCommand{CommandHeader: order, Message: size(400_000)})
	case 4:
		_ = p.try(CommandRefused{Verb: size(1000), By: size(256), Err: agent.Errorf(agent.CodeInvalidInput, "%s", size(10_000))})
	case 5, 6:
		for _, o := range slices.Clone(s.Requests.Open) {
			switch rapid.IntRange(0, 3).Draw(t, "answer") {
			case 0:
				said(agent.ApproveCommand{CommandHeader: order, Request: o.ID, Arguments: json.RawMessage(`{"a":` + string(raw(60_000)) + `}`)})
			case 1:
				said(agent.AnswerCommand{CommandHeader: order, Request: o.ID, Data: raw(200_000)})
			case 2:
				said(agent.RejectCommand{CommandHeader: order, Request: o.ID, Reason: size(60_000)})
			}
		}
	default:
		p.works(t, size, raw)
	}
}

// works lets come what the run waits for: a reply, or results.
func (p *stuffed) works(t *rapid.T, size func(int) string, raw func(int) json.RawMessage) {
	s := p.state
	for _, c := range slices.Clone(s.Calls.List) {
		if c.State != CallRunning {
			continue
		}
		in := ToolReturned{Result: agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallOK, Text: size(128_000)}, StateChanges: map[string]json.RawMessage{c.ID: raw(60_000)}}
		if rapid.Bool().Draw(t, "asks") {
			in.Question = &agent.ToolQuestion{Text: size(4000), Context: size(4000), Schema: raw(16_000), State: raw(16_000)}
		}
		_ = p.try(in)
	}
	if !s.Turn.inFlight() {
		return
	}
	in := ModelReplied{AskSeq: s.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls, Parts: []agent.Part{{Type: agent.PartText, Text: size(200_000)}}}}
	for i := range rapid.SampledFrom([]int{0, 1, 3, 70, 200}).Draw(t, "calls") {
		tool := rapid.SampledFrom([]string{s.Spec.Toolset[0].Name, s.Spec.Toolset[0].Name, "unheard_of", agent.AwaitResumptionTool, "subagent__" + strings.Repeat("b", 32)}).Draw(t, "tool")
		in.Reply.Parts = append(in.Reply.Parts, agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{
			Tool: tool, ProviderID: size(256), Arguments: json.RawMessage(fmt.Sprintf(`{"n":"%d.%d","task":"x","background":true,"text":%s}`, p.n, i, raw(100_000))),
		}})
		in.Reply.RuleMatches = append(in.Reply.RuleMatches, rapid.SampledFrom([][]int{nil, {0}}).Draw(t, "rules"))
		if tool == agent.AwaitResumptionTool {
			in.Reply.ParkRequests = append(in.Reply.ParkRequests, wire.ParkRequest{Reason: size(10_000), Conditions: agent.Conditions{
				Input: size(60_000), Event: &agent.EventCondition{Topic: "t", Match: json.RawMessage(`{"description":` + string(raw(10_000)) + `}`)},
			}})
		}
	}
	_ = p.try(in)
	for _, c := range slices.Clone(p.state.Children.List) {
		switch {
		case c.notEnded() && !c.Started:
			_ = p.try(ChildStarted{Session: c.Session, Run: strings.Repeat("r", 36)})
		case c.notEnded() && rapid.Bool().Draw(t, "ends"):
			_ = p.try(ChildEnded{Session: c.Session, Outcome: &agent.Outcome{Session: c.Session, Status: agent.StatusCompleted, Text: size(100_000), Reason: size(100)}})
		}
	}
}

// A person may be asked about 64 calls of 10 kB at once, and the run can still be carried
// over. What is more than that is refused where it comes, and the run continues.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	p := asker(t, 64, 10_000)
	require.Len(t, p.state.Requests.Open, 64)
	require.LessOrEqual(t, written(p.state)-written(p.state.Log), maxState)
	require.JSONEq(t, `{"n":7,"note":"`+strings.Repeat("x", 10_000)+`"}`, string(p.state.Suspension().Requests[7].Call.Arguments), "a person sees all of it")
	long := strings.Repeat("x", 100_000)
	for path, c := range map[string]agent.Command{
		"":          agent.SendCommand{Text: long},
		"arguments": agent.ApproveCommand{Request: "q-1", Arguments: json.RawMessage(`{"note":"` + long + `"}`)},
	} {
		_, _, err := Step(p.state, Moment{}, CommandReceived{Command: c})
		require.ErrorIs(t, err, agent.CodeTooLarge)
		require.Equal(t, path, asError(err).Path)
	}

	p = asker(t, 64, 20_000)
	open := len(p.state.Requests.Open)
	require.InDelta(t, waitShare/20_000, open, 5)
	var told []string
	for _, c := range p.state.Calls.List {
		if c.State == CallDone {
			require.Equal(t, agent.CallRejected, c.Result.Status)
			told = append(told, c.Result.Text)
		}
	}
	require.Equal(t, slices.Repeat([]string{tooMuchAsked}, 64-open), told)

	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a"}})
	_, _, err := Step(d.state, Moment{}, CommandReceived{Command: agent.SendCommand{Text: times(pendingShare / escaped)}})
	require.ErrorIs(t, err, agent.CodeTooLarge)
	d.step(CommandReceived{Command: agent.SendCommand{Text: strings.Repeat("x", pendingShare-1000)}})
	p = played(t, `begin go`, `opened {"nudge":"`+strings.Repeat("x", specShare)+`"}`)
	require.Equal(t, []any{RunEnded, string(agent.CodeTooLarge)}, []any{p.state.Phase, p.state.End.Outcome.Reason})
}

// A hold keeps calls from being made that were counted as if they were about to have a
// result. What can't be kept while the run rests is skipped, the longest first; the rest is
// made after it.
func TestAHeldTurnKeepsWhatFits(t *testing.T) {
	p := stuff(t)
	p.must(CommandReceived{ID: p.id(), Command: agent.PauseCommand{}})
	call := func(n int) agent.ToolCall {
		return agent.ToolCall{Tool: "subagent__" + strings.Repeat("b", 32), Arguments: json.RawMessage(fmt.Sprintf(`{"task":"%d","background":true,"text":"%s"}`, n, strings.Repeat("x", n)))}
	}
	p.asksFor("", call(100_000), call(500_000), call(450_000), call(10))
	require.True(t, p.state.Suspensions.published())
	var states []CallState
	for _, c := range p.state.Calls.List {
		states = append(states, c.State)
	}
	require.Equal(t, []CallState{CallPending, CallDone, CallPending, CallPending}, states)
	require.Equal(t, agent.CallSkipped, p.state.Calls.List[1].Result.Status)
	require.ErrorIs(t, p.try(CommandReceived{ID: p.id(), Command: agent.SendCommand{Text: strings.Repeat("x", 200_000)}}), agent.CodeTooLarge)
	p.must(CommandReceived{ID: p.id(), Command: agent.ResumeCommand{}})
	require.Len(t, p.state.Children.List, 3)
}

// So it is with the calls that a history which is nearly full keeps from being made.
func TestATurnWithoutRoomKeepsWhatFits(t *testing.T) {
	p := stuff(t)
	for p.try(CommandReceived{ID: p.id(), Command: agent.EmitCommand{Topic: "t", Payload: json.RawMessage(`"` + strings.Repeat("x", 60_000) + `"`)}}) == nil {
	}
	p.must(CommandReceived{ID: p.id(), Command: agent.SendCommand{Text: strings.Repeat("x", pendingShare-2000)}})
	p.full, p.near = true, true
	call := func(n int) agent.ToolCall {
		return agent.ToolCall{Tool: p.state.Spec.Toolset[0].Name, Arguments: json.RawMessage(fmt.Sprintf(`{"text":"%d%s"}`, n, strings.Repeat("x", n)))}
	}
	p.asksFor("", call(400_000), call(500_000), call(450_000), call(10))
	require.Equal(t, RunContinuing, p.state.Phase)
	skipped := 0
	for _, c := range p.state.Calls.List {
		if c.State == CallDone {
			require.Equal(t, agent.CallSkipped, c.Result.Status)
			skipped++
		}
	}
	require.Equal(t, []any{3, CallPending}, []any{skipped, p.state.Calls.List[3].State})

	p = stuff(t)
	p.full, p.near = true, true
	c := call(600_000)
	p.must(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &c}}}})
	require.Equal(t, []any{RunContinuing, CallPending}, []any{p.state.Phase, p.state.Calls.List[0].State})
	require.ErrorIs(t, p.try(CommandReceived{ID: p.id(), Command: agent.SendCommand{Text: strings.Repeat("x", 200_000)}}), agent.CodeTooLarge)
	p.settles()
}
