package evalrun

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

type gradeInput struct {
	Session string    `json:"session"`
	Case    eval.Case `json:"case"`
	N       int       `json:"trial"`
	// Status and Reason replace those of a run that the evaluation ended; empty keeps them.
	Status agent.Status `json:"status,omitempty"`
	Reason string       `json:"reason,omitempty"`
}

// grade reads what the trial did, and lets the graders decide that need nothing else.
func (s *steps) grade(ctx context.Context, in gradeInput) (eval.Trial, error) {
	if err := s.allowed(&in.Case); err != nil {
		return eval.Trial{}, err
	}
	f, run, err := s.facts(ctx, in)
	if err != nil {
		return eval.Trial{}, err
	}
	t := eval.Trial{
		Counts: eval.Counts{Case: in.Case.Name, N: in.N}, Session: in.Session, Run: run.id, Model: run.model, Build: s.build(ctx, in.Session), Status: f.Status, Reason: cutTo(f.Reason, 500),
		Text: cutTo(f.Text, eval.MaxText), RunCost: f.Cost, Turns: f.Turns, Tokens: f.Tokens, Duration: f.Duration,
	}
	if len(f.Output) > 0 {
		t.Text = cutTo(string(f.Output), eval.MaxText)
	}
	for _, c := range f.Calls[:min(len(f.Calls), eval.MaxTools)] {
		t.Tools = append(t.Tools, c.Tool)
	}
	for i := range in.Case.Graders {
		if g := &in.Case.Graders[i]; g.Pure() != nil {
			t.Verdicts = append(t.Verdicts, g.Verdict(f))
		}
	}
	return t, nil
}

// buildPatience bounds the question for a build: a trial counts without it.
const buildPatience = 5 * time.Second

// build returns the build of the worker that has the run; empty if none answers.
func (s *steps) build(ctx context.Context, session string) string {
	ctx, stop := context.WithTimeout(ctx, buildPatience)
	defer stop()
	run, err := s.o.Runs.Get(ctx, session)
	if err != nil {
		return ""
	}
	status, err := run.Status(ctx)
	if err != nil {
		return ""
	}
	return status.Build
}

func cutTo(text string, most int) string { return excerpt.Of(text, most, len(text)) }

// ran is what a trial's record says of its run.
type ran struct{ id, model string }

// facts reads what the trial did from the session's events, and those of all runs below.
func (s *steps) facts(ctx context.Context, in gradeInput) (*grade.Facts, ran, error) {
	r := newFactReader(in.Session)
	r.facts.Case, r.facts.N = in.Case.Name, in.N
	for e, err := range s.o.Runs.Events(ctx, in.Session, &client.EventsOptions{Tree: true}) {
		if err != nil {
			return nil, r.run, err
		}
		r.take(e)
	}
	if r.outcome == nil {
		return nil, r.run, agent.Errorf(agent.CodeChunkMissing, "the store has no end of the run in session %s: an agent that is stateless stores none, and can't be evaluated; else, does the evaluator have the store of its worker?", in.Session)
	}
	r.finish()
	r.facts.Task = in.Case.Task()
	if in.Status != "" {
		r.facts.Status, r.facts.Reason = in.Status, in.Reason
	}
	return r.facts, r.run, nil
}

// finish takes in the outcome.
func (r *factReader) finish() {
	f, o := r.facts, r.outcome
	f.Status, f.Reason, f.Text, f.Output = o.Status, o.Reason, o.Text, o.Output
	f.Turns, f.Tokens, f.Cost, f.Duration = o.Tree.Turns, o.Tree.Usage.Total(), o.Tree.Cost, agent.Duration(o.Ended.Sub(o.Started))
	// A run that did not complete has no answer, and the last thing that it said is next to it.
	if f.Text == "" {
		f.Text = r.said
	}
}

// factReader makes facts of events.
type factReader struct {
	facts   *grade.Facts
	session string
	run     ran
	outcome *agent.Outcome
	said    string // the last text of the run's own model
	files   int    // that came with the task
	// calls and requests are the places of those that may still change, by session and id.
	calls, requests map[string]int
}

func (r *factReader) take(e client.Event) {
	own := e.Session == r.session
	switch {
	case e.Started != nil && own:
		r.run.id = e.Started.Run
		if e.Started.Spec != nil {
			r.run.model = e.Started.Spec.Model
		}
	case e.Message != nil:
		r.message(e, own)
	case e.Call != nil:
		r.call(e)
	case e.Type == agent.EventRequestOpened && e.Request != nil:
		r.request(e)
	case e.Answer != nil:
		if i, ok := r.requests[e.Session+" "+e.Answer.Request]; ok {
			r.facts.Requests[i].Decision = e.Answer.Decision
		}
	case e.Outcome != nil && own:
		r.outcome = e.Outcome
	}
}

func (r *factReader) message(e client.Event, own bool) {
	if text := e.Message.Text(); own && e.Message.Role == agent.RoleAssistant && text != "" {
		r.said = text
	}
	if own && e.Message.Role == agent.RoleUser && e.Message.Note == "" && r.facts.Task == "" {
		r.facts.Task, r.files = e.Message.Text(), len(e.Message.FileParts())
	}
	for _, c := range e.Message.ToolCalls() {
		if known := r.at(e.Session, c.ID, c.Tool); known != nil {
			known.Arguments = c.Arguments
		}
	}
	for _, p := range e.Message.Parts {
		if p.Result == nil {
			continue
		}
		if known := r.at(e.Session, p.Result.Call, p.Result.Tool); known != nil {
			known.Status = p.Result.Status
		}
	}
}

// call takes in an update of a call. Those of a flow are in no message.
func (r *factReader) call(e client.Event) {
	if known := r.at(e.Session, e.Call.Call, e.Call.Tool); known != nil && e.Call.Status != "" {
		known.Status = e.Call.Status
	}
}

// at returns a call by its id, and adds it if it is new; nil if there is no room.
func (r *factReader) at(session, id, tool string) *grade.Call {
	key := session + " " + id
	i, ok := r.calls[key]
	switch {
	case ok && i < 0:
		return nil
	case !ok && len(r.facts.Calls) == grade.MaxCalls:
		r.calls[key] = -1
		r.facts.CallsLeft++
		return nil
	case !ok:
		i, r.calls[key] = len(r.facts.Calls), len(r.facts.Calls)
		r.facts.Calls = append(r.facts.Calls, grade.Call{Session: session, Tool: tool})
	}
	return &r.facts.Calls[i]
}

func (r *factReader) request(e client.Event) {
	if len(r.facts.Requests) == grade.MaxCalls {
		return
	}
	q := grade.Request{Type: e.Request.Type, Text: e.Request.Text}
	if e.Request.Call != nil {
		q.Tool = e.Request.Call.Tool
	}
	r.requests[e.Session+" "+e.Request.ID] = len(r.facts.Requests)
	r.facts.Requests = append(r.facts.Requests, q)
}

type outsideInput struct {
	gradeInput
	// Grader is the number of the grader in the case.
	Grader int `json:"grader"`
}

// outsideTime bounds one attempt of a grader outside.
func outsideTime(g *grade.Spec) time.Duration {
	if g.Command != nil {
		return time.Duration(g.Command.Timeout) + stepTime
	}
	return 10 * time.Minute
}

// outside asks a grader outside. A grader that fails is a verdict with an error, since its
// cost counts; only what may be mended by waiting is tried again.
func (s *steps) outside(ctx context.Context, in outsideInput) (v grade.Verdict, err error) {
	if err := s.allowed(&in.Case); err != nil {
		return v, err
	}
	f, _, err := s.facts(ctx, in.gradeInput)
	if err != nil {
		return v, err
	}
	g := &in.Case.Graders[in.Grader]
	switch {
	case g.Judge != nil:
		v, err = g.Judge.Ask(ctx, s.o.Models, f)
	case g.Command != nil && s.o.Sandbox == nil:
		err = agent.Errorf(agent.CodeDenied, "this evaluator runs no commands (Options.Sandbox)")
	case g.Command != nil:
		v, err = g.Command.Do(ctx, s.o.Sandbox, s.o.Dir, f)
	case g.Function != nil:
		v, err = g.Function.Call(ctx, s.o.Functions, f)
	}
	v.Grader = g.Called()
	if err == nil {
		return v, nil
	}
	var e *agent.Error
	if !errors.As(err, &e) {
		e = agent.Errorf(agent.CodeOf(err), "%w", err)
	}
	if ctx.Err() != nil || e.Retryable && e.Code != agent.CodeTimeout && activity.GetInfo(ctx).Attempt < stepAttempts {
		return v, err
	}
	whole := *e
	whole.Message = cutTo(err.Error(), 1_000)
	v.Pass, v.Error = false, &whole
	return v, nil
}
