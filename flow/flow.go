package flow

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/value"
	"github.com/fermata-agents/fermata/model"
)

// Flow is a function as a worker has it. Make one with [New]. The zero value is invalid.
type Flow struct {
	def   agent.Definition
	run   play.Function
	check func(input string) error
	err   error
}

// Options say more of a flow. Everything has a default; the fields are those of
// [agent.Definition] that do not concern a model.
type Options struct {
	// Description says what the flow is for. People and other agents read it.
	Description string
	// Agents are the agents and flows that the function may call with [Agent]. Unlike a model's
	// sub-agents they need no Tools here: they may use all of their own.
	Agents []agent.SubAgent
	// Tools are the names of the tools that the function may call with [Tool].
	Tools []string
	// Models are the full names of the models that the function may call with [Generate]. The
	// first one is called if a prompt names none.
	Models []string
	// ClientTools are tools that the client carries out.
	ClientTools []agent.ToolSpec
	// Rules and Default decide about calls of tools and agents, as a model's.
	Rules   []agent.Rule
	Default agent.Ruling
	// AnswerTimeouts is how long questions wait whose options do not say it.
	AnswerTimeouts agent.AnswerTimeouts
	// Limits are how much a run may use together with all runs below it. OwnTurns counts how
	// often the function is asked for its next steps; zero means 10,000.
	Limits  agent.Limits
	OnLimit agent.LimitAction
	// ParallelTools is how many calls of tools run at once; zero means 64. [MapOptions] bounds a
	// single fan-out.
	ParallelTools int
	// ResumeWithin is how long after its suspension a run can be resumed or answered; zero
	// means forever.
	ResumeWithin time.Duration
	// Retention is how long a session is kept after its last run has ended; zero means forever.
	Retention time.Duration
	// Redact keeps the task, and the texts of requests, out of listings.
	Redact bool
	// StateVersion is the version of the session's state that the flow's tools write.
	StateVersion int
	// PersistState are the keys of the session's state that later runs find; empty means every key.
	PersistState []string
	// Input and Output are JSON Schemas of the run's input and of the result. Nil means the schemas
	// of the function's In and Out. Whoever calls the flow reads Input in its description. A start
	// whose input does not fit is refused; see [Flow.CheckInput].
	Input, Output json.RawMessage
}

// Defaults of flows.
const (
	defaultTurns    = 10_000
	defaultParallel = 64
)

// New makes a flow of a function. name is the agent's name. The function's input is read from the
// run's input: as JSON or, if In is a string, as text. Its result becomes the run's output or, if
// Out is a string, its text; the schema of the output comes from Out. Files of the input and of the
// result are in a [WithFiles]; with any other In, a run that was started with files fails with
// [agent.CodeInvalidInput].
//
// An error of the function fails the run. Its code says what failed:
//
//   - [agent.CodeStepFailed]: a step. Path is the step's path, and Cause its own code.
//   - [agent.CodeUnknownTool], [agent.CodeUnknownAgent], [agent.CodeUnknownModel]: the flow called what it
//     may not use.
//   - [agent.CodeJoinFailed]: too few items of a [Map] succeeded, or an [Overlay] can't be made.
//   - [agent.CodeBadOutput]: a step's result does not fit its type, or the function's result Options.Output.
//   - [agent.CodeFlowFailed]: the function itself, also by a panic.
//
// An [agent.Error] that the function makes itself keeps its code.
func New[In, Out any](name string, do func(Context, In) (Out, error), o *Options) Flow {
	if o == nil {
		o = &Options{}
	}
	f := Flow{def: o.definition(name)}
	if do == nil {
		f.err = agent.Errorf(agent.CodeInvalidInput, "flow %q has no function", name)
	}
	if f.def.Output = o.Output; len(o.Output) == 0 {
		f.def.Output, f.err = schemaOf[Out](f.err)
	}
	input := o.Input
	if len(input) == 0 {
		input, f.err = schemaOf[In](f.err)
	}
	f.check = checkOf[In](name, input, len(o.Input) > 0)
	if len(input) > 0 { // a model that calls the flow has to know
		f.def.Description = strings.TrimSpace(f.def.Description + "\nIts task is JSON that fits this schema: " + string(input))
	}
	f.run = func(c *play.Context, input []byte) (play.Done, error) {
		in, err := readInput[In](name, string(input), c.Files())
		if err != nil {
			return play.Done{}, err
		}
		out, err := do(Context{c}, in)
		if err != nil {
			return play.Done{}, failure(err)
		}
		d, err := done(out)
		if err == nil {
			err = resultFits(o.Output, d)
		}
		return d, err
	}
	return f
}

func (o *Options) definition(name string) agent.Definition {
	d := agent.Definition{
		Name: name, Model: agent.FlowModel, Description: o.Description, Agents: o.Agents, Tools: o.Tools, Fallbacks: o.Models, ClientTools: o.ClientTools, Rules: o.Rules, Default: o.Default,
		AnswerTimeouts: o.AnswerTimeouts, Limits: o.Limits, OnLimit: o.OnLimit, ParallelTools: o.ParallelTools, ResumeWithin: agent.Duration(o.ResumeWithin), Redact: o.Redact, StateVersion: o.StateVersion,
		Retention: agent.Duration(o.Retention), PersistState: o.PersistState,
	}
	if d.Limits.OwnTurns == 0 {
		d.Limits.OwnTurns = defaultTurns
	}
	if d.ParallelTools == 0 {
		d.ParallelTools = defaultParallel
	}
	return d
}

// Definition returns the flow as an agent.
func (f Flow) Definition() agent.Definition { return f.def }

// Function returns what a worker runs. Only packages of Fermata can use it.
func (f Flow) Function() play.Function { return f.run }

// Err returns why the flow is invalid; nil if it is not. A worker with an invalid flow refuses to
// start.
func (f Flow) Err() error {
	if f.run == nil && f.err == nil {
		return agent.Errorf(agent.CodeInvalidInput, "a flow was not made with flow.New")
	}
	return f.err
}

// schemaOf returns the schema of a type; nil for a text, and for JSON as it is.
func schemaOf[T any](before error) (schema json.RawMessage, err error) {
	if w, ok := any(new(T)).(takesFiles); ok && before == nil {
		return w.schema()
	}
	var zero T
	if _, raw := any(zero).(json.RawMessage); before != nil || raw || value.IsText[T]() {
		return nil, before
	}
	defer func() {
		if r := recover(); r != nil {
			err = agent.Errorf(agent.CodeInvalidInput, "no JSON Schema can be made of %T: %v", zero, r)
		}
	}()
	return model.OutputOf[T](), nil
}

// done returns a function's result as the run has it.
func done[Out any](out Out) (play.Done, error) {
	if w, ok := any(out).(withFiles); ok {
		return w.done()
	}
	if text, ok := any(out).(string); ok {
		return play.Done{Text: text}, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return play.Done{}, agent.Errorf(agent.CodeFlowFailed, "the flow's result is no JSON: %w", err)
	}
	return play.Done{Text: string(raw), Output: raw}, nil
}
