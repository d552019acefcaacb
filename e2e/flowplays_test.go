package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// scene is a flow, what comes to it from outside, and what has to come of it. It is played in
// memory, in memory with every function run again after each result, and on a server.
type scene struct {
	// flows are made for each play; the first is started, and may call the others as agents. then
	// are those of the build that takes over at a deploy.
	flows, then func(*world) []flow.Flow
	acts        []act
	text        string     // the result
	fails       agent.Code // instead of a text
	did         string     // all effects
}

// act is something that comes from outside, at a rest.
type act struct {
	open string // the steps that wait at the rest, sorted
	did  string // the effects before it
	do   any
}

// What can come from outside. A step of a run below has the run's path before it:
// "inner-1: ask".
type (
	answers  struct{ step, text string }
	mistakes struct{ step, text string } // an answer that is refused
	approves struct{ step string }
	emits    struct {
		topic   string
		payload any
	}
	deploys struct{ step, text string } // a newer build takes over, and gets the answer
	cutsOff struct{}                    // an interrupt and a resume, while a step is in progress
)

// world has the effects of a play.
type world struct {
	counts
	keys []string // of calls
}

// do is a step with an effect.
func (w *world) do(c flow.Context, name string) error {
	_, err := flow.Do(c, name, func(context.Context, *tool.Call) (int, error) { return w.add(name), nil }, nil)
	return err
}

func (w *world) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for name, n := range w.n {
		all = append(all, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// player plays a scene's flows.
type player interface {
	// rest waits until exactly these steps wait for something from outside, and nothing else goes
	// on.
	rest(t *testing.T, open string)
	act(t *testing.T, do any)
	end(t *testing.T) (text string, code agent.Code)
}

func (s scene) play(t *testing.T, w *world, p player) {
	t.Helper()
	for _, a := range s.acts {
		if _, working := a.do.(cutsOff); working {
			require.Eventually(t, func() bool { return w.String() == a.did }, patience, 5*time.Millisecond)
		} else {
			p.rest(t, a.open)
		}
		require.Equal(t, a.did, w.String(), "at %s", a.open)
		p.act(t, a.do)
	}
	text, code := p.end(t)
	require.Equal(t, s.text, text)
	require.Equal(t, s.fails, code)
	require.Equal(t, s.did, w.String())
}

// memory plays flows without a worker and a server.
type memory struct {
	again  bool // run the functions again after each result
	scene  scene
	world  *world
	flows  map[string]flow.Flow
	root   *memoryRun
	cut    bool            // steps of flows are cut off
	tried  map[string]bool // that were cut off
	events int
	// asking are the steps whose code has asked, and answered what they got, by name.
	asking   map[string]*agent.ToolQuestion
	answered map[string][]agent.ToolAnswer
}

// memoryRun is a run of a flow.
type memoryRun struct {
	path, flow string
	input      []byte
	play       *play.Play
	known      []play.Result
	below      map[string]*memoryRun // by step
}

func newMemory(t *testing.T, s scene, w *world, again bool) *memory {
	m := &memory{again: again, scene: s, world: w, tried: map[string]bool{}, asking: map[string]*agent.ToolQuestion{}, answered: map[string][]agent.ToolAnswer{}}
	m.install(s.flows(w))
	_, m.cut = s.first().(cutsOff)
	m.root = m.start(t, "", s.flows(w)[0].Definition().Name, []byte("go"))
	m.settle(t, m.root)
	return m
}

// first returns the first thing that comes from outside.
func (s scene) first() any {
	if len(s.acts) == 0 {
		return nil
	}
	return s.acts[0].do
}

func (m *memory) install(flows []flow.Flow) {
	m.flows = map[string]flow.Flow{}
	for _, f := range flows {
		m.flows[f.Definition().Name] = f
	}
}

func (m *memory) start(t *testing.T, path, name string, input []byte) *memoryRun {
	r := &memoryRun{path: path, flow: name, input: input, below: map[string]*memoryRun{}}
	m.run(t, r)
	return r
}

// run runs a function from its beginning.
func (m *memory) run(t *testing.T, r *memoryRun) {
	t.Helper()
	if r.play != nil {
		r.play.Close()
	}
	r.play = play.Start(m.flows[r.flow].Function(), r.input, time.Unix(0, 0))
	t.Cleanup(r.play.Close)
	require.NoError(t, r.play.Run(t.Context(), time.Minute, r.known))
}

func (m *memory) deliver(t *testing.T, r *memoryRun, path string, status agent.CallStatus, result any) {
	t.Helper()
	text, ok := result.(string)
	if !ok {
		raw, err := json.Marshal(result)
		require.NoError(t, err)
		text = string(raw)
	}
	m.events++
	asked, _ := r.play.Step(path)
	one := play.Result{Path: path, Tool: asked.Tool, Arguments: asked.Arguments, Status: status, Text: text, At: time.Unix(int64(m.events), 0)}
	r.known = append(r.known, one)
	if m.again {
		m.run(t, r)
		return
	}
	require.NoError(t, r.play.Run(t.Context(), time.Minute, []play.Result{one}))
}

// settle makes the steps that need nothing from outside.
func (m *memory) settle(t *testing.T, r *memoryRun) {
	t.Helper()
	for made := true; made; {
		made = slices.ContainsFunc(r.play.Steps(), func(s play.Step) bool { return m.make(t, r, s) })
	}
}

// make makes a step. It reports whether it has its result.
func (m *memory) make(t *testing.T, r *memoryRun, s play.Step) bool {
	t.Helper()
	path := s.ProviderID
	if name, ok := strings.CutPrefix(s.Tool, agent.SubAgentPrefix); ok {
		return m.makeBelow(t, r, s, name)
	}
	switch s.Tool {
	case agent.DoTool:
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if m.cut && m.tried[path] {
			return false
		}
		if m.tried[path] = true; m.cut {
			cancel()
		}
		name := named(r.path, path)
		if m.asking[name] != nil {
			return false
		}
		h := &toolcall.Hooks{Answers: m.answered[name], Waits: true}
		text, err := s.Do(ctx, tool.Call{Key: path, Attempt: 1}.With(h))
		switch m.asking[name] = h.Question; {
		case m.cut, h.Question != nil:
			return false
		case err != nil:
			m.deliver(t, r, path, agent.CallFailed, err.Error())
		default:
			m.deliver(t, r, path, agent.CallOK, text)
		}
		return true
	case agent.AwaitResumptionTool:
		if _, _, bad := signals.DecodeParkRequest(s.Arguments); bad != nil {
			m.deliver(t, r, path, agent.CallRejected, bad.Message)
			return true
		}
		if waitOf(t, s).After > 0 {
			m.deliver(t, r, path, agent.CallOK, flow.Event{TimedOut: true})
			return true
		}
	}
	return false
}

func (m *memory) makeBelow(t *testing.T, r *memoryRun, s play.Step, name string) bool {
	t.Helper()
	below := r.below[s.ProviderID]
	if below == nil {
		var in struct{ Task string }
		require.NoError(t, json.Unmarshal(s.Arguments, &in))
		below = m.start(t, strings.TrimPrefix(fmt.Sprintf("%s/%s-%d", r.path, name, len(r.below)+1), "/"), name, []byte(in.Task))
		r.below[s.ProviderID] = below
	}
	m.settle(t, below)
	d, ended, err := below.play.Done()
	switch {
	case !ended:
		return false
	case err != nil:
		m.deliver(t, r, s.ProviderID, agent.CallFailed, map[string]any{"status": agent.StatusFailed, "reason": agent.CodeOf(err), "error": err.Error()})
	default:
		m.deliver(t, r, s.ProviderID, agent.CallOK, map[string]any{"status": agent.StatusCompleted, "text": d.Text, "output": d.Output})
	}
	return true
}

// waitOf returns what a step waits for.
func waitOf(t *testing.T, s play.Step) agent.Conditions {
	t.Helper()
	var in struct{ Conditions agent.Conditions }
	require.NoError(t, json.Unmarshal(s.Arguments, &in))
	return in.Conditions
}

// waiting lists the open steps of a run and of all runs below it.
func (m *memory) waiting(r *memoryRun) (all []string) {
	for _, s := range r.play.Steps() {
		if below := r.below[s.ProviderID]; below != nil {
			all = append(all, m.waiting(below)...)
		} else {
			all = append(all, named(r.path, s.ProviderID))
		}
	}
	return all
}

// named returns the name of a step in a scene.
func named(run, step string) string {
	if run == "" {
		return step
	}
	return run + ": " + step
}

func listed(steps []string) string {
	slices.Sort(steps)
	return strings.Join(steps, ", ")
}

func (m *memory) rest(t *testing.T, open string) {
	t.Helper()
	require.Equal(t, open, listed(m.waiting(m.root)))
}

func (m *memory) act(t *testing.T, do any) {
	t.Helper()
	switch do := do.(type) {
	case answers:
		m.answer(t, do.step, do.text)
	case approves:
		r, path := m.find(t, do.step)
		m.deliver(t, r, path, agent.CallOK, map[string]any{"approved": true})
	case emits:
		raw, err := json.Marshal(do.payload)
		require.NoError(t, err)
		came := flow.Event{Topic: do.topic, Payload: raw}
		for _, s := range m.root.play.Steps() {
			if s.Tool == agent.AwaitResumptionTool && waitOf(t, s).Event.Topic == do.topic {
				m.deliver(t, m.root, s.ProviderID, agent.CallOK, came)
			}
			if q := m.asking[s.ProviderID]; q != nil && q.Until != nil && q.Until.Event.Topic == do.topic {
				text, err := json.Marshal(came)
				require.NoError(t, err)
				m.answerIn(s.ProviderID, agent.ToolAnswer{Data: text})
			}
		}
	case deploys:
		m.install(m.scene.then(m.world))
		m.run(t, m.root)
		m.answer(t, do.step, do.text)
	case cutsOff:
		m.cut = false
	}
	m.settle(t, m.root)
}

// answer answers an open step, or what its code has asked.
func (m *memory) answer(t *testing.T, step, text string) {
	t.Helper()
	if m.asking[step] != nil {
		m.answerIn(step, agent.ToolAnswer{Text: text})
		return
	}
	r, path := m.find(t, step)
	m.deliver(t, r, path, agent.CallOK, text)
}

// answerIn lets the code of a step run again, with an answer.
func (m *memory) answerIn(step string, a agent.ToolAnswer) {
	a.Name = m.asking[step].Name
	m.answered[step] = append(m.answered[step], a)
	delete(m.asking, step)
}

// find finds an open step.
func (m *memory) find(t *testing.T, step string) (*memoryRun, string) {
	t.Helper()
	r := m.root
	run, path, below := strings.Cut(step, ": ")
	if !below {
		return r, step
	}
	for r.path != run {
		var next *memoryRun
		for _, b := range r.below {
			if run == b.path || strings.HasPrefix(run, b.path+"/") {
				next = b
			}
		}
		require.NotNil(t, next, step)
		r = next
	}
	return r, path
}

func (m *memory) end(t *testing.T) (text string, code agent.Code) {
	t.Helper()
	d, ended, err := m.root.play.Done()
	require.True(t, ended, "it waits: %v", m.waiting(m.root))
	return d.Text, agent.CodeOf(err)
}

// onServer plays flows on a server.
type onServer struct {
	*stage
	scene   scene
	world   *world
	options *worker.Options
	run     *client.Run
}

func newOnServer(t *testing.T, s scene, w *world) *onServer {
	st := on(t, shared(t))
	t.Cleanup(func() { st.replay(t) })
	flows := s.flows(w)
	p := &onServer{stage: st, scene: s, world: w, options: &worker.Options{
		TaskQueue: st.queue, Flows: flows, Store: st.store, Logger: zap.NewNop(), Temporal: stopsSoon,
	}}
	st.worker = st.open(t, p.options)
	run, err := st.Start(t.Context(), flows[0].Definition().Name, "go", nil)
	require.NoError(t, err)
	p.run = run
	return p
}

// openRequests returns what the whole tree waits for, and whether all of it is suspended.
func (p *onServer) openRequests(t *testing.T) (steps []string, requests map[string]agent.Request, suspended bool) {
	t.Helper()
	nodes, err := p.run.Tree(t.Context())
	require.NoError(t, err)
	suspended, requests = true, map[string]agent.Request{}
	for _, n := range nodes {
		if n.Status.Ended() {
			continue
		}
		run, err := p.Get(t.Context(), n.Session)
		require.NoError(t, err)
		st, err := run.Status(t.Context())
		require.NoError(t, err)
		suspended = suspended && st.Suspension != nil && st.Status == agent.StatusSuspended
		if st.Suspension == nil {
			continue
		}
		path := strings.TrimPrefix(strings.TrimPrefix(n.Session, p.run.Session), "/")
		for _, r := range st.Suspension.Requests {
			step := named(path, r.Step)
			steps, requests[step] = append(steps, step), r
		}
		for _, w := range st.Suspension.Waits {
			steps = append(steps, named(path, w.Step))
		}
	}
	return steps, requests, suspended
}

func (p *onServer) rest(t *testing.T, open string) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("it waits for %q", last)
		}
	}()
	require.Eventually(t, func() bool {
		steps, _, suspended := p.openRequests(t)
		last = listed(steps)
		return suspended && last == open
	}, patience, 20*time.Millisecond)
	require.Equal(t, agent.StatusSuspended, p.stage.rest(t, p.run).Status, "whoever waits is told")
}

// decide sends a decision about an open step, always to the run at the top.
func (p *onServer) decide(t *testing.T, step string, command func(r agent.Request, name string) agent.Command) error {
	t.Helper()
	_, requests, _ := p.openRequests(t)
	r, ok := requests[step]
	require.True(t, ok, step)
	name := strings.TrimPrefix(strings.TrimPrefix(r.Session, p.run.Session)+"/"+r.ID, "/")
	_, err := signals.Update(t.Context(), p.temporal, p.run.Session, command(r, name))
	return err
}

func (p *onServer) act(t *testing.T, do any) {
	t.Helper()
	answer := func(text string) func(agent.Request, string) agent.Command {
		return func(_ agent.Request, name string) agent.Command {
			return agent.AnswerCommand{Request: name, Text: text}
		}
	}
	switch do := do.(type) {
	case answers:
		require.NoError(t, p.decide(t, do.step, answer(do.text)))
	case mistakes:
		require.ErrorIs(t, p.decide(t, do.step, answer(do.text)), agent.CodeInvalidInput)
	case approves:
		require.NoError(t, p.decide(t, do.step, func(r agent.Request, name string) agent.Command {
			return agent.ApproveCommand{Request: name, Digest: r.Digest}
		}))
	case emits:
		raw, err := json.Marshal(do.payload)
		require.NoError(t, err)
		p.say(t, p.run, agent.EmitCommand{Topic: do.topic, Payload: raw})
	case deploys:
		p.worker.Stop()
		next := *p.options
		next.Flows = p.scene.then(p.world)
		p.worker = p.open(t, &next)
		require.NoError(t, p.decide(t, do.step, answer(do.text)))
	case cutsOff:
		p.say(t, p.run, agent.InterruptCommand{})
		require.Equal(t, agent.SuspensionHeld, p.suspended(t, p.run).Kind)
		p.say(t, p.run, agent.ResumeCommand{})
	}
}

func (p *onServer) end(t *testing.T) (text string, code agent.Code) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o, err := p.run.Result(ctx)
	require.NoError(t, err)
	if o.Error != nil {
		code = o.Error.Code
	}
	events, _ := p.intact(t, p.run.Session)
	for _, e := range events {
		if e.Call != nil {
			require.NotEmpty(t, e.Call.Step, "%s says whose it is", e.Type)
		}
	}
	return o.Text, code
}
