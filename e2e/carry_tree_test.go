package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// gatedStore is a store that lets nobody store the log of one session while it is shut.
type gatedStore struct {
	store.Store
	mu      sync.Mutex
	session string
	held    chan struct{} // told of who waits
	opened  chan struct{} // nil while it is open
}

func (s *gatedStore) PutHead(ctx context.Context, h store.Head) error {
	s.mu.Lock()
	session, held, opened := s.session, s.held, s.opened
	s.mu.Unlock()
	if opened != nil && h.Session == session {
		select {
		case held <- struct{}{}:
		default:
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.PutHead(ctx, h)
}

// shut keeps a run that works from going on in a new execution when it is about
// to, and waits until it is.
func (s *gatedStore) shut(t *testing.T, run *client.Run) (open func()) {
	t.Helper()
	s.mu.Lock()
	s.session, s.held, s.opened = run.Session, make(chan struct{}, 1), make(chan struct{})
	held, opened := s.held, s.opened
	s.mu.Unlock()
	<-held
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.InFlightStore, st.InFlight[0].Kind, "it is carried over")
	return func() {
		s.mu.Lock()
		s.opened = nil
		s.mu.Unlock()
		close(opened)
	}
}

// treeFixture is a lead that works on, does what it is ordered to, and gives work to
// helpers, each of which works until it is let go.
type treeFixture struct {
	*stage
	gate   *gatedStore
	notes  *tally
	tasks  []string
	let    map[string]chan struct{}
	orders chan agent.Part
	heard  chan string // what the lead's tools for looking after helpers answered
}

func newTreeFixture(t *testing.T, events int, tasks ...string) *treeFixture {
	t.Helper()
	c := &treeFixture{
		stage: early(t, events), notes: &tally{calls: map[string]int{}}, tasks: tasks, let: map[string]chan struct{}{},
		orders: make(chan agent.Part, 1), heard: make(chan string, 1),
	}
	for _, task := range tasks {
		c.let[task] = make(chan struct{})
	}
	c.gate = &gatedStore{Store: c.dir}
	c.store = c.gate
	c.startWorker(t, c.think, []tool.Tool{c.notes.tool("note")},
		agent.Definition{Name: "tester", Tools: []string{"note"}, Agents: []agent.SubAgent{{Agent: "helper"}}, Lifecycle: true},
		agent.Definition{Name: "helper", Tools: []string{"note"}})
	return c
}

func (c *treeFixture) think(ctx context.Context, req *model.Request) *model.Reply {
	task, last := req.Messages[0].Text(), req.Messages[len(req.Messages)-1]
	if strings.Contains(last.Text(), "You are being stopped") {
		return saysText(`{"summary":"I had half"}`)
	}
	again := asksFor(model.CallPart("", "note", fmt.Sprintf(`{"text":"%d"}`, len(req.Messages))))
	if let := c.let[task]; let != nil {
		select {
		case <-let:
			return saysText(task + " is done")
		default:
			return again
		}
	}
	if len(req.Messages) == 1 {
		return c.delegate()
	}
	if r := last.Parts[0].Result; r != nil && strings.HasPrefix(r.Tool, "subagent_") && !strings.HasPrefix(r.Tool, agent.SubAgentPrefix) {
		c.heard <- r.Text
	}
	select {
	case order := <-c.orders:
		return asksFor(order)
	default:
		return again
	}
}

// delegate gives every task to a helper in the background.
func (c *treeFixture) delegate() *model.Reply {
	reply := asksFor()
	for _, task := range c.tasks {
		reply.Parts = append(reply.Parts, model.CallPart("", "subagent__helper", fmt.Sprintf(`{"task":%q,"background":true}`, task)))
	}
	return reply
}

// helper is the run of the nth task.
func (c *treeFixture) helper(t *testing.T, run *client.Run, n int) *client.Run {
	t.Helper()
	h, err := c.Get(t.Context(), fmt.Sprintf("%s/helper-%d", run.Session, n))
	require.NoError(t, err)
	return h
}

// children reads what the lead was told of its helpers.
func (c *treeFixture) children(t *testing.T) (told []string) {
	t.Helper()
	var list []struct{ Child, Status, Text string }
	require.NoError(t, json.Unmarshal([]byte(<-c.heard), &list))
	for _, one := range list {
		told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s %s", one.Child[strings.LastIndexByte(one.Child, '/')+1:], one.Status, one.Text)))
	}
	return told
}

// A run that is carried over again and again hears of agents in the background
// that end before, meanwhile and after, knows them all, and can stop those that
// live, also while it is carried over (HA-96, HA-98, HA-100, HA-109).
func TestCarryWithAgentsInTheBackground(t *testing.T) {
	t.Parallel()
	c := newTreeFixture(t, 60, "early", "middle", "late", "never")
	run := c.begin(t, "lead", nil)
	c.until(t, run, agent.EventTurnEnded)
	close(c.let["early"])
	require.Equal(t, agent.StatusCompleted, c.rest(t, c.helper(t, run, 1)).Status)
	c.carried(t, run.Session, 3)

	open := c.gate.shut(t, run)
	close(c.let["middle"])
	require.Equal(t, agent.StatusCompleted, c.rest(t, c.helper(t, run, 2)).Status)
	open()
	c.carried(t, run.Session, 2)
	c.carried(t, run.Session+"/helper-3", 1)

	// The lead fetches a result from Temporal before it knows of the end.
	want := []string{"helper-1 completed early is done", "helper-2 completed middle is done", "helper-3 running", "helper-4 running"}
	var got []string
	for range 20 {
		c.orders <- model.CallPart("", "subagent_list", `{}`)
		if got = c.children(t); slices.Equal(want, got) {
			break
		}
	}
	require.Equal(t, want, got)
	c.orders <- model.CallPart("", "subagent_wait", fmt.Sprintf(`{"children":["%s/helper-2","%[1]s/helper-3"]}`, run.Session))
	require.Eventually(t, func() bool {
		st, err := run.Status(t.Context())
		return err == nil && len(st.InFlight) > 0 && st.InFlight[0].Name == "subagent_wait"
	}, patience, 2*time.Millisecond)
	close(c.let["late"])
	require.Equal(t, []string{"helper-2 completed middle is done", "helper-3 completed late is done"}, c.children(t))
	c.carried(t, run.Session, 2)

	open = c.gate.shut(t, run)
	_, err := run.Stop(t.Context(), "enough", &client.StopOptions{Deadline: 12 * time.Second})
	require.NoError(t, err)
	open()
	o := c.rest(t, run)
	require.Equal(t, agent.StatusStopped, o.Status, "%+v", o.Error)
	require.Equal(t, agent.StatusStopped, c.rest(t, c.helper(t, run, 4)).Status)
	require.Len(t, o.Handoff.Children, 4)
	require.Equal(t, "I had half", o.Handoff.Children[3].Summary)
	_, count := c.intact(t, run.Session)
	require.Equal(t, 4, count[agent.EventChildStarted])
	require.Equal(t, 4, count[agent.EventChildEnded])
	require.GreaterOrEqual(t, len(c.executions(t, run)), 1+3+2+2)
	c.allOnce(t, run)
}

// allOnce checks that no call of the lead and its helpers was made twice, and that
// every one that is told to be done was made.
func (c *treeFixture) allOnce(t *testing.T, run *client.Run) {
	t.Helper()
	done := 0
	for i := range len(c.tasks) + 1 {
		session, id := run.Session, ""
		if i > 0 {
			session = fmt.Sprintf("%s/helper-%d", run.Session, i)
		}
		events, _ := c.intact(t, session)
		for _, e := range events {
			switch {
			case e.Started != nil:
				id = e.Started.Run
			case e.Type == agent.EventCallDone && e.Call.Tool == "note" && e.Call.Status == agent.CallOK:
				done++
				require.Equal(t, 1, c.notes.calls[agent.IdempotencyKey(id, e.Call.Call)])
			}
		}
	}
	c.notes.once(t, c.notes.made())
	require.InDelta(t, done, c.notes.made(), 2, "but for what was given up in flight")
}

// A hold that is said while a run is carried over holds it in the next execution,
// and what works below it, until it is removed there.
func TestCarryHolds(t *testing.T) {
	t.Parallel()
	c := newTreeFixture(t, 50, "never")
	run := c.begin(t, "lead", nil)
	c.until(t, run, agent.EventTurnEnded)
	helper := c.helper(t, run, 1)
	for _, o := range []agent.Command{agent.PauseCommand{Reason: "lunch"}, agent.InterruptCommand{Reason: "fire"}} {
		open, before := c.gate.shut(t, run), c.current(t, run.Session)
		if o.Verb() == agent.VerbPause {
			require.Equal(t, agent.EffectAccepted, c.say(t, run, o).Effect)
		} else {
			require.NoError(t, signals.Signal(t.Context(), c.temporal, run.Session, o))
		}
		open()
		w := c.suspended(t, run)
		require.Equal(t, agent.SuspensionHeld, w.Kind)
		require.Equal(t, o.Verb(), w.Holds[0].Verb)
		require.NotEqual(t, before, c.current(t, run.Session))
		require.Equal(t, agent.HoldInherited, c.suspended(t, helper).Holds[0].From)
		asked := c.notes.made()
		c.push(t, run.Session, 1)
		c.push(t, helper.Session, 1)
		require.Equal(t, w, c.suspended(t, run))
		require.Equal(t, asked, c.notes.made(), "nothing was begun")
		_, err := run.Resume(t.Context(), &client.ResumeOptions{Suspension: w.ID})
		require.NoError(t, err)
		c.carried(t, run.Session, 1)
		c.carried(t, helper.Session, 1)
	}
	_, err := run.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCancelled, c.rest(t, run).Status)
	require.Equal(t, agent.StatusCancelled, c.rest(t, helper).Status)
	_, n := c.intact(t, run.Session)
	require.Equal(t, []int{2, 2, 2, 2}, []int{n[agent.EventHoldAdded], n[agent.EventHoldRemoved], n[agent.EventRunSuspended], n[agent.EventRunResumed]})
	_, n = c.intact(t, helper.Session)
	// A call that was about to begin may meet the lead's end before the order for it comes.
	early := n[agent.EventHoldAdded] - 2
	require.Contains(t, []int{0, 1}, early)
	require.Equal(t, []int{2, 2 + early, 2}, []int{n[agent.EventHoldRemoved], n[agent.EventRunSuspended], n[agent.EventRunResumed]})
	c.allOnce(t, run)
}

// What a run tells the one above it as it goes on in a new execution arrives
// there: an execution that has closed sends nothing any more.
func TestCarryTellsTheRunAbove(t *testing.T) {
	t.Parallel()
	s, notes := early(t, 60), &tally{calls: map[string]int{}}
	s.startWorker(t, func(_ context.Context, req *model.Request) *model.Reply {
		switch {
		case len(req.Messages) > 1:
			return saysText("done")
		case req.Messages[0].Text() == "lead":
			return asksFor(model.CallPart("", "subagent__helper", `{"task":"buy"}`))
		}
		reply := asksFor(model.CallPart("", "pay", `{"text":"800"}`))
		for i := range 40 { // which fill its history, so that it goes on as soon as it rests
			reply.Parts = append(reply.Parts, model.CallPart("", "note", fmt.Sprintf(`{"text":"%d"}`, i)))
		}
		return reply
	}, []tool.Tool{notes.tool("note"), notes.tool("pay")},
		agent.Definition{Name: "tester", Tools: []string{"note", "pay"}, Agents: []agent.SubAgent{{Agent: "helper"}}},
		agent.Definition{Name: "helper", Tools: []string{"note", "pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}}})
	run := s.begin(t, "lead", nil)
	require.Equal(t, agent.SuspensionAwaitingChildren, s.suspended(t, run).Kind)
	helper, err := s.Get(t.Context(), run.Session+"/helper-1")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.current(t, helper.Session) != helper.ID }, patience, 10*time.Millisecond, "it is carried over")
	ack := s.say(t, run, agent.ApproveCommand{Request: "helper-1/" + s.suspended(t, helper).Requests[0].ID})
	require.Equal(t, agent.EffectAccepted, ack.Effect)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	notes.once(t, 41)
}

// tally is a tool that keeps how often each of its calls was made.
type tally struct {
	mu    sync.Mutex
	calls map[string]int
}

func (l *tally) tool(name string) tool.Tool {
	type in struct {
		Text string `json:"text"`
	}
	return tool.New(name, "notes it", func(_ context.Context, c *tool.Call, in in) (string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls[c.Key]++
		return in.Text, nil
	}, &tool.Options{ReadOnly: name == "note"})
}

func (l *tally) made() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// once checks that every call was made, and made once.
func (l *tally) once(t *testing.T, calls int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.calls, calls)
	for key, n := range l.calls {
		require.Equal(t, 1, n, key)
	}
}
