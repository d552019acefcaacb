package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
)

// Func is what a tool does. Its context is cancelled when nobody waits for the
// result any more. A returned error is told to the model and ends nothing; see
// [Refuse] for one that says that nothing was done.
type Func[In, Out any] func(ctx context.Context, call *Call, in In) (Out, error)

// Call is what a tool may know of its call.
type Call struct {
	ID      string // "t12.2"
	Session string
	Run     string
	Agent   string
	Turn    int
	Tool    string
	// Key is the call's idempotency key: the same for every attempt at it. Hand
	// it on to what the tool calls.
	Key string
	// Attempt counts from 1.
	Attempt   int
	Arguments json.RawMessage

	hooks *toolcall.Hooks // nil for a call that nobody has connected
	asked int             // answers that were handed out
}

// With returns the call, connected to the runtime that makes it. Only the runtime calls it.
func (c Call) With(h *toolcall.Hooks) *Call { c.hooks = h; return &c }

// connected are the call's hooks, never nil.
func (c *Call) connected() *toolcall.Hooks {
	if c.hooks == nil {
		c.hooks = &toolcall.Hooks{}
	}
	return c.hooks
}

// Progress tells how far a call is. It may be called often: it costs no history.
func (c *Call) Progress(format string, args ...any) {
	if c.hooks != nil && c.hooks.Progress != nil {
		c.hooks.Progress(fmt.Sprintf(format, args...))
	}
}

// Options says how a tool is treated; nil means all defaults.
type Options struct {
	// Timeout caps one attempt; zero means ten minutes. When it has passed, the
	// tool's context is cancelled and the model is told.
	Timeout time.Duration
	// Attempts is how often a failing call is made; zero means once. Set it for
	// tools that are safe to run again and for no others: a call whose outcome
	// is unknown after a crash is then made again too.
	Attempts int
	// Local says that the tool is quick and without side effects: it runs within
	// the workflow's own task, at almost no cost, and may be run again. One that
	// takes longer than a second is started anew as an ordinary one.
	Local bool
	// ReadOnly says that the tool changes nothing. Local tools are read-only.
	ReadOnly bool
	// Secrets names arguments that nobody is shown who is asked to approve a call.
	// The model wrote them: they stand in the transcript as it does.
	Secrets []string
	// Approval has a person asked before each call, whoever calls the tool and whatever rules
	// allow; nil leaves it to rules. &agent.ToolApproval{} asks anybody.
	Approval *agent.ToolApproval
}

// Tool is a named function with a schema. The zero Tool is of no use; see [New].
type Tool struct {
	spec agent.ToolSpec
	call func(context.Context, *Call) (string, error)
	err  error
}

// New makes a tool. Its schemas come from the types: In must be a struct, whose
// `json` tags name the arguments and whose `jsonschema` tags describe them; an
// Out that is a string is given to the model as it is, any other as JSON. A
// fault in the name or the types is found by [Tool.Err], which a worker asks.
func New[In, Out any](name, description string, fn Func[In, Out], o *Options) Tool {
	if o == nil {
		o = &Options{}
	}
	t := Tool{spec: agent.ToolSpec{
		Name: name, Description: description, Timeout: agent.Duration(o.Timeout), Attempts: o.Attempts,
		Local: o.Local, ReadOnly: o.ReadOnly || o.Local, Secrets: o.Secrets, Approval: o.Approval,
	}}
	schema, resolved, err := schemaFor[In]()
	if err == nil {
		err = agent.CheckTool(name)
	}
	if err == nil && (o.Timeout < 0 || o.Attempts < 0) {
		err = errors.New("timeout and attempts must be positive")
	}
	if err == nil && o.Approval != nil {
		err = o.Approval.Check()
	}
	if err != nil {
		t.err = agent.Errorf(agent.CodeInvalidInput, "tool %q: %w", name, err).WithPath("tools")
		return t
	}
	t.spec.Input = schema
	t.call = func(ctx context.Context, c *Call) (string, error) {
		in, err := decode[In](resolved, c.Arguments)
		if err != nil {
			return "", err
		}
		out, err := fn(ctx, c, in)
		if err != nil {
			return "", err
		}
		return text(out)
	}
	return t
}

// Spec is the tool as models see it.
func (t Tool) Spec() agent.ToolSpec { return t.spec }

// Err reports what is wrong with the tool's name or types; nil for a sound one.
func (t Tool) Err() error {
	if t.err == nil && t.call == nil {
		return agent.Errorf(agent.CodeInvalidInput, "a tool without a function: make it with tool.New").WithPath("tools")
	}
	return t.err
}

// Call checks the arguments and does what the tool does. The text is for the
// model. Arguments that do not fit are refused ([agent.CodeDenied]) before anything
// is done.
func (t Tool) Call(ctx context.Context, c *Call) (string, error) { return t.call(ctx, c) }

// Source is a set of tools that is known only at run time, such as an MCP
// server's. Its methods are safe for concurrent use.
type Source interface {
	// Name is the source's name; its tools are called NAME__TOOL.
	Name() string
	// List asks for the tools, under their full names.
	List(ctx context.Context) ([]agent.ToolSpec, error)
	// Call calls one by its full name.
	Call(ctx context.Context, c *Call) (string, error)
}

// Separator stands between a source's name and a tool's.
const Separator = agent.SourceSeparator

// Refuse makes the error of a tool that did nothing and says why. The model is
// told that the call was rejected, and nobody calls it again.
func Refuse(format string, args ...any) error { return agent.Errorf(agent.CodeDenied, format, args...) }

// ErrUnknown is what [errors.Is] finds in the errors that [Unknown] makes.
var ErrUnknown = errors.New("unknown outcome")

// Unknown makes the error of a tool that began and does not know whether it had its
// effect, as when a connection broke before the answer. The call's status is then
// [agent.CallUnknown]: the model is told so, and people find it among the run's calls of
// unknown outcome. It is made again only if [Options.Attempts] allows that.
func Unknown(format string, args ...any) error { return unknown{fmt.Errorf(format, args...)} }

type unknown struct{ error }

// Is makes [errors.Is] find [ErrUnknown].
func (unknown) Is(target error) bool { return target == ErrUnknown }

// Unwrap is what the error was made of.
func (u unknown) Unwrap() error { return u.error }

func schemaFor[In any]() (json.RawMessage, *jsonschema.Resolved, error) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, nil, err
	}
	if schema.Type != "object" {
		return nil, nil, errors.New("its input must be a struct or a map: models send arguments by name")
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, nil, err
	}
	raw, err := json.Marshal(schema)
	return raw, resolved, err
}

func decode[In any](schema *jsonschema.Resolved, arguments json.RawMessage) (in In, err error) {
	var value map[string]any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return in, Refuse("the arguments are not a JSON object: %v", err)
	}
	if value == nil {
		return in, Refuse("the arguments are not a JSON object but null")
	}
	if err := schema.Validate(value); err != nil {
		return in, Refuse("the arguments do not fit the tool's schema: %v", err)
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return in, Refuse("the arguments do not fit the tool: %v", err)
	}
	return in, nil
}

func text(out any) (string, error) {
	if s, ok := out.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("the tool's result can't be written as JSON: %w", err)
	}
	return string(b), nil
}
