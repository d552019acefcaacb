package journal_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/journal"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/store"
)

// book writes a log as runs would.
type book struct {
	events []agent.Event
	turn   int
	tokens int64
	last   string // run
}

func (b *book) add(e agent.Event) int64 {
	e.Seq, e.Turn = int64(len(b.events)+1), b.turn
	e.Time = time.Unix(e.Seq, 0).UTC()
	b.events = append(b.events, e)
	return e.Seq
}

func (b *book) view() *store.View { return (&store.View{}).With(b.events, int64(len(b.events))) }

var spec = &agent.Spec{Definition: agent.Definition{Name: "payer"}, Toolset: []agent.ToolSpec{{Name: "look", ReadOnly: true}, {Name: "pay"}}}

func (b *book) run(id string, forked *agent.Forked, said string) {
	b.turn, b.tokens, b.last = 0, 0, id
	b.add(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: id, Spec: spec}})
	if forked != nil {
		b.add(agent.Event{Type: agent.EventForked, Forked: forked})
	}
	if said != "" {
		b.say(agent.RoleUser, said)
	}
}

func (b *book) say(role agent.Role, text string) {
	m := agent.TextMessage(role, text)
	b.add(agent.Event{Type: agent.EventMessage, Message: &m})
}

// calls is a turn with one call; it returns its checkpoint.
func (b *book) calls(tool string, status agent.CallStatus, set map[string]json.RawMessage) string {
	b.begin()
	id := fmt.Sprintf("t%d.1", b.turn)
	b.add(agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: id, Tool: tool}}}}})
	b.add(agent.Event{Type: agent.EventCallDone, Call: &agent.CallUpdate{Call: id, Tool: tool, Status: status}})
	b.add(agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: id, Tool: tool, Status: status, Text: "done"}}}}})
	return b.end(set)
}

// tools counts the calls of the run that are done, each of another tool.
func (b *book) tools() (counts []agent.ToolCount) {
	for _, e := range b.events {
		switch {
		case e.Started != nil:
			counts = nil
		case e.Type == agent.EventCallDone:
			counts = append(counts, agent.ToolCount{Tool: e.Call.Tool, OK: 1})
		}
	}
	return counts
}

func (b *book) begin() {
	b.turn++
	b.add(agent.Event{Type: agent.EventTurnStarted})
}

func (b *book) end(set map[string]json.RawMessage) string {
	b.tokens += 10
	return agent.CheckpointID("s", b.add(agent.Event{Type: agent.EventTurnEnded, Snapshot: &agent.TurnSnapshot{
		Usage: agent.Usage{Input: b.tokens}, Cost: agent.USD(b.tokens), Tools: b.tools(), StateChanges: set,
	}}))
}

func (b *book) says(text string) string {
	b.begin()
	b.say(agent.RoleAssistant, text)
	return b.end(nil)
}

func (b *book) ends(status agent.Status) {
	b.add(agent.Event{Type: "run." + agent.EventType(status), Outcome: &agent.Outcome{Run: b.last, Status: status, Usage: agent.Usage{Input: b.tokens}}})
}

func texts(messages []agent.Message) (out []string) {
	for _, m := range messages {
		if t := m.Text(); t != "" {
			out = append(out, t)
		}
	}
	return out
}

func value(v string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"paid": json.RawMessage(v)}
}

// paid is a session whose run looked, paid, and failed on its third turn.
func paid() (b *book, looked, payed, failed string) {
	b = &book{}
	b.run("r1", nil, "pay invoice 118")
	looked = b.calls("look", agent.CallOK, nil)
	payed = b.calls("pay", agent.CallOK, value("118"))
	b.begin()
	failed = b.end(nil)
	b.ends(agent.StatusFailed)
	return b, looked, payed, failed
}

// A checkpoint is a place in the log. Its id finds it, with its run, turn, counters and state. Any other
// id is refused (HX-65, OA-96, OA-97).
func TestPoints(t *testing.T) {
	b, looked, payed, failed := paid()
	v := b.view()
	var ids []string
	for _, p := range journal.Checkpoints(v, "s") {
		ids = append(ids, p.ID)
	}
	first := agent.CheckpointID("s", 2)
	require.Equal(t, []string{first, looked, payed, failed}, ids)
	look, pay := agent.ToolCount{Tool: "look", OK: 1}, agent.ToolCount{Tool: "pay", OK: 1}
	for _, c := range []struct {
		want  agent.Checkpoint
		state map[string]json.RawMessage
	}{
		{agent.Checkpoint{ID: first, Messages: 1}, nil},
		{agent.Checkpoint{ID: looked, Turn: 1, Usage: agent.Usage{Input: 10}, Cost: 10, Tools: []agent.ToolCount{look}, Messages: 3}, nil},
		{agent.Checkpoint{ID: payed, Turn: 2, Usage: agent.Usage{Input: 20}, Cost: 20, Tools: []agent.ToolCount{look, pay}, Messages: 5}, value("118")},
		{agent.Checkpoint{ID: failed, Turn: 3, Usage: agent.Usage{Input: 30}, Cost: 30, Tools: []agent.ToolCount{look, pay}, Messages: 5}, value("118")},
	} {
		c.want.Run, c.want.Agent, c.want.Time = "r1", "payer", time.Unix(c.want.Seq(), 0).UTC()
		p, err := journal.Find(v, "s", c.want.ID)
		require.NoError(t, err)
		require.Equal(t, c.want, p)
		require.Equal(t, len(c.state), len(v.UpTo(p.Seq()).State()), p.ID)
		require.Equal(t, string(c.state["paid"]), string(v.UpTo(p.Seq()).State()["paid"]), p.ID)
	}
	for _, id := range []string{agent.CheckpointID("s", 4), agent.CheckpointID("s", 99), agent.CheckpointID("other", 2)} {
		_, err := journal.Find(v, "s", id)
		require.ErrorIs(t, err, agent.CodeNotFound, id)
	}
	for _, id := range []string{"4", "cp-", "cp-04", "cp--1", "s-4", "cp-2", "cp-0" + first[4:], first + "0", "cp-99999999999999999999"} {
		_, err := journal.Find(v, "s", id)
		require.ErrorIs(t, err, agent.CodeInvalidInput, id)
	}
}

// Calls that only read are in no plan; what changes something is named, before the
// point and behind it (HA-134).
func TestPlanNamesWhatIsKeptAndWhatWouldHappenAgain(t *testing.T) {
	b, looked, payed, _ := paid()
	plan := func(id string) (kept, again []string) {
		v := b.view()
		p, err := journal.Find(v, "s", id)
		require.NoError(t, err)
		whole := journal.ForkPlan(v, p, agent.Forked{}, "payer")
		for _, e := range whole.Kept {
			kept = append(kept, e.Run+" "+e.Call+" "+e.Tool)
		}
		for _, e := range whole.MayRepeat {
			again = append(again, e.Run+" "+e.Call+" "+e.Tool)
		}
		return kept, again
	}
	kept, again := plan(looked)
	require.Empty(t, kept, "looking changes nothing")
	require.Equal(t, []string{"r1 t2.1 pay"}, again)
	kept, again = plan(payed)
	require.Equal(t, []string{"r1 t2.1 pay"}, kept)
	require.Empty(t, again)

	// A fork behind the first turn pays once more: from then on the first payment is
	// neither known nor would it be made again by going back into the fork.
	b.run("r2", &agent.Forked{Session: "s", Run: "r1", Checkpoint: looked}, "")
	second := b.calls("pay", agent.CallUnknown, nil)
	kept, again = plan(second)
	require.Equal(t, []string{"r2 t1.1 pay"}, kept)
	require.Empty(t, again)
	_, again = plan(looked)
	require.Equal(t, []string{"r1 t2.1 pay", "r2 t1.1 pay"}, again, "what any run did behind the point")
}

// A retry of a retry of a retry … costs no more than its length.
func TestForksOfForks(t *testing.T) {
	b := &book{}
	b.run("r0", nil, "go")
	at := b.calls("pay", agent.CallOK, nil)
	b.ends(agent.StatusFailed)
	for i := range 200 {
		b.run(fmt.Sprintf("r%d", i+1), &agent.Forked{Session: "s", Run: fmt.Sprintf("r%d", i), Checkpoint: at}, "")
		at = b.calls("pay", agent.CallOK, value(fmt.Sprint(i)))
		b.ends(agent.StatusFailed)
	}
	v := b.view()
	require.Len(t, v.Messages(), 1+2*201)
	require.Equal(t, "199", string(v.State()["paid"]))
	p, err := journal.Last(v, "s", "r200")
	require.NoError(t, err)
	require.Len(t, journal.ForkPlan(v, p, agent.Forked{}, "payer").Kept, 201)
}

// What was said while a run failed is not lost by its retry.
func TestRetryKnowsWhatWasSaidAtTheEnd(t *testing.T) {
	b := &book{}
	b.run("r1", nil, "go")
	b.begin()
	b.end(nil)
	b.say(agent.RoleUser, "by the way")
	b.ends(agent.StatusFailed)
	v := b.view()
	p, err := journal.Last(v, "s", "r1")
	require.NoError(t, err)
	require.Equal(t, []string{"go", "by the way"}, texts(v.UpTo(p.Seq()).Messages()))
}

// A run began where it went back to, and that is where it can be begun otherwise.
func TestBefore(t *testing.T) {
	b, looked, _, _ := paid()
	b.run("r2", &agent.Forked{Session: "s", Run: "r1", Checkpoint: looked}, "other")
	b.says("fine")
	b.ends(agent.StatusFailed)
	b.turn, b.tokens = 0, 0
	b.add(agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: "r3", Spec: spec, Carry: agent.CarryReset}})
	b.say(agent.RoleUser, "anew")
	b.says("new")
	v := b.view()
	for run, want := range map[string]string{"r1": "cp-0", "r2": looked, "r3": "cp-0"} {
		p, err := journal.Before(v, "s", run)
		require.NoError(t, err)
		require.Equal(t, want, p.ID, run)
	}
}

func TestForkKnowsThePrefixAndNothingElse(t *testing.T) {
	b, looked, payed, _ := paid()
	b.run("r2", &agent.Forked{Session: "s", Run: "r1", Checkpoint: looked}, "pay 119 instead")
	v := b.view()
	require.Equal(t, []string{"pay invoice 118", "pay 119 instead"}, texts(v.Messages()))
	require.Empty(t, v.State(), "the payment's note lies behind the point")
	b.ends(agent.StatusCompleted)
	b.run("r3", &agent.Forked{Session: "s", Run: "r1", Checkpoint: payed}, "and thank them")
	v = b.view()
	require.Equal(t, []string{"pay invoice 118", "and thank them"}, texts(v.Messages()))
	require.JSONEq(t, "118", string(v.State()["paid"]))
	runs := journal.Runs(v.Events())
	require.Len(t, runs, 3)
	require.Equal(t, payed, runs[2].Forked.Checkpoint)
	require.Equal(t, []agent.Status{agent.StatusFailed, agent.StatusCompleted, agent.StatusRunning}, []agent.Status{runs[0].Status, runs[1].Status, runs[2].Status})
}

func TestRetryBeginsWhereTheModelHasSomethingToAnswer(t *testing.T) {
	b, _, _, failed := paid()
	p, err := journal.Last(b.view(), "s", "r1")
	require.NoError(t, err)
	require.Equal(t, failed, p.ID, "the third turn had no answer, so all before it stands")

	talked := &book{}
	talked.run("r1", nil, "go")
	said := talked.says("no")
	talked.ends(agent.StatusFailed)
	p, err = journal.Last(talked.view(), "s", "r1")
	require.NoError(t, err)
	require.NotEqual(t, said, p.ID)
	require.Equal(t, 0, p.Turn, "an answer can't be answered")
}

func TestUnsaid(t *testing.T) {
	b := &book{}
	b.run("r1", nil, "first")
	one := b.says("hello")
	b.say(agent.RoleUser, "second")
	two := b.says("again")
	b.ends(agent.StatusCompleted)
	b.run("r2", nil, "third")
	three := b.says("fine")
	v := b.view()
	said := map[string]string{one: "first", two: "second", three: "third"}
	for at, want := range map[string]string{one: "cp-0", two: one, three: agent.CheckpointID("s", 10)} {
		p, err := journal.Find(v, "s", at)
		require.NoError(t, err)
		p, m, err := journal.BeforeLastMessage(v, "s", p)
		require.NoError(t, err)
		require.Equal(t, said[at], m.Text(), at)
		require.Equal(t, want, p.ID, at)
	}
}

func TestDiff(t *testing.T) {
	b, looked, payed, _ := paid()
	v := b.view()
	from, err := journal.Find(v, "s", looked)
	require.NoError(t, err)
	to, err := journal.Find(v, "s", payed)
	require.NoError(t, err)
	d := journal.Diff(v, from, to)
	require.Equal(t, 3, d.Common)
	require.Empty(t, d.Removed)
	require.Len(t, d.Added, 2)
	require.JSONEq(t, "118", string(d.State["paid"]))
	back := journal.Diff(v, to, from)
	require.Len(t, back.Removed, 2)
	require.Equal(t, "null", string(back.State["paid"]))
}

// The input of a flow is the run's own first message, or that of the run that it forks, as package
// play reads it.
func TestFlowInput(t *testing.T) {
	of := func(name string) *agent.Spec {
		return &agent.Spec{Definition: agent.Definition{Name: name}, Flow: true}
	}
	for name, c := range map[string]struct {
		spec   *agent.Spec
		forked *agent.Forked
		want   string
	}{
		"another run":               {of("f"), nil, "second"},
		"a fork":                    {of("f"), &agent.Forked{}, "first"},
		"a fork with another input": {of("f"), &agent.Forked{ReplaceInput: true}, "second"},
		"a fork of another flow":    {of("g"), &agent.Forked{}, "second"},
	} {
		b := &book{}
		run := func(id string, spec *agent.Spec, forked *agent.Forked, said string) {
			b.run(id, forked, said)
			for _, e := range b.events {
				if e.Started != nil && e.Started.Run == id {
					e.Started.Spec = spec
				}
			}
		}
		run("r1", of("f"), nil, "first")
		b.say(agent.RoleUser, "sent")
		if at := b.says("done"); c.forked != nil {
			c.forked.Checkpoint = at
		}
		run("r2", c.spec, c.forked, "second")
		b.say(agent.RoleUser, "sent")
		m := journal.FlowInput(b.view())
		require.Equal(t, c.want, m.Text(), name)
		var j play.Journal
		j.Read(store.KnownEvents(b.view().Events()))
		require.Equal(t, c.want, string(j.Input), name)
	}
}
