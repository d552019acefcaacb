package testsuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/value"
	"github.com/fermata-agents/fermata/tool"
)

// RehearsedStep is a step that a flow asks for in a [Rehearse].
type RehearsedStep struct {
	// Path is the step's path, and Name its last part.
	Path, Name string
	// Tool is the tool that would do the step, such as "subagent__reviewer", "ask_user", "approve",
	// "await_resumption", "temporal" or "do".
	Tool      string
	Arguments json.RawMessage
	// Files are the files that the step passes on.
	Files []agent.File
	do    func(context.Context, *tool.Call) (string, error)
}

// Do runs the code of a step of the flow's own (flow.Do), and returns its result. If the code adds
// files (tool.Call.AddFile), the result is a flow.WithFiles[any]. Their bytes are not kept, and neither
// are artifacts that the code saves.
//
// answers are what comes to the code's own questions and waits (flow.AskIn, flow.WaitIn), in their order:
// a text or any value for a question, a flow.Event for a wait, or an agent.ToolAnswer, such as a declined
// one. As in a run, the code begins again with each. If it asks for more, the error is an [ErrOpen] with
// the question.
func (s RehearsedStep) Do(ctx context.Context, answers ...any) (any, error) {
	if s.do == nil {
		return nil, fmt.Errorf("step %s has no code of its own", s.Path)
	}
	var known []agent.ToolAnswer
	for {
		call := tool.Call{ID: s.Path, Key: s.Path, Tool: s.Tool, Attempt: 1}
		h, _ := hooks(call)
		h.Answers, h.Waits = known, true
		text, err := s.do(ctx, call.With(h))
		if q := h.Question; q != nil {
			if len(answers) == 0 {
				return nil, fmt.Errorf("%w: step %s asks: %s", ErrOpen, s.Path, q.Text)
			}
			a, err := answerOf(*q, answers[0])
			if err != nil {
				return nil, fmt.Errorf("step %s: %w", s.Path, err)
			}
			known, answers = append(known, a), answers[1:]
			continue
		}
		var files []agent.File
		for _, p := range h.Files() {
			files = append(files, *p.File)
		}
		if len(files) == 0 || err != nil {
			return json.RawMessage(text), err
		}
		return flow.WithFiles[any]{Value: json.RawMessage(text), Files: files}, nil
	}
}

// answerOf returns a value as the answer to a question.
func answerOf(q agent.ToolQuestion, v any) (a agent.ToolAnswer, err error) {
	if said, ok := v.(agent.ToolAnswer); ok {
		a = said
	} else if a.Text, err = value.Text(v); q.Until != nil {
		a.Text, a.Data = "", json.RawMessage(a.Text)
	}
	a.Name, a.Digest = q.Name, q.Digest
	return a, err
}

// ErrOpen is what the function of a [Rehearse] returns for a step that gets no result.
var ErrOpen = errors.New("the step stays open")

// Rehearsal is how a flow went in a [Rehearse].
type Rehearsal struct {
	// Steps are the steps in the order in which the flow asked for them. Open are the paths of
	// those that have no result: the flow has not ended then.
	Steps []RehearsedStep
	Open  []string
	// Text, Output, Files and Err are what the flow returned.
	Text   string
	Output json.RawMessage
	Files  []agent.File
	Err    error
}

// Rehearse runs a flow in memory, without a worker and a server. result gives each step its
// result: any value, or an error, which fails the step. An agent's result is its text or its
// output, a question's the answer, an approval's a flow.Decision, and a wait's a flow.Event. An input
// or a result with files is a flow.WithFiles of any type.
//
// After each result the flow runs again from its beginning. The test fails if it goes another way
// than before: the function depends on the time, on chance, on the order of a map, or on something
// outside of it, and would do so in production after a deploy.
func Rehearse(t testing.TB, f flow.Flow, input any, result func(RehearsedStep) (any, error)) *Rehearsal {
	t.Helper()
	require.NoError(t, f.Err())
	r := &rehearsal{t: t, flow: f, result: result, seen: map[string]bool{}, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	input, r.files = split(input)
	text, err := value.Text(input)
	require.NoError(t, err)
	r.input = []byte(text)
	p := play.Start(f.Function(), r.input, r.at).WithFiles(r.files)
	defer p.Close()
	r.run(p, nil)
	for {
		next, ok := r.next(p)
		if _, ended, _ := p.Done(); ended || !ok {
			break
		}
		r.known = append(r.known, next)
		r.run(p, []play.Result{next})
		again := play.Start(f.Function(), r.input, r.at).WithFiles(r.files)
		r.run(again, r.known)
		require.Equal(t, way(p), way(again), "the flow goes another way when it runs again: it depends on the time, on chance, on the order of a map, or on something outside of it")
		again.Close()
	}
	d, _, err := p.Done()
	r.out.Text, r.out.Output, r.out.Files, r.out.Err = d.Text, d.Output, d.Files, err
	for _, s := range p.Steps() {
		r.out.Open = append(r.out.Open, s.ProviderID)
	}
	return &r.out
}

// askedAgain ends the name of a question whose answers could not be used so often that others won't come.
const askedAgain = "_again#16"

type rehearsal struct {
	t      testing.TB
	flow   flow.Flow
	input  []byte
	files  []agent.File
	at     time.Time
	result func(RehearsedStep) (any, error)
	seen   map[string]bool // steps that were given a result, or stay open
	known  []play.Result
	out    Rehearsal
}

// run delivers results.
func (r *rehearsal) run(p *play.Play, results []play.Result) {
	r.t.Helper()
	require.NoError(r.t, p.Run(r.t.Context(), 10*time.Second, results))
}

// next returns the result of the first step that has not been given one; false if there is none.
func (r *rehearsal) next(p *play.Play) (play.Result, bool) {
	r.t.Helper()
	for _, s := range p.Steps() {
		if r.seen[s.ProviderID] {
			continue
		}
		r.seen[s.ProviderID] = true
		one := RehearsedStep{Path: s.ProviderID, Name: s.ProviderID[strings.LastIndex(s.ProviderID, "/")+1:], Tool: s.Tool, Arguments: s.Arguments, Files: s.Files, do: s.Do}
		r.out.Steps = append(r.out.Steps, one)
		r.checkName(one)
		require.False(r.t, strings.HasSuffix(one.Name, askedAgain), "the answers of the test can't be used: %s", s.Arguments)
		v, err := r.result(one)
		if errors.Is(err, ErrOpen) {
			continue
		}
		r.at = r.at.Add(time.Second)
		done := play.Result{Path: s.ProviderID, Tool: s.Tool, Arguments: s.Arguments, Status: agent.CallOK, At: r.at}
		if err != nil {
			done.Status, done.Text = agent.CallFailed, err.Error()
			if e := new(agent.Error); errors.As(err, &e) && e.Code.Known() {
				done.Code = e.Code
			}
			return done, true
		}
		v, done.Files = split(v)
		done.Text, err = resultText(s.Tool, v)
		require.NoError(r.t, err, "the result of step %s", s.ProviderID)
		return done, true
	}
	return play.Result{}, false
}

// checkName fails the test if the flow asks for an agent or a tool that it does not have: a run would
// reject the step.
func (r *rehearsal) checkName(s RehearsedStep) {
	r.t.Helper()
	def := r.flow.Definition()
	if name, ok := strings.CutPrefix(s.Tool, agent.SubAgentPrefix); ok {
		require.True(r.t, slices.ContainsFunc(def.Agents, func(a agent.SubAgent) bool { return a.Agent == name }), "step %s: the flow's Options.Agents has no agent %q", s.Path, name)
	}
}

// withFiles is one of the types that [split] takes apart.
var withFiles = reflect.TypeFor[flow.WithFiles[any]]()

// split returns a value and its files, if it is a flow.WithFiles. No interface has all types of
// flow.WithFiles, since the type needs no methods for users.
func split(v any) (any, []agent.File) {
	t := reflect.TypeOf(v)
	if t == nil || t.PkgPath() != withFiles.PkgPath() || !strings.HasPrefix(t.Name(), "WithFiles[") {
		return v, nil
	}
	w := reflect.ValueOf(v)
	files, _ := w.FieldByName("Files").Interface().([]agent.File)
	return w.FieldByName("Value").Interface(), files
}

// resultText returns a value as a step's result is in the log.
func resultText(name string, v any) (string, error) {
	switch v := v.(type) {
	case flow.Decision:
		return value.Text(map[string]any{"approved": v.Approved, "by": v.By, "reason": v.Reason, "expired": v.Expired})
	case json.RawMessage:
		return string(v), nil
	}
	text, err := value.Text(v)
	if err != nil || !strings.HasPrefix(name, agent.SubAgentPrefix) {
		return text, err
	}
	if _, isText := v.(string); isText {
		return value.Text(map[string]any{"status": agent.StatusCompleted, "text": text})
	}
	return value.Text(map[string]any{"status": agent.StatusCompleted, "text": text, "output": v})
}

// way says where a play stands.
func way(p *play.Play) string {
	d, ended, err := p.Done()
	var b strings.Builder
	for _, s := range p.Steps() {
		fmt.Fprintf(&b, "%s %s %s\n", s.ProviderID, s.Tool, s.Arguments)
	}
	if ended {
		fmt.Fprintf(&b, "ended %q %v\n", d.Text, err)
	}
	return b.String()
}
