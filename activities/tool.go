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

// CallTool makes one tool call. Whatever the tool does, its result goes to the model and
// does not fail the activity. Only a tool that may run again fails it, so that the server
// makes another attempt.
var CallTool = durable.Activity[ToolInput, ToolOutput]{Name: "fermata.tool"}

// ToolOutput is the result of a call. Hold is set if a hold stopped the activity; a hold
// that came before it began made it skip the call.
type ToolOutput struct {
	agent.ToolResult
	Hold *agent.HoldRef `json:"hold,omitempty"`
	// StateChanges are the keys of the session's state that the call has set.
	StateChanges map[string]json.RawMessage `json:"state_changes,omitempty"`
	// Question is what the tool asks a person instead of returning a result.
	Question *agent.ToolQuestion `json:"question,omitempty"`
	// ToolsChange is set if the tool's source has other tools now.
	ToolsChange *agent.ToolsChange `json:"tools_change,omitempty"`
	// Artifacts are the files that the call saves as artifacts, in order.
	Artifacts []agent.File `json:"artifacts,omitempty"`
	// Skill is what a call of the tool skill has loaded or ended.
	Skill *agent.SkillUpdate `json:"skill,omitempty"`
	// Charges are what the attempts of a flow's model call have used.
	Charges []agent.Charge `json:"charges,omitempty"`

	exitStatus *int // of the command that the call has run; a check reads it
}

// ToolInput is a call. Long arguments are not in it; the log has them.
type ToolInput struct {
	loop.ToolArgs
	// UpTo is the end of the log. ArgumentsInLog means that the log has the arguments.
	UpTo           LogPosition `json:"up_to,omitzero"`
	ArgumentsInLog bool        `json:"arguments_in_log,omitempty"`
	// Tried counts attempts that earlier activities made.
	Tried int `json:"tried,omitempty"`
	// Execution is the execution that began the call. If another one makes the call, the
	// workflow was reset during it.
	Execution string `json:"execution,omitempty"`
	// Carryover is what earlier activities of a flow's model call have used; nil for nothing.
	Carryover *Carryover `json:"carryover,omitempty"`
	// CheckOnly means that the workflow itself makes the call, and that this activity only checks
	// the arguments, which an approver has edited.
	CheckOnly bool `json:"check_only,omitempty"`
}

// attempt returns this attempt's number, from 1. It counts attempts of earlier
// activities, and one for a reset: that call may have had its effect.
func (in ToolInput) attempt(info activity.Info) int {
	n := in.Tried + int(info.Attempt)
	if in.Execution != "" && in.Execution != info.WorkflowExecution.RunID {
		n++
	}
	return n
}

// MaxInline is the length up to which arguments are in the activity's input. Short ones
// are worth reading in a history, long ones are not worth storing twice.
const MaxInline = 1 << 10

// maxResult limits what one result adds to a history and to the conversation, in bytes.
const maxResult = 128 << 10

func (d *Activities) callTool(ctx context.Context, in ToolInput) (ToolOutput, error) {
	info := activity.GetInfo(ctx)
	if !info.IsLocalActivity {
		defer heartbeat(ctx)()
	}
	attempt := in.attempt(info)
	result := agent.ToolResult{Call: in.Call, Tool: in.Tool}
	if attempt > max(in.Attempts, 1) { // anybody who may write to the namespace can reset a workflow, or have an activity run again
		result.Status, result.Text = agent.CallUnknown, "Unknown outcome: the call began before, and then the workflow was reset or its activity was repeated. It may or may not have had its effect. Check before you make it again."
		return ToolOutput{ToolResult: result}, nil
	}
	ctx, leave := d.begin(ctx, in.Session, in.KnownHolds, in.Parent)
	defer leave()
	if hold := heldBy(ctx); hold != nil {
		result.Status, result.Text = agent.CallSkipped, "Not executed: the run was interrupted before the call began."
		if attempt > 1 {
			result.Status, result.Text = agent.CallUnknown, "Unknown outcome: the run was interrupted between two attempts. The first may or may not have had its effect."
		}
		return ToolOutput{ToolResult: result, Hold: hold}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(in.Timeout), errToolTime) // before the log is read: else a call that has not begun would count as lost
	defer cancel()
	switch err := d.complete(ctx, &in); {
	case errors.Is(err, agent.CodeDenied):
		result.Status, result.Text = agent.CallRejected, err.Error()
		return ToolOutput{ToolResult: result}, nil
	case err != nil:
		return ToolOutput{}, err
	}
	hooks := d.hooks(in)
	call := callOf(in, attempt).With(hooks)
	// Observed only now: what was skipped or denied above was no call.
	ctx, over := d.Observers.Tool(ctx, call, in.Trace)
	text, err := d.runTool(ctx, in, call, hooks)
	if err == nil {
		err = d.checkStateSize(ctx, hooks.StateChanges, in) // the tool had its effect: the error's text says so
	}
	result.Status, result.Text, result.Files = agent.CallOK, text, hooks.Files()
	asks, err := asksNow(in, hooks, err)
	if err != nil && !asks {
		result = failedWith(ctx, err, in, result)
	}
	over(result.Status)
	switch {
	case asks:
		return ToolOutput{ToolResult: result, Hold: heldBy(ctx), Question: hooks.Question}, nil
	case err == nil:
		result.Partial = ctx.Err() != nil // whatever ended the context, the tool returned in spite of it
	// A local tool is read-only, so the run repeats it as a regular activity.
	case info.IsLocalActivity && ctx.Err() != nil && !stopped(ctx):
		return ToolOutput{}, &agent.Error{Code: agent.CodeTimeout, Message: "a local tool took too long", Err: err}
	default:
		if e := mayRetry(ctx, err, in, attempt); e != nil {
			return ToolOutput{}, e
		}
	}
	result.Text, result.Size = bound(result.Text)
	// relisted comes last: it may take long, and the call's result is complete.
	return ToolOutput{ToolResult: result, exitStatus: hooks.ExitStatus, Hold: heldBy(ctx), StateChanges: hooks.StateChanges, Artifacts: hooks.Artifacts(), Skill: hooks.Skill, ToolsChange: d.relisted(ctx, in)}, nil
}

// complete reads long arguments from the log, and checks edited arguments against the
// rules. The log has the Spec that the run began with; this build's rules do not count.
func (d *Activities) complete(ctx context.Context, in *ToolInput) error {
	if !in.ArgumentsInLog && !in.Edited && in.Check == nil {
		return nil
	}
	log, err := d.logUpTo(ctx, in.Run, in.UpTo)
	switch {
	case err != nil && in.Step != "": // it uses up no attempt
		return notBegun(ctx, durable.NoSlot{Missing: asError(err)})
	case err != nil:
		return err
	}
	if in.Check != nil {
		return d.completeCheck(ctx, log, in)
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

// callOf returns what the tool may know of an attempt. The idempotency key is the same
// for all attempts, also after an import.
func callOf(in ToolInput, attempt int) tool.Call {
	c := tool.Call{
		ID: in.Call, Session: in.Session, Run: in.Run, Agent: in.Agent, Turn: in.Turn, Tool: in.Tool,
		Key: agent.IdempotencyKey(cmp.Or(in.OriginRun, in.Run), cmp.Or(in.Step, in.Call)), Attempt: attempt, Arguments: in.Arguments,
	}
	if in.Place != nil {
		c.Workspace, c.Env = in.Place.Dir, in.Place.Env
	}
	return c
}

// hooks connect a call to the run that makes it.
func (d *Activities) hooks(in ToolInput) *toolcall.Hooks {
	return &toolcall.Hooks{
		Answers: in.Answers,
		Waits:   in.Step != "" && in.Check == nil,
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
		PutFile: func(ctx context.Context, name, mediaType string, data []byte) (f *agent.File, err error) {
			if in.Stateless {
				return nil, agent.Errorf(agent.CodeInvalidInput, "agent %s is stateless, and stores no file: return %s as text, or let the agent keep sessions", in.Agent, name)
			}
			err = patiently(ctx, func() (err error) { f, err = d.Log.PutFile(ctx, in.Session, name, mediaType, data); return err })
			return f, err
		},
	}
}

// runTool finds the tool and calls it. A panic becomes an error.
func (d *Activities) runTool(ctx context.Context, in ToolInput, call *tool.Call, hooks *toolcall.Hooks) (text string, err error) {
	defer d.caught(ctx, &err, "tool", "session", in.Session, "run", in.Run, "turn", in.Turn, "tool", in.Tool, "call", in.Call)
	if f, ok := d.Flows[in.Agent]; ok && in.Tool == agent.DoTool {
		return d.doStep(ctx, f, in, call)
	}
	if in.Tool == agent.MemoryTool {
		return d.remember(ctx, in, call)
	}
	// A worker's own tool wins over a source with the same prefix.
	if t, ok := d.Tools[in.Tool]; ok {
		text, err = t.Call(ctx, call)
		if in.Place != nil && errors.Is(err, tool.ErrElsewhere) {
			return "", elsewhere(ctx)
		}
		return text, err
	}
	if in.Tool == agent.SkillTool {
		return d.callSkill(ctx, in, hooks)
	}
	if name, _, ok := strings.Cut(in.Tool, tool.Separator); ok && d.Sources[name] != nil {
		return d.Sources[name].Call(ctx, call)
	}
	missing := agent.Errorf(agent.CodeUnknownTool, "tool %q is not in this worker's build", in.Tool)
	switch {
	case in.Step == "" && in.Check == nil: // the model can do without it
		return "", missing
	case in.Tool == agent.DoTool || in.Tool == agent.GenerateTool:
		missing = flowMissing(in.Agent)
	}
	return "", notBegun(ctx, durable.NoSlot{Missing: missing})
}

// caught is deferred around user code. It turns a panic into an error: otherwise the
// panic would end the process, or count as the outcome of a call.
func (d *Activities) caught(ctx context.Context, err *error, what string, about ...any) {
	p := recover()
	if p == nil {
		return
	}
	d.Logger.ErrorContext(ctx, what+" panicked", append(about, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
	*err = fmt.Errorf("the %s panicked: %v", what, p)
}

// maxState limits the state of a session, in bytes of keys and JSON.
const maxState = 256 << 10

// checkStateSize refuses changes that would make the session's state too large. The size
// counts all keys, so it needs the log.
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

// mayRetry returns the error that makes the server or the run try again; nil if the result is
// final.
func mayRetry(ctx context.Context, err error, in ToolInput, attempt int) error {
	if errors.As(err, new(durable.NoSlot)) { // another build may have it
		return err
	}
	if stopped(ctx) || errors.Is(err, agent.CodeDenied) || attempt >= in.Attempts {
		return nil
	}
	const most = 2000 // bytes; each attempt's error is in the history, and the model gets the last one whole
	return &agent.Error{Code: agent.CodeToolFailed, Message: excerpt.Of(err.Error(), most, len(err.Error())), Retryable: true}
}

// callStatus returns the status of a failed call and what the model is told.
func callStatus(ctx context.Context, err error, in ToolInput) (agent.CallStatus, string) {
	switch {
	case errors.As(err, new(durable.NoSlot)):
		return agent.CallSkipped, err.Error()
	case errors.Is(err, agent.CodeDenied):
		return agent.CallRejected, err.Error()
	case stopped(ctx):
		return agent.CallFailed, fmt.Sprintf("The tool was interrupted: %v. It may have had a part of its effect.", err)
	case errors.Is(context.Cause(ctx), errToolTime):
		return agent.CallFailed, fmt.Sprintf("The tool was stopped after %s, the time that it may take: %v", in.Timeout, err)
	case ctx.Err() != nil: // neither a hold nor the timeout, so the worker shuts down
		return agent.CallUnknown, "Unknown outcome: the worker shut down during the call. It may or may not have had its effect."
	case errors.Is(err, tool.ErrUnknown):
		return agent.CallUnknown, "Unknown outcome: " + err.Error()
	}
	return agent.CallFailed, err.Error()
}

// bound cuts a text that is too long, and says so in it. A result whose call had its
// effect is never dropped.
func bound(text string) (kept string, size int) {
	text = Printable(text)
	if len(text) <= maxResult {
		return text, 0
	}
	return excerpt.Of(text, maxResult, len(text)), len(text)
}

// Printable returns a text without control characters.
func Printable(text string) string { return strings.Map(printable, text) }

// printable replaces control characters. JSON makes six bytes of each, and they say
// nothing to a model. Invalid UTF-8 has become U+FFFD before.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
		return '\uFFFD'
	}
	return r
}
