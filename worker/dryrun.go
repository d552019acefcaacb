package worker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/handoff"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/window"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/tool"
)

// DryRun returns what a run would be that a worker with these options starts in a new session.
// It starts no run, calls no model and needs no server and no store. It asks the tool sources
// of the agent for their tools, as a run does when it begins. It makes no check of
// hooks.before_run, and takes the task as accepted. The start's input has texts, and
// no files. The errors are those with which the run would fail before its first turn.
func DryRun(ctx context.Context, o *Options, start agent.Start) (*agent.Preview, error) {
	d, err := o.fit()
	if err != nil {
		return nil, err
	}
	a, ok := d.Agents[start.Agent]
	if !ok {
		return nil, agent.Errorf(agent.CodeUnknownAgent, "agent %q is not in this worker's build; it has %s", start.Agent, names(d.Agents)).WithPath("agent")
	}
	if check := d.FlowInputs[start.Agent]; check != nil && start.Input.Text != "" {
		if err := check(start.Input.Text); err != nil {
			return nil, err
		}
	}
	d.Logger = o.slogger()
	d.Pins = nil // nothing is pinned by a look
	m := dryMachine{ctx: ctx, d: d, agent: a}
	start.V = agent.Version
	brief := ""
	if start.Input.Briefing != nil {
		brief = handoff.Briefing(*start.Input.Briefing)
	}
	m.step(loop.Begin{Session: dryRunSession, Run: "dry-run", Start: start, BriefingText: brief})
	if m.err != nil {
		return nil, m.err
	}
	return m.preview(ctx), nil
}

// dryRunSession is the session of a look, whose name nobody has chosen: a stateless agent takes no other.
const dryRunSession = "00000000-0000-0000-0000-000000000000"

// accepted is the verdict that a look assumes of a check of hooks.before_run.
const accepted = `{"verdict":"accept"}`

// dryMachine steps the machine up to its first request, so that the preview is what a run
// would do and no copy of it.
type dryMachine struct {
	ctx   context.Context
	d     *activities.Activities
	agent activities.Agent
	state loop.State
	asked bool             // the machine has asked for a model call
	order *wire.SkillOrder // the skills that this call reads
	err   error
}

func (m *dryMachine) step(in loop.Input) {
	now := loop.Moment{At: time.Now().UTC(), Revision: loop.Revision, MatchBudget: match.NewBudget(match.Looks)}
	state, effects, err := loop.Step(m.state, now, in)
	if err != nil {
		m.err = err
		return
	}
	m.state = state
	for _, e := range effects {
		if m.err == nil {
			m.perform(e)
		}
	}
}

func (m *dryMachine) perform(e loop.Effect) {
	switch e := e.(type) {
	case loop.Open:
		spec := m.agent.Spec
		if e.Judge != nil {
			if m.err = m.d.WithJudge(&spec, *e.Judge); m.err != nil {
				return
			}
		}
		m.step(loop.Opened{Spec: &spec, Sources: m.agent.Sources})
	case loop.List:
		out, err := m.d.ListTools(m.ctx, e.ListArgs)
		if err != nil {
			m.err = err
			return
		}
		m.step(loop.Listed{Tools: out.Tools, Instructions: out.Instructions, Left: out.Left})
	case loop.CallTool:
		if e.Check != nil && e.Check.Point == agent.PointBeforeRun { // nothing is asked: a look takes the task as accepted
			m.step(loop.ToolReturned{Result: agent.ToolResult{Call: e.Call, Tool: e.Tool, Status: agent.CallOK, Text: accepted}})
		}
	case loop.CallModel:
		m.asked, m.order = true, e.Skills
	case loop.Complete:
		if o := m.state.End.Outcome; o != nil && o.Error != nil {
			m.err = o.Error
		}
	case loop.Seal: // a run that fails before its first turn stores why
		if o := m.state.End.Outcome; o != nil && o.Error != nil {
			m.err = o.Error
		}
	}
}

// preview describes a run at its first request.
func (m *dryMachine) preview(ctx context.Context) *agent.Preview {
	s := m.state
	p := &agent.Preview{V: agent.Version, Type: "preview", Agent: s.Spec.Name, Spec: *s.Spec}
	for _, e := range s.Log.Tail {
		if e.Started != nil && e.Started.Spec != nil {
			p.Spec = *e.Started.Spec // with the texts, which the state leaves out
		}
		if e.Message != nil {
			p.Messages = append(p.Messages, *e.Message)
		}
	}
	sent := &p.Spec
	if m.order != nil {
		sent, p.Skills = m.d.FirstSkills(ctx, &p.Spec, p.Messages, m.order)
	}
	sent = activities.FirstRequest(sent)
	p.Instructions = sent.Instructions
	for _, t := range p.Spec.Toolset {
		one := toolPreview(p.Spec.Rules, t)
		_, offered := sent.Tool(t.Name)
		one.Hidden = !offered
		p.Tools = append(p.Tools, one)
	}
	if m.asked {
		bytes, tokens := window.Estimate(sent, p.Messages)
		p.Request = agent.RequestSize{Bytes: bytes, Tokens: tokens, Window: p.Spec.Window}
	}
	return p
}

// toolPreview says what rules decide about a tool. A run decides the same for each call, with
// its arguments.
func toolPreview(rules []agent.Rule, t agent.ToolSpec) agent.ToolPreview {
	p := agent.ToolPreview{Tool: t.Name, Executor: t.Executor, ReadOnly: t.ReadOnly, Ruling: agent.RulingAllow}
	if source, _, ok := strings.Cut(t.Name, tool.Separator); ok && t.Executor == "" {
		p.Source = source
	}
	var counts agent.Rule
	var maybe []agent.Rule
	spoken := false // by a rule before the one for all others
	for _, r := range rules {
		switch {
		case !r.Covers(t) || r.Otherwise && spoken:
		case len(r.Arguments) > 0 || r.AfterCalls > 0:
			maybe = append(maybe, r)
		default:
			if spoken = true; r.Strictness() > counts.Strictness() {
				counts = r
			}
		}
	}
	if t.Approval != nil && t.Approval.Rule().Strictness() >= counts.Strictness() {
		counts = t.Approval.Rule()
	}
	if counts.Do != "" {
		p.Ruling, p.Reason, p.Approvers = counts.Do, counts.Reason, counts.Approvers
	}
	for _, r := range maybe {
		if r.Strictness() > counts.Strictness() && r.Do != p.Ruling && !slices.Contains(p.Maybe, r.Do) {
			p.Maybe = append(p.Maybe, r.Do)
		}
	}
	return p
}
