package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
)

// CallTool makes one tool call. Whatever the tool does, its result is a row for
// the model and not a failure of the step; only a tool that may run again fails
// the step, to be tried again.
var CallTool = durable.Activity[ToolInput, ToolOutput]{Name: "fermata.tool"}

// ToolOutput is what became of a call. Hold is set where the step met a hold; one
// that it met before it began made it skip the call.
type ToolOutput struct {
	agent.ToolResult
	Hold *agent.HoldRef `json:"hold,omitempty"`
	// StateChanges are keys of the session's state that the call has set.
	StateChanges map[string]json.RawMessage `json:"state_changes,omitempty"`
	// Question is what the tool asks a person, instead of a result.
	Question *agent.ToolQuestion `json:"question,omitempty"`
	// ToolsChange is set where the tool's source has other tools now.
	ToolsChange *agent.ToolsChange `json:"tools_change,omitempty"`
}

// ToolInput is a call. Long arguments are not in it: they stand in the log.
type ToolInput struct {
	loop.ToolArgs
	// UpTo is where the log stands; Long means that it has the arguments.
	UpTo           LogPosition `json:"up_to,omitzero"`
	ArgumentsInLog bool        `json:"arguments_in_log,omitempty"`
	// Tried is how often the call was made by activities before this one.
	Tried int `json:"tried,omitempty"`
	// Execution is the one that began the call. Another one has it made anew where the
	// workflow was reset to the midst of the call.
	Execution string `json:"execution,omitempty"`
}

// attempt counts this one from 1, with those that the server does not know of any more.
func (in ToolInput) attempt(info activity.Info) int {
	n := in.Tried + int(info.Attempt)
	if in.Execution != "" && in.Execution != info.WorkflowExecution.RunID {
		n++
	}
	return n
}

// MaxInline is the length of the arguments that a step is given by value: short
// ones are worth reading in a history, long ones not worth writing twice.
const MaxInline = 1 << 10

// maxResult bounds what one result adds to a history and a conversation.
const maxResult = 128 << 10

func (d *Activities) callTool(ctx context.Context, in ToolInput) (ToolOutput, error) {
	info := activity.GetInfo(ctx)
	if !info.IsLocalActivity {
		defer heartbeat(ctx)()
	}
	attempt := in.attempt(info)
	result := agent.ToolResult{Call: in.Call, Tool: in.Tool}
	if attempt > max(in.Attempts, 1) { // whoever may write to the namespace can have steps done again
		result.Status, result.Text = agent.CallUnknown, "Unknown outcome: the call was begun before, and the workflow was reset, or its step was set to be done again. It may or may not have had its effect; look before you make it again."
		return ToolOutput{ToolResult: result}, nil
	}
	ctx, leave := d.begin(ctx, in.Session, in.KnownHolds, in.Parent)
	defer leave()
	if hold := heldBy(ctx); hold != nil {
		result.Status, result.Text = agent.CallSkipped, "Not executed: the run was interrupted before the call was begun."
		if attempt > 1 {
			result.Status, result.Text = agent.CallUnknown, "Unknown outcome: the run was interrupted between two attempts. The first may or may not have had its effect."
		}
		return ToolOutput{ToolResult: result, Hold: hold}, nil
	}
	switch err := d.complete(ctx, &in); {
	case errors.Is(err, agent.CodeDenied):
		result.Status, result.Text = agent.CallRejected, err.Error()
		return ToolOutput{ToolResult: result}, nil
	case err != nil:
		return ToolOutput{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(in.Timeout), errToolTime)
	defer cancel()
	hooks := d.hooks(in)
	call := callOf(in, attempt).With(hooks)
	ctx, over := d.observed(ctx, call, in.Trace)
	text, err := d.runTool(ctx, in, call)
	if err == nil {
		err = d.checkStateSize(ctx, hooks.StateChanges, in)
	}
	result.Status, result.Text = agent.CallOK, text
	asks := errors.Is(err, tool.ErrAsked) && hooks.Question != nil
	if err != nil && !asks {
		result.Status, result.Text = callStatus(ctx, err, in)
	}
	over(result.Status)
	switch {
	case asks:
		return ToolOutput{ToolResult: result, Hold: heldBy(ctx), Question: hooks.Question}, nil
	case err == nil:
		result.Partial = ctx.Err() != nil // whatever has ended it
	case info.IsLocalActivity && ctx.Err() != nil && !stopped(ctx):
		// It was slower than local tools may be; it is started anew as a regular one.
		return ToolOutput{}, &agent.Error{Code: agent.CodeTimeout, Message: "a local tool took too long", Err: err}
	default:
		if e := mayRetry(ctx, err, in, attempt); e != nil {
			return ToolOutput{}, e
		}
	}
	result.Text, result.Size = bound(result.Text)
	return ToolOutput{ToolResult: result, Hold: heldBy(ctx), StateChanges: hooks.StateChanges, ToolsChange: d.relisted(ctx, in)}, nil
}

// complete reads from the log what the input does not have, and holds edited
// arguments to the rules.
func (d *Activities) complete(ctx context.Context, in *ToolInput) error {
	if !in.ArgumentsInLog && !in.Edited {
		return nil
	}
	log, err := d.logUpTo(ctx, in.Run, in.UpTo)
	if err != nil {
		return err
	}
	if in.Edited {
		return deniesEdited(log.Spec(), *in)
	}
	call, ok := log.Call(in.Call)
	if !ok {
		return agent.Errorf(agent.CodeInternal, "call %s is not in the transcript", in.Call)
	}
	in.Arguments = call.Arguments
	return nil
}

var errToolTime = errors.New("the tool's time is up")

// callOf is what the tool may know of an attempt.
func callOf(in ToolInput, attempt int) tool.Call {
	return tool.Call{
		ID: in.Call, Session: in.Session, Run: in.Run, Agent: in.Agent, Turn: in.Turn, Tool: in.Tool,
		Key: agent.IdempotencyKey(cmp.Or(in.OriginRun, in.Run), in.Call), Attempt: attempt, Arguments: in.Arguments,
	}
}

// hooks connect a call to the run that makes it.
func (d *Activities) hooks(in ToolInput) *toolcall.Hooks {
	return &toolcall.Hooks{
		Answers: in.Answers,
		Progress: func(note string) {
			d.publish(liveEvent{Session: in.Session, Run: in.Run, Turn: in.Turn, Call: in.Call, Progress: note})
		},
		State: func(ctx context.Context) (map[string]json.RawMessage, error) {
			log, err := d.logUpTo(ctx, in.Run, in.UpTo)
			if err != nil {
				return nil, err
			}
			return log.State(), nil
		},
	}
}

// observed tells whoever looks on that an attempt begins.
func (d *Activities) observed(ctx context.Context, call *tool.Call, trace agent.Trace) (_ context.Context, over func(agent.CallStatus)) {
	if d.Observer == nil {
		return ctx, func(agent.CallStatus) {}
	}
	return d.Observer.Tool(ctx, call, trace)
}

// runTool finds the tool and calls it. A panic is an error like others.
func (d *Activities) runTool(ctx context.Context, in ToolInput, call *tool.Call) (text string, err error) {
	defer d.caught(ctx, &err, "tool", "session", in.Session, "run", in.Run, "turn", in.Turn, "tool", in.Tool, "call", in.Call)
	if t, ok := d.Tools[in.Tool]; ok {
		return t.Call(ctx, call)
	}
	if name, _, ok := strings.Cut(in.Tool, tool.Separator); ok && d.Sources[name] != nil {
		return d.Sources[name].Call(ctx, call)
	}
	return "", agent.Errorf(agent.CodeUnknownTool, "tool %q is not in this worker's build", in.Tool)
}

// caught is deferred around what users have written: it makes an error of a panic, which
// else would end the process, or be taken for what became of a call.
func (d *Activities) caught(ctx context.Context, err *error, what string, about ...any) {
	p := recover()
	if p == nil {
		return
	}
	d.Logger.ErrorContext(ctx, what+" panicked", append(about, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
	*err = fmt.Errorf("the %s panicked: %v", what, p)
}

// maxState is how much the state of a session may have, in bytes of keys and JSON.
const maxState = 256 << 10

// checkStateSize refuses what would make the session's state too large.
func (d *Activities) checkStateSize(ctx context.Context, set map[string]json.RawMessage, in ToolInput) error {
	if len(set) == 0 {
		return nil
	}
	log, err := d.logUpTo(ctx, in.Run, in.UpTo)
	if err != nil {
		return err
	}
	state := log.State()
	maps.Copy(state, set)
	size := 0
	for k, v := range state {
		size += len(k) + len(v)
	}
	for k, v := range set {
		if rawjson.Depth(v) > rawjson.MaxWrittenDepth {
			return agent.Errorf(agent.CodeTooLarge, "the call was made, but what it set was not kept: %s is nested more than %d levels deep", k, rawjson.MaxWrittenDepth)
		}
	}
	if size > maxState {
		return agent.Errorf(agent.CodeTooLarge, "the call was made, but what it set was not kept: the session's state would have %d bytes, and at most %d are taken", size, maxState)
	}
	return nil
}

// mayRetry reports whether the call is to be made once more, by failing the step.
func mayRetry(ctx context.Context, err error, in ToolInput, attempt int) error {
	if stopped(ctx) || errors.Is(err, agent.CodeDenied) || attempt >= in.Attempts {
		return nil
	}
	const most = 2000 // bytes; the last attempt's is told to the model as a whole
	return &agent.Error{Code: agent.CodeToolFailed, Message: excerpt.Of(err.Error(), most, len(err.Error())), Retryable: true}
}

// callStatus says to the model what a failed call means.
func callStatus(ctx context.Context, err error, in ToolInput) (agent.CallStatus, string) {
	switch {
	case errors.Is(err, agent.CodeDenied):
		return agent.CallRejected, err.Error()
	case stopped(ctx):
		return agent.CallFailed, fmt.Sprintf("The tool was interrupted: %v. It may have had a part of its effect.", err)
	case errors.Is(context.Cause(ctx), errToolTime):
		return agent.CallFailed, fmt.Sprintf("The tool was stopped after %s, the time that it may take: %v", in.Timeout, err)
	case ctx.Err() != nil:
		return agent.CallUnknown, "Unknown outcome: the worker shut down during the call. It may or may not have had its effect."
	case errors.Is(err, tool.ErrUnknown):
		return agent.CallUnknown, "Unknown outcome: " + err.Error()
	}
	return agent.CallFailed, err.Error()
}

// bound keeps the beginning of a text that is too long, and says so in it: a
// result that had its effect is never dropped.
func bound(text string) (kept string, size int) {
	text = strings.Map(printable, text)
	if len(text) <= maxResult {
		return text, 0
	}
	return excerpt.Of(text, maxResult, len(text)), len(text)
}

// printable keeps control characters, of which JSON makes six bytes each and a
// model nothing, out of histories. What is not UTF-8 has become U+FFFD before.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
		return '\uFFFD'
	}
	return r
}
