package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/tool"
)

// CallTool makes one tool call. Whatever the tool does, its result is a row for
// the model and not a failure of the step; only a tool that may run again fails
// the step, to be tried again.
var CallTool = durable.Activity[ToolInput, agent.ToolResult]{Name: "fermata.tool"}

// ToolInput is a call. Long arguments are not in it: they stand in the log.
type ToolInput struct {
	Session   string          `json:"session"`
	Run       string          `json:"run"`
	Agent     string          `json:"agent"`
	Turn      int             `json:"turn"`
	Call      string          `json:"call"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Upto      *Place          `json:"upto,omitempty"` // where the log has the arguments
	// Timeout caps the attempt; the tool's context ends with it.
	Timeout  agent.Duration `json:"timeout"`
	Attempts int            `json:"attempts,omitempty"`
}

// MaxInline is the length of the arguments that a step is given by value: short
// ones are worth reading in a history, long ones not worth writing twice.
const MaxInline = 1 << 10

// maxResult bounds what one result adds to a history and a conversation.
const maxResult = 128 << 10

func (d *Deeds) callTool(ctx context.Context, in ToolInput) (agent.ToolResult, error) {
	info := activity.GetInfo(ctx)
	if !info.IsLocalActivity {
		defer beat(ctx)()
	}
	if in.Arguments == nil && in.Upto != nil {
		log, err := d.logUpTo(ctx, in.Run, *in.Upto)
		if err != nil {
			return agent.ToolResult{}, err
		}
		call, ok := log.Call(in.Call)
		if !ok {
			return agent.ToolResult{}, agent.Errorf(agent.Internal, "call %s is not in the transcript", in.Call)
		}
		in.Arguments = call.Arguments
	}
	result := agent.ToolResult{Call: in.Call, Tool: in.Tool}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(in.Timeout), errToolTime)
	defer cancel()
	text, err := d.runTool(ctx, in, int(info.Attempt))
	result.Status, result.Text = agent.CallOK, text
	if err != nil && info.IsLocalActivity && ctx.Err() != nil {
		// It was slower than local tools may be; it is started anew as a regular one.
		return result, &agent.Error{Code: agent.Timeout, Message: "a local tool took too long", Err: err}
	}
	if err != nil {
		if e := d.again(ctx, err, in, int(info.Attempt)); e != nil {
			return result, e
		}
		result.Status, result.Text = verdict(ctx, err, in)
	}
	result.Text, result.Size = bound(result.Text)
	return result, nil
}

var errToolTime = errors.New("the tool's time is up")

// runTool finds the tool and calls it. A panic is an error like others.
func (d *Deeds) runTool(ctx context.Context, in ToolInput, attempt int) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.Logger.ErrorContext(ctx, "tool panicked", "tool", in.Tool, "call", in.Call, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("the tool panicked: %v", p)
		}
	}()
	call := tool.Call{
		ID: in.Call, Session: in.Session, Run: in.Run, Agent: in.Agent, Turn: in.Turn, Tool: in.Tool,
		Key: agent.IdempotencyKey(in.Run, in.Call), Attempt: attempt, Arguments: in.Arguments,
	}.WithProgress(func(note string) {
		d.live(Live{Session: in.Session, Run: in.Run, Turn: in.Turn, Call: in.Call, Progress: note})
	})
	if t, ok := d.Tools[in.Tool]; ok {
		return t.Call(ctx, call)
	}
	if name, _, ok := strings.Cut(in.Tool, tool.Separator); ok && d.Sources[name] != nil {
		return d.Sources[name].Call(ctx, call)
	}
	return "", agent.Errorf(agent.UnknownTool, "tool %q is not in this worker's build", in.Tool)
}

// again tells whether the call is to be made once more, by failing the step.
func (d *Deeds) again(ctx context.Context, err error, in ToolInput, attempt int) error {
	if temporal.IsCanceledError(context.Cause(ctx)) {
		return temporal.NewCanceledError()
	}
	if errors.Is(err, agent.Denied) || attempt >= in.Attempts {
		return nil
	}
	return &agent.Error{Code: agent.ToolFailed, Message: err.Error(), Retryable: true, Err: err}
}

// verdict says to the model what a failed call means.
func verdict(ctx context.Context, err error, in ToolInput) (agent.CallStatus, string) {
	switch {
	case errors.Is(err, agent.Denied):
		return agent.CallRejected, err.Error()
	case errors.Is(context.Cause(ctx), errToolTime):
		return agent.CallFailed, fmt.Sprintf("The tool was stopped after %s, the time that it may take: %v", in.Timeout, err)
	case ctx.Err() != nil:
		return agent.CallUnknown, "Unknown outcome: the worker shut down during the call. It may or may not have had its effect."
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
	return agent.Cut(text, maxResult, len(text)), len(text)
}

// printable keeps control characters, of which JSON makes six bytes each and a
// model nothing, out of histories. What is not UTF-8 has become U+FFFD before.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
		return '\uFFFD'
	}
	return r
}
