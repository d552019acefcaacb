package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// grove is a tree of machines that work at the same time: whatever they ask for comes, at
// any time and in any order, but what one tells another comes in its order.
type grove struct {
	t        *rapid.T
	now      time.Time
	runs     []*tree
	limits   agent.Limits
	ask      bool
	extended int
	allowed  int64 // tokens that the root's limit allows by now
	turns    int64 // model calls that it allows by now
	cost     int64 // micro-dollars that it allows by now: a token costs one
	used     int64 // tokens that models have counted
	peak     int
	history  []string
}

// tree is one run of a grove.
type tree struct {
	state      State
	parent     *tree
	background bool
	born       int            // the parent's execution in which it began
	execution  int            // its own
	todo       []func() Input // what it has asked for; nil inputs are nothing
	mail       map[string][]Input
	gone       bool // its workflow was terminated
	near       bool // its execution's history is nearly full
}

const groveReply = 60

// Whatever a tree of agents does, and whoever holds, kills or carries over its runs: all
// together use what the root's limit allows and one reply for each agent at work, turns and
// agents exactly, nobody waits forever, and the root comes to its end.
func TestATreeKeepsToItsRootsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &grove{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ask: rapid.Bool().Draw(t, "ask")}
		g.limits = agent.Limits{OwnTurns: 30, Agents: rapid.IntRange(1, 12).Draw(t, "agents"), Depth: rapid.IntRange(1, 4).Draw(t, "depth")}
		switch rapid.IntRange(0, 3).Draw(t, "which") {
		case 0:
			g.limits.Tokens = rapid.Int64Range(1, 1500).Draw(t, "tokens")
		case 1:
			g.limits.Turns = rapid.IntRange(1, 25).Draw(t, "turns")
		case 2:
			g.limits.CostUSD = agent.USD(rapid.Int64Range(1, 1500).Draw(t, "cost"))
		default:
			g.limits.Tokens, g.limits.Turns = rapid.Int64Range(1, 1500).Draw(t, "tokens"), rapid.IntRange(1, 25).Draw(t, "turns")
		}
		g.allowed, g.turns, g.cost = g.limits.Tokens, int64(g.limits.Turns), int64(g.limits.CostUSD)
		root := g.plant(nil, "s", nil, agent.Limits{}, false)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			g.anything()
		}
		for n := 0; root.state.Phase != RunEnded; n++ {
			if n > 3000 || !g.something() {
				require.Fail(t, "the tree is stuck", "%s", g.stands())
			}
		}
	})
}

func (g *grove) plant(parent *tree, session string, childStart *wire.ChildStart, limits agent.Limits, background bool) *tree {
	r := &tree{parent: parent, background: background, mail: map[string][]Input{}}
	if parent != nil {
		r.born = parent.execution
	}
	g.runs = append(g.runs, r)
	g.step(r, Begin{Session: session, Run: "run of " + session, ChildStart: childStart, Start: agent.Start{Agent: "a", Limits: limits, Input: agent.Input{Text: "go"}}})
	return r
}

func (g *grove) live() (all []*tree) {
	for _, r := range g.runs {
		if !r.gone && r.state.Phase != RunEnded {
			all = append(all, r)
		}
	}
	return all
}

// anything lets something happen, also what nobody would wish for.
func (g *grove) anything() {
	live := g.live()
	if len(live) == 0 {
		return
	}
	r := rapid.SampledFrom(live).Draw(g.t, "run")
	switch rapid.IntRange(0, 40).Draw(g.t, "happens") {
	case 0:
		g.say(r, agent.PauseCommand{})
	case 1:
		g.say(r, agent.ResumeCommand{})
	case 2:
		g.say(r, agent.InterruptCommand{})
	case 3:
		if r.parent != nil {
			r.gone = true
			g.history = append(g.history, "terminated "+r.state.Session)
			g.hears(r, &agent.Outcome{Session: r.state.Session, Status: agent.StatusCancelled, Reason: agent.ReasonTerminated})
		}
	case 4:
		if r.parent != nil {
			g.say(r, agent.CancelCommand{})
		}
	case 5:
		g.now = g.now.Add(time.Minute)
		if !r.state.NextTimer.IsZero() && !g.now.Before(r.state.NextTimer) {
			g.step(r, TimerFired{})
		}
	default:
		g.something()
	}
}

// something lets the next thing happen that leads on; false if nothing does.
func (g *grove) something() bool {
	type move struct {
		r *tree
		f func() Input
	}
	var moves []move
	for _, r := range g.live() {
		for i := range r.todo {
			moves = append(moves, move{r, func() Input {
				f := r.todo[i]
				r.todo = slices.Delete(slices.Clone(r.todo), i, i+1)
				return f()
			}})
		}
		for _, from := range g.runs {
			if s := from.state.Session; len(r.mail[s]) > 0 {
				moves = append(moves, move{r, func() Input {
					in := r.mail[s][0]
					r.mail[s] = r.mail[s][1:]
					return in
				}})
			}
		}
	}
	if len(moves) > 0 {
		m := moves[rapid.IntRange(0, len(moves)-1).Draw(g.t, "move")]
		g.step(m.r, m.f())
		return true
	}
	return g.lift() || g.wake()
}

// lift is what somebody does where nothing continues by itself. People see only what is published.
func (g *grove) lift() bool {
	for _, r := range g.live() {
		switch {
		case len(r.state.Requests.Open) > 0 && r.state.Suspensions.published():
			choice := min(1, g.extended)
			q := r.state.Requests.Open[0]
			if choice == 0 {
				g.extended++
				g.allowed = r.state.budgetView().used(wire.ResourceTokens) + g.limits.Tokens
				g.turns = r.state.budgetView().used(wire.ResourceTurns) + int64(g.limits.Turns)
				g.cost = r.state.budgetView().used(wire.ResourceCost) + int64(g.limits.CostUSD)
			}
			g.say(r, agent.AnswerCommand{Request: q.ID, Choice: &choice})
			return true
		case r.state.Holds.own() != nil:
			g.say(r, agent.ResumeCommand{})
			return true
		}
	}
	return false
}

// wake lets the time come for which a run waits; one that only looks whether another lives
// leads nowhere.
func (g *grove) wake() bool {
	var next *tree
	for _, r := range g.live() {
		if !r.state.NextTimer.IsZero() && (next == nil || r.state.NextTimer.Before(next.state.NextTimer)) {
			next = r
		}
	}
	if next == nil {
		return false
	}
	if next.state.NextTimer.After(g.now) {
		g.now = next.state.NextTimer
	}
	g.step(next, TimerFired{})
	return true
}

func (g *grove) say(r *tree, c agent.Command) { g.step(r, CommandReceived{Command: c}) }

func (g *grove) step(r *tree, in Input) {
	if in == nil {
		return
	}
	before := r.state
	full := rapid.IntRange(0, 15).Draw(g.t, "long-history") == 0
	r.near = r.near || full && rapid.IntRange(0, 3).Draw(g.t, "near") == 0
	done, err := take(r.state, Moment{At: g.now, Revision: Revision, ContinueAsNewSuggested: full || r.near, HistoryHalfFull: r.near, NearHistoryLimit: r.near}, in)
	if err != nil {
		return
	}
	r.state = done.State
	g.history = append(g.history, fmt.Sprintf("%s: %T -> %s %v", r.state.Session, in, r.state.phaseName(), done.fired))
	checkInvariants(g.t, before, r.state, done.effects)
	for _, e := range done.effects {
		g.perform(r, e)
	}
	g.check()
}

func (g *grove) check() {
	g.peak = max(g.peak, len(g.live()))
	turns := int64(0)
	for _, r := range g.runs {
		turns += int64(r.state.Turn.N)
		require.LessOrEqual(g.t, strings.Count(r.state.Session, "/"), g.limits.Depth, "depth")
	}
	require.LessOrEqual(g.t, len(g.runs)-1, g.limits.Agents)
	if g.limits.Turns > 0 {
		require.LessOrEqual(g.t, turns, g.turns, "turns: %s", g.stands())
	}
	if g.limits.Tokens > 0 {
		require.LessOrEqual(g.t, g.used, g.allowed+int64(g.peak)*groveReply, "tokens: %s", g.stands())
	}
	if g.limits.CostUSD > 0 {
		require.LessOrEqual(g.t, g.used, g.cost+int64(g.peak)*groveReply, "cost: %s", g.stands())
	}
}

func (g *grove) perform(r *tree, e Effect) {
	do := func(f func() Input) { r.todo = append(r.todo, f) }
	switch e := e.(type) {
	case Open:
		do(func() Input { return Opened{Spec: g.spec(r)} })
	case CallModel:
		do(func() Input { return g.reply(r, e) })
	case CallTool:
		do(func() Input {
			return ToolReturned{Result: agent.ToolResult{Call: e.Call, Tool: e.Tool, Status: agent.CallOK, Text: "1"}}
		})
	case Seal:
		do(func() Input { return Sealed{Head: "h", Seq: e.To} })
	case MakeHandoff:
		do(func() Input { return HandoffMade{Handoff: e.Known} })
	case ContinueAsNew:
		r.execution++
		r.near = false
		raw, err := json.Marshal(r.state)
		require.NoError(g.t, err)
		r.state = State{}
		require.NoError(g.t, json.Unmarshal(raw, &r.state))
		do(func() Input { return Continued{} })
	case StartChild:
		childStart := e.ChildStart
		do(func() Input {
			g.plant(r, e.Session, &childStart, e.Limits, e.Background)
			return ChildStarted{Session: e.Session, Run: "run of " + e.Session}
		})
	case OrderChild:
		g.post(r, e.Session, ParentOrdered{Order: e.Order})
	case GrantChild:
		g.post(r, e.Session, ParentGranted{Order: e.Order})
	case ReportToParent:
		g.post(r, e.Session, ChildReported{Report: e.Report})
	case CheckParent:
		do(func() Input { return ParentChecked{Gone: r.parent.gone || r.parent.state.Phase == RunEnded} })
	case CheckChild:
		do(func() Input { return g.look(e.Session) })
	case Complete:
		g.hears(r, r.state.End.Outcome)
	}
}

func (g *grove) find(session string) *tree {
	i := slices.IndexFunc(g.runs, func(r *tree) bool { return r.state.Session == session })
	if i < 0 {
		return nil
	}
	return g.runs[i]
}

// post sends something to another run; one whose parent is gone looks for it.
func (g *grove) post(from *tree, session string, in Input) {
	to := g.find(session)
	switch {
	case to != nil && !to.gone && to.state.Phase != RunEnded:
		to.mail[from.state.Session] = append(to.mail[from.state.Session], in)
	case to == from.parent:
		from.todo = append(from.todo, func() Input { return ParentChecked{Gone: true} })
	}
}

// hears lets the parent know of an end by its child's result, if it began in this execution.
func (g *grove) hears(r *tree, o *agent.Outcome) {
	if r.parent != nil && r.born == r.parent.execution {
		r.parent.todo = append(r.parent.todo, func() Input { return ChildEnded{Session: o.Session, Outcome: o} })
	}
}

func (g *grove) look(session string) Input {
	r := g.find(session)
	if r == nil || !r.gone && r.state.Phase != RunEnded {
		return nil
	}
	return ChildEnded{Session: session, Outcome: &agent.Outcome{Session: session, Status: agent.StatusCancelled}}
}

func (g *grove) spec(r *tree) *agent.Spec {
	spec := &agent.Spec{V: 1, Definition: agent.Definition{Name: "a", Model: "m", Agents: []agent.SubAgent{{Agent: "a"}}}, Price: agent.Price{Input: agent.Dollar}, Toolset: []agent.ToolSpec{{Name: "add"}}}
	if r.parent == nil {
		spec.Limits = g.limits
		if g.ask {
			spec.OnLimit = agent.LimitActionAsk
		}
	}
	spec.Definition = spec.WithDefaults()
	return spec
}

// reply is what the model says: it gives work to others, calls a tool, or is done.
func (g *grove) reply(r *tree, e CallModel) Input {
	n := rapid.Int64Range(1, groveReply).Draw(g.t, "tokens")
	usage := agent.Usage{Input: n}
	if r.state.Turn.inFlight() && r.state.Turn.AskSeq == e.Seq {
		g.used += n
	}
	text := []agent.Part{{Type: agent.PartText, Text: "done"}}
	switch rapid.IntRange(0, 9).Draw(g.t, "says") {
	case 0:
		return ModelFailed{AskSeq: e.Seq, Err: &agent.Error{Code: agent.CodeProviderError, Message: "no", Charges: []agent.Charge{{Usage: usage, Estimated: true}}}}
	case 1, 2:
		return ModelReplied{AskSeq: e.Seq, Reply: wire.Reply{Finish: agent.FinishStop, Usage: usage, Parts: text}}
	}
	if e.Summary != "" {
		return ModelReplied{AskSeq: e.Seq, Reply: wire.Reply{Finish: agent.FinishStop, Usage: usage, Parts: text}}
	}
	reply := wire.Reply{Finish: agent.FinishToolCalls, Usage: usage}
	for range rapid.IntRange(1, 3).Draw(g.t, "calls") {
		call := &agent.ToolCall{Tool: "add", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, r.state.Log.Seq))}
		if rapid.Bool().Draw(g.t, "delegates") {
			call.Tool, call.Arguments = "subagent__a", json.RawMessage(fmt.Sprintf(`{"task":"%d","background":%t}`, r.state.Log.Seq, rapid.Bool().Draw(g.t, "background")))
		}
		reply.Parts = append(reply.Parts, agent.Part{Type: agent.PartToolCall, Call: call})
	}
	return ModelReplied{AskSeq: e.Seq, Reply: reply}
}

// stands tells how every run stands, and what has happened last.
func (g *grove) stands() (all string) {
	for _, h := range g.history[max(0, len(g.history)-40):] {
		all += h + "\n"
	}
	for _, r := range g.runs {
		if r.gone {
			all += r.state.Session + " is gone\n"
			continue
		}
		ledger, err := json.Marshal(r.state.Ledger)
		require.NoError(g.t, err)
		all += fmt.Sprintf("%s: %s %s, turn %d, %d tokens, lacks %v, todo %d, %s%s\n", r.state.Session, r.state.phaseName(), r.state.Status(), r.state.Turn.N, r.state.Budget.Usage.Total(), r.state.missingBudget(), len(r.todo), ledger, waitText(r.state))
	}
	return all
}
