package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/tool"
)

// AskFlow asks a flow's function for its next steps, as CallModel asks a model. Its error is
// [agent.CodeStuck] if the function did not answer in time, and a [durable.NoSlot] if this
// worker's build does not have the flow. Temporal retries it without end while a worker or the
// store is away.
var AskFlow = durable.Activity[FlowInput, wire.FlowAnswer]{Name: "fermata.flow"}

// FlowInput says where the results of the flow's steps are: in the log up to a position.
type FlowInput struct {
	loop.FlowArgs
	UpTo LogPosition `json:"up_to"`
	// Within is how long the function may take.
	Within agent.Duration `json:"within"`
	// Missed is how many workers in a row have handed the asking back.
	Missed int `json:"missed,omitempty"`
}

// MaxMissed is how many workers in a row are tried for one that has what an activity needs.
const MaxMissed = 20

func (d *Activities) askFlow(ctx context.Context, in FlowInput) (wire.FlowAnswer, error) {
	f, ok := d.Flows[in.Agent]
	if !ok {
		return wire.FlowAnswer{}, notBegun(ctx, durable.NoSlot{Missing: flowMissing(in.Agent)})
	}
	if !activity.GetInfo(ctx).IsLocalActivity {
		defer heartbeat(ctx)()
	}
	log, err := d.logUpTo(ctx, in.Run, in.UpTo)
	if err != nil {
		return wire.FlowAnswer{}, err
	}
	key := activity.GetInfo(ctx).WorkflowExecution.RunID
	over, err := d.Plays.ask(ctx, key)
	if err != nil {
		return wire.FlowAnswer{}, err
	}
	defer over()
	k, err := d.playUpTo(ctx, playing{flow: flowOfSession{in.Session, in.Agent}, function: f, key: key, log: log, within: time.Duration(in.Within)})
	if err != nil {
		return wire.FlowAnswer{}, err
	}
	if step := d.lacks(k, in); step != "" {
		d.Plays.put(key, k)
		return wire.FlowAnswer{}, openStepMissing(ctx, in.Agent, step)
	}
	answer, err := d.answerOf(ctx, k, log.Spec(), in.FlowArgs)
	if !answer.Done {
		d.Plays.put(key, k)
	} else {
		k.Close()
	}
	return answer, err
}

// lacks returns an open step that the function of this build does not have; empty if there is none.
// Another build has it, so this one must not answer: what it asks for may be what the step decides
// about. Once no worker was found that has the step, or if only one build gets tasks, it is dropped.
func (d *Activities) lacks(k *kept, in FlowInput) string {
	unknown := k.Unknown(slices.DeleteFunc(slices.Clone(k.journal.Open), func(path string) bool { return slices.Contains(in.Dropped, path) }))
	if len(unknown) == 0 || in.Missed >= MaxMissed || d.OneBuild {
		return ""
	}
	return unknown[0]
}

// openStepMissing returns the error of an asking that another build has to answer.
func openStepMissing(ctx context.Context, flow, step string) error {
	return notBegun(ctx, durable.NoSlot{OpenStep: step, Missing: agent.Errorf(agent.CodeUnknownAgent, "the flow %q of this worker's build has no step %s, which is open", flow, step)})
}

func flowMissing(name string) *agent.Error {
	return agent.Errorf(agent.CodeUnknownAgent, "flow %q is not in this worker's build", name)
}

// answerOf returns what a play asks for and the log does not have: new steps, and open steps that
// nobody waits for.
func (d *Activities) answerOf(ctx context.Context, k *kept, spec *agent.Spec, in loop.FlowArgs) (a wire.FlowAnswer, err error) {
	if done, ended, bad := k.Done(); ended {
		return d.doneOf(ctx, k, done, bad, in)
	}
	for _, path := range k.journal.Open {
		if !k.WaitsFor(path) {
			a.Dropped = append(a.Dropped, path)
		}
	}
	var parts []agent.Part
	var wrong []string
	size, waiting := 0, 0
	for _, s := range k.Steps() {
		if slices.Contains(k.journal.Open, s.ProviderID) {
			// It was dropped, and the function waits for it again. Full makes its end news.
			a.Full = a.Full || slices.Contains(in.Dropped, s.ProviderID)
			continue
		}
		if len(a.Steps) >= in.Room {
			a.Full = true
			break
		}
		// The run would leave it out, after the log has it. One is asked for in any case: else the run
		// could not say that it is too long.
		waits := waitSize(s)
		if waiting += waits; in.Space > 0 && waits > 0 && waiting > in.Space && len(k.journal.Open)+len(a.Steps) > 0 {
			waiting -= waits
			a.Full = true
			continue
		}
		if err := stepFits(s); err != nil {
			return wire.FlowAnswer{Done: true, Error: err}, nil
		}
		files, why, err := d.flowFiles(ctx, in.Session, k, s.Files)
		if err != nil {
			return a, err
		}
		if size += len(s.Arguments) + filesLen(files); size > 2*maxStep && len(a.Steps) > 0 {
			a.More = true
			break
		}
		if first := k.journal.FirstRun(s); first != in.Run {
			s.OriginRun = first
		}
		s.Files = files
		a.Steps, wrong = append(a.Steps, s.FlowStep), append(wrong, why)
		parts = append(parts, agent.Part{Type: agent.PartToolCall, Call: &s.ToolCall})
	}
	a.ArgumentErrors = faults(spec, parts)
	for i, why := range wrong {
		if why != "" {
			a.ArgumentErrors = withAt(a.ArgumentErrors, len(a.Steps), i, why)
		}
	}
	a.Digests = loop.Digests((agent.Message{Parts: parts}).ToolCalls(), spec)
	a.ParkRequests = parkings(parts)
	a.RuleMatches, err = matchRules(spec, parts)
	return a, err
}

// doneOf returns the end of a play.
func (d *Activities) doneOf(ctx context.Context, k *kept, done play.Done, failed error, in loop.FlowArgs) (wire.FlowAnswer, error) {
	a := wire.FlowAnswer{Done: true, Text: done.Text, Output: done.Output}
	if failed == nil {
		files, wrong, err := d.flowFiles(ctx, in.Session, k, done.Files)
		if err != nil {
			return wire.FlowAnswer{}, err
		}
		if a.Files = files; wrong != "" {
			failed = agent.Errorf(agent.CodeFlowFailed, "the flow's result: %s", wrong)
		}
	}
	if failed == nil {
		failed = resultFits(a)
	}
	if failed != nil {
		return wire.FlowAnswer{Done: true, Error: asError(failed)}, nil
	}
	return a, nil
}

// waitSize returns how many bytes a run keeps at least while a step waits; zero if the step does not
// wait, as far as is known before rules are matched.
func waitSize(s play.Step) int {
	switch s.Tool {
	case agent.AskUserTool, agent.ApproveTool: // as a call, and as a request
		return 2 * len(s.Arguments)
	case agent.AwaitResumptionTool:
		return len(s.Arguments)
	}
	return 0
}

// stepFits returns why a step can't be recorded; nil if it can.
func stepFits(s play.Step) *agent.Error {
	if n := len(s.Arguments); n > maxStep {
		return agent.Errorf(agent.CodeTooLarge, "step %s (%s): its arguments have %d bytes, and at most %d are taken: keep large values elsewhere, and pass where", s.ProviderID, s.Tool, n, maxStep)
	}
	if rawjson.Depth(s.Arguments) > rawjson.MaxWrittenDepth {
		return agent.Errorf(agent.CodeTooLarge, "step %s (%s): its arguments are nested more than %d levels deep", s.ProviderID, s.Tool, rawjson.MaxWrittenDepth)
	}
	return nil
}

// resultFits returns why a flow's result can't be recorded; nil if it can. Its size is that in the
// history: as JSON, where a text of JSON is longer than it seems.
func resultFits(a wire.FlowAnswer) error {
	raw, err := json.Marshal(a)
	switch {
	case err != nil:
		return agent.Errorf(agent.CodeFlowFailed, "the flow's result can't be recorded: %w", err)
	case len(raw) > maxReply:
		return agent.Errorf(agent.CodeTooLarge, "the flow's result has %d bytes as it is recorded, and at most %d are taken: keep large results elsewhere, and return where", len(raw), maxReply)
	case rawjson.Depth(a.Output) > rawjson.MaxWrittenDepth:
		return agent.Errorf(agent.CodeTooLarge, "the flow's result is nested more than %d levels deep", rawjson.MaxWrittenDepth)
	}
	return nil
}

// maxFlowError bounds the text of a flow's error, in bytes: it goes into the history, the outcome and
// a parent's conversation.
const maxFlowError = 16 << 10

// maxStep bounds the arguments of one step, in bytes. One answer has twice as many: it has to fit
// into a payload, and what waits into the run's state.
const maxStep = 256 << 10

func asError(err error) *agent.Error {
	var e *agent.Error
	if !errors.As(err, &e) {
		e = &agent.Error{Code: agent.CodeFlowFailed}
	}
	one := *e
	one.Message = strings.TrimPrefix(err.Error(), string(e.Code)+": ")
	one.Message = excerpt.Of(one.Message, maxFlowError, len(one.Message))
	return &one
}

// doStep runs the code of a step of the flow's own, in a copy of the function that nobody else
// uses: the code may read the function's variables while the function itself goes on.
func (d *Activities) doStep(ctx context.Context, f play.Function, in ToolInput, call *tool.Call) (string, error) {
	log, err := d.logUpTo(ctx, in.Run, in.UpTo)
	if err != nil { // the code has not begun: that uses up no attempt
		return "", notBegun(ctx, durable.NoSlot{Missing: asError(err)})
	}
	key := doKey(activity.GetInfo(ctx).WorkflowExecution.RunID)
	k, err := d.playUpTo(ctx, playing{flow: flowOfSession{in.Session, in.Agent}, function: f, key: key, log: log, within: doWithin})
	switch {
	case errors.Is(err, agent.CodeTimeout): // it was not waited for
		return "", notBegun(ctx, durable.NoSlot{Missing: asError(err)})
	case err != nil:
		return "", err
	}
	defer d.Plays.put(key, k)
	s, ok := k.Step(in.Step)
	if !ok || s.Do == nil {
		return "", notBegun(ctx, durable.NoSlot{Missing: agent.Errorf(agent.CodeUnknownAgent, "the flow %q of this worker's build has no step %s", in.Agent, in.Step)})
	}
	return s.Do(ctx, call)
}

// doWithin is how long the function may take to come to a step of its own code.
const doWithin = 10 * time.Second
