package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
)

// Func is the function behind a tool. Its context is cancelled when nobody needs the
// result any more. The model gets a returned error as the call's result, and the run
// continues. Use [Refuse] for an error that means that nothing was done.
type Func[In, Out any] func(ctx context.Context, call *Call, in In) (Out, error)

// Call is what a tool knows about its call.
type Call struct {
	ID      string // "t12.2"
	Session string
	Run     string
	Agent   string
	Turn    int
	Tool    string
	// Key is the call's idempotency key. It is the same for every attempt. Pass it on to
	// the services that the tool calls.
	Key string
	// Attempt counts from 1.
	Attempt   int
	Arguments json.RawMessage
	// Workspace is the name of the workspace that the call's sub-agent has for itself, and Env are its
	// environment variables; empty for the worker's workspace. workspace.Workspace.Dir finds the
	// directory.
	Workspace string
	Env       map[string]string

	hooks *toolcall.Hooks // nil for a call that the runtime did not make
	used  []bool          // which of the hooks' answers a question has taken
}

// With returns the call, connected to the runtime. Only the runtime calls it.
func (c Call) With(h *toolcall.Hooks) *Call { c.hooks, c.used = h, nil; return &c }

// connected returns the call's hooks, never nil.
func (c *Call) connected() *toolcall.Hooks {
	if c.hooks == nil {
		c.hooks = &toolcall.Hooks{}
	}
	return c.hooks
}

// Progress reports how far the call is. Call it as often as you like: it costs no
// history.
func (c *Call) Progress(format string, args ...any) {
	if c.hooks != nil && c.hooks.Progress != nil {
		c.hooks.Progress(fmt.Sprintf(format, args...))
	}
}

// Exited says with which status the command ended that the call has run. A tool named shell_run has to
// say it: a check with a command accepts by 0 alone. Do not call it for a command that was cut short.
func (c *Call) Exited(status int) { c.connected().ExitStatus = &status }

// Options configures a tool; nil means all defaults.
type Options struct {
	// Timeout limits one attempt; zero means ten minutes. When it has passed, the tool's
	// context is cancelled, and the model gets an error.
	Timeout time.Duration
	// Attempts is how often a failing call is made; zero means once. Set it only for
	// tools that are safe to run again. After a crash, a call with an unknown outcome is
	// made again too.
	Attempts int
	// Local says that the tool is quick and has no side effects. It runs within the
	// workflow task, at almost no cost, and may run again. If it takes longer than a
	// second, it starts again as an ordinary activity.
	Local bool
	// ReadOnly says that the tool changes nothing. Local tools are read-only.
	ReadOnly bool
	// Secrets names arguments that are hidden from people who approve a call. The
	// transcript still has them, because the model wrote them.
	Secrets []string
	// Approval asks a person before each call, whichever agent calls the tool and
	// whatever rules allow; nil leaves that to rules. &agent.ToolApproval{} accepts
	// anybody's answer.
	Approval *agent.ToolApproval
}

// Tool is a named function with a schema. Make one with [New]; the zero Tool is invalid.
type Tool struct {
	spec agent.ToolSpec
	call func(context.Context, *Call) (string, error)
	err  error
}

// New returns a tool. Its schema comes from In, which must be a struct or a map: `json`
// tags name the arguments, and `jsonschema` tags describe them. An Out that is a string
// goes to the model as it is, any other as JSON. If the name or the types are invalid,
// [Tool.Err] reports it; a worker checks that.
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
	// Kept and not returned, so that tools can be made in variable declarations.
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

// Spec returns the tool as models see it.
func (t Tool) Spec() agent.ToolSpec { return t.spec }

// Err returns what is wrong with the tool's name or types; nil if nothing is.
func (t Tool) Err() error {
	if t.err == nil && t.call == nil {
		return agent.Errorf(agent.CodeInvalidInput, "a tool without a function: make it with tool.New").WithPath("tools")
	}
	return t.err
}

// Call checks the arguments and calls the function. The returned text is for the model.
// Arguments that do not fit are refused with [agent.CodeDenied] before the function is
// called.
func (t Tool) Call(ctx context.Context, c *Call) (string, error) { return t.call(ctx, c) }

// Source is a set of tools that is known only at run time, such as an MCP server's. Its
// methods must be safe for concurrent use.
type Source interface {
	// Name returns the source's name. Its tools are called NAME__TOOL.
	Name() string
	// List returns the tools, with their full names.
	List(ctx context.Context) ([]agent.ToolSpec, error)
	// Call calls a tool by its full name.
	Call(ctx context.Context, c *Call) (string, error)
}

// Separator separates a source's name from a tool's.
const Separator = agent.SourceSeparator

// Refuse returns the error of a tool that did nothing, with the reason. The model sees
// that the call was rejected, and the call is not repeated.
func Refuse(format string, args ...any) error { return agent.Errorf(agent.CodeDenied, format, args...) }

// ErrUnknown is what [errors.Is] finds in the errors of [Unknown].
var ErrUnknown = errors.New("unknown outcome")

// Unknown returns the error of a tool that does not know whether it had its effect, as
// when a connection broke before the answer. The call's status is then
// [agent.CallUnknown]. The model sees that, and people find the call among the run's
// unknown effects. The call is repeated only if [Options.Attempts] allows it.
func Unknown(format string, args ...any) error { return unknown{fmt.Errorf(format, args...)} }

type unknown struct{ error }

// Is reports whether target is [ErrUnknown].
func (unknown) Is(target error) bool { return target == ErrUnknown }

// Unwrap returns the error that was formatted.
func (u unknown) Unwrap() error { return u.error }

func schemaFor[In any]() (json.RawMessage, *jsonschema.Resolved, error) {
	// Otherwise a json.RawMessage would be a list of bytes.
	schema, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}})
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
	// Models may send any JSON, so Validate needs this schema at each call.
	raw, err := json.Marshal(schema)
	return raw, resolved, err
}

func decode[In any](schema *jsonschema.Resolved, arguments json.RawMessage) (in In, err error) {
	var value map[string]any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return in, Refuse("the arguments are not a JSON object: %v", err)
	}
	// A null decodes into a nil map without an error.
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
