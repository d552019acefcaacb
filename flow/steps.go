package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/value"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/tool"
)

// AgentOptions say more of a step that an agent does. Nil has the defaults.
type AgentOptions struct {
	// Name is the step's name; empty means the agent's name.
	Name string
	// Context is what the agent has to know beside its task.
	Context string
	// Files are files of the flow's input, or of results of its steps (see [WithFiles]), that the
	// agent gets with its task: at most [agent.MaxFiles], with 64 MB together. The bytes are copied,
	// so they are the agent's session's own.
	Files []agent.File
	// Output is a JSON Schema of the result. Nil means the schema of Out, or the agent's own for
	// a json.RawMessage.
	Output json.RawMessage
}

// Agent gives work to another agent or flow, as a run of its own below this one, and waits for
// its end. The task is a text, or any value that becomes JSON. A [WithFiles] as the task gives its
// files to the agent, before those of the options. If Out is a string, the result is the agent's last
// text; else it is read from the agent's output, which has the schema of Out if the agent has none of
// its own. A [WithFiles] as Out also has the files that the agent gives back. The error is a
// [StepError] if the run did not complete.
func Agent[Out any](c Context, name string, task any, o *AgentOptions) (out Out, err error) {
	if o == nil {
		o = &AgentOptions{}
	}
	files := o.Files
	if w, ok := task.(withFiles); ok {
		d, err := w.done()
		if err != nil {
			return out, err
		}
		task, files = d.Text, slices.Concat(d.Files, files)
	}
	text, err := value.Text(task)
	if err != nil {
		return out, err
	}
	arguments := map[string]any{"task": text}
	if o.Context != "" {
		arguments["context"] = o.Context
	}
	if err := withSchema[Out](arguments, "output", o.Output); err != nil {
		return out, err
	}
	if len(files) > 0 { // a fork takes the result over only for the same files
		arguments["files"] = digests(files)
	}
	s, err := call(agent.SubAgentPrefix+name, arguments, nil)
	if err != nil {
		return out, err
	}
	s.Files = files
	r, err := c.step(or(o.Name, name), s)
	var end struct {
		Status agent.Status    `json:"status"`
		Reason string          `json:"reason"`
		Text   string          `json:"text"`
		Output json.RawMessage `json:"output"`
		Error  string          `json:"error"`
	}
	if bad := json.Unmarshal([]byte(r.Text), &end); bad != nil || err != nil {
		if e, ok := err.(*StepError); ok && bad == nil { //nolint:errorlint // step returns it as it is
			e.Text = or(end.Error, end.Text)
			if end.Status == agent.StatusFailed { // the reason of a stop is a person's
				e.Code = agent.Code(end.Reason)
			}
		}
		if err == nil {
			err = misfit(r.Path, bad)
		}
		return out, err
	}
	if len(end.Output) > 0 && !isText[Out]() {
		return decodeStep[Out](r, string(end.Output))
	}
	return decodeStep[Out](r, end.Text)
}

func digests(files []agent.File) (all []string) {
	for _, f := range files {
		all = append(all, f.Digest)
	}
	return all
}

// withSchema adds a schema to arguments: the one that is given, or that of the type, if it has one.
func withSchema[Out any](arguments map[string]any, name string, schema json.RawMessage) (err error) {
	if len(schema) == 0 {
		schema, err = schemaOf[Out](nil)
	}
	if len(schema) > 0 {
		arguments[name] = schema
	}
	return err
}

// StepOptions say more of a step that calls a tool or the flow's own code. Nil has the defaults.
type StepOptions struct {
	// Name is the step's name; empty means the tool's name. [Do] has it as an argument.
	Name string
	// Timeout bounds one attempt; zero means the tool's own, or 10 minutes.
	Timeout time.Duration
	// Attempts is how often a failing step is made, waiting 1s, 2s, 4s … between them; zero means
	// the tool's own number, or once. More than once is only for steps that are safe to make
	// again: such a step is also made again after a lost worker or an interrupt.
	Attempts int
	// ReadOnly says that the step changes nothing, so it may be made again.
	ReadOnly bool
	// Input is what code of [Do] depends on, as JSON: a fork with another input of the flow keeps
	// the step's result where Input is the same. Nil means that the fork makes the step again.
	Input any
	// OnUnknown says what happens if a lost worker or an interrupt leaves it unknown whether the
	// step had its effect; the zero value asks a person. A step that may be made again is, and
	// nobody is asked.
	OnUnknown OnUnknown
}

// OnUnknown says what a flow does about a step that may or may not have had its effect.
type OnUnknown string

// The zero value means OnUnknownAsk.
const (
	// OnUnknownAsk asks a person, who says: make it again, count it as done, or fail it. An answer
	// with data is the step's result. A step that counts as done has the zero value as its result.
	OnUnknownAsk OnUnknown = "ask"
	// OnUnknownAgain makes the step again, with the same idempotency key.
	OnUnknownAgain OnUnknown = "again"
	// OnUnknownFail fails the step: the error is a [StepError] with the status unknown.
	OnUnknownFail OnUnknown = "fail"
)

func (o *StepOptions) wire() wire.StepOptions {
	if o == nil {
		return wire.StepOptions{}
	}
	return wire.StepOptions{Timeout: agent.Duration(o.Timeout), Attempts: o.Attempts, ReadOnly: o.ReadOnly, OnUnknown: wire.OnUnknown(o.OnUnknown)}
}

// Tool calls a tool of the flow's Options.Tools. The flow's rules apply: the call may be refused,
// or wait for an approval. The result is read as JSON, or is the tool's text if Out is a string.
// A [WithFiles] also has the files that the tool has shown.
// The error is a [StepError] if the call did not succeed.
func Tool[Out any](c Context, name string, arguments any, o *StepOptions) (out Out, err error) {
	s, err := call(name, arguments, o)
	if err != nil {
		return out, err
	}
	step := name
	if o != nil {
		step = or(o.Name, name)
	}
	r, err := c.step(step, s)
	if err != nil {
		return out, err
	}
	return decodeStep[Out](r, r.Text)
}

// Do runs code of the flow's own as a step, in an activity: code that touches the world, or that
// takes time. The code runs in another copy of the function, perhaps on another worker. So what it
// changes in variables around it is lost, and only what it returns is kept. [tool.Call] has the
// idempotency key, which is the same for each attempt, and for a retry of the run if nobody knows
// whether the step had its effect.
//
// Code that needs a person's answer, or an event, in the middle of its work uses [AskIn] and [WaitIn]: it
// runs again with what came.
//
// A [WithFiles] as Out has the value that the code returns, and the files that it has added with
// [tool.Call.AddFile]. The Files that the code itself returns are ignored.
func Do[Out any](c Context, name string, do func(context.Context, *tool.Call) (Out, error), o *StepOptions) (out Out, err error) {
	arguments := map[string]any{}
	if o != nil && o.Input != nil {
		arguments["input"] = o.Input
	}
	s, err := call(agent.DoTool, arguments, o)
	if err != nil {
		return out, err
	}
	s.Do = func(ctx context.Context, c *tool.Call) (string, error) {
		v, err := do(ctx, c)
		if err != nil {
			return "", err
		}
		if w, ok := any(v).(withFiles); ok {
			return value.Text(w.value())
		}
		return value.Text(v)
	}
	r, err := c.step(name, s)
	if err != nil {
		return out, err
	}
	return decodeStep[Out](r, r.Text)
}

// Prompt is what a model is asked once.
type Prompt struct {
	// Model is one of the flow's Options.Models, in full; empty means the first one.
	Model string
	// Instructions are the system prompt, and Text the message.
	Instructions, Text string
	// Output is a JSON Schema of the reply. Nil means the schema of Out. Out is json.RawMessage, or
	// a type that the schema describes.
	Output json.RawMessage
	// MaxOutputTokens bounds the reply; zero means the model's own bound. While the call is in
	// flight, other calls of [Generate] count it as used against the flow's limits.
	MaxOutputTokens int
}

// Generate calls a model once and waits for its reply: no tools, no conversation, no run of its
// own. What it uses counts against the flow's limits. If Out is a string, the result is the reply's
// text; else the model gets the schema of Out, and a reply that does not fit is asked for again, as
// one that fails is, up to four times. The error is a [StepError].
func Generate[Out any](c Context, name string, p Prompt) (out Out, err error) {
	in := wire.Prompt{Model: p.Model, Instructions: p.Instructions, Text: p.Text, Output: p.Output, MaxOutputTokens: p.MaxOutputTokens}
	if len(in.Output) == 0 {
		if in.Output, err = schemaOf[Out](nil); err != nil {
			return out, err
		}
	}
	s, err := call(agent.GenerateTool, in, nil)
	if err != nil {
		return out, err
	}
	r, err := c.step(or(name, agent.GenerateTool), s)
	if err != nil {
		return out, err
	}
	return decodeStep[Out](r, r.Text)
}

// call returns the step that calls a tool.
func call(name string, arguments any, o *StepOptions) (play.Step, error) {
	raw, err := json.Marshal(arguments)
	if err != nil {
		return play.Step{}, fmt.Errorf("the arguments of %s are no JSON: %w", name, err)
	}
	return play.Step{FlowStep: wire.FlowStep{ToolCall: agent.ToolCall{Tool: name, Arguments: raw}, StepOptions: o.wire()}}, nil
}

func or(a, b string) string {
	if strings.TrimSpace(a) != "" {
		return a
	}
	return b
}
