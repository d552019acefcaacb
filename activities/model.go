package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/model"
)

// CallModel asks a run's model for its next reply. Temporal retries it: without end while
// a worker or the store is away, and as often as the Spec says when the provider fails.
// The providers' own retries are off.
var CallModel = durable.Activity[ModelInput, wire.Reply]{Name: "fermata.model"}

// ModelInput says where to read, not what was said. The conversation is the log up to
// UpTo.
type ModelInput struct {
	loop.ModelArgs
	UpTo LogPosition `json:"up_to"`
	// Fetch is about how many bytes a process without the tail has to fetch. If it is
	// positive, such a process may return [wire.FinishElsewhere] instead of a reply. That
	// means that the provider's rate allows one call, and the run's own process makes it.
	Fetch int `json:"fetch,omitempty"`
	// Lane is the lane whose slot the call takes; empty for [ModelLane].
	Lane Lane `json:"lane,omitempty"`
	// Tried counts attempts that earlier activities made.
	Tried int `json:"tried,omitempty"`
	// recital is what the model reads of its notebook; empty if it has none.
	recital string
	// quiet keeps the reply from being shown while it comes: several may come at once.
	quiet bool
	// Carryover is what earlier activities have used; nil for nothing.
	Carryover *Carryover `json:"carryover,omitempty"`
}

// fetchMost is how many bytes a process fetches before a second activity near the run is
// cheaper: a query costs as much as an activity.
const fetchMost = 32 << 10

// runElsewhere reports whether the run's own process should make the call.
func (d *Activities) runElsewhere(ctx context.Context, in ModelInput) bool {
	if in.Fetch <= fetchMost {
		return false
	}
	_, here := d.LogCache.get(activity.GetInfo(ctx).WorkflowExecution.RunID, in.UpTo)
	return !here
}

// attempt returns this attempt's number, from 1.
func (in ModelInput) attempt(ctx context.Context) int {
	return in.Tried + int(activity.GetInfo(ctx).Attempt)
}

// maxReply limits one reply in a history, as JSON in bytes. A payload may have 2 MB.
const maxReply = 3 << 19

func bounded(reply wire.Reply, model string) error {
	raw, err := json.Marshal(reply)
	if err != nil {
		return agent.Errorf(agent.CodeBadOutput, "the reply of %s can't be written as JSON: %w", model, err)
	}
	if len(raw) > maxReply {
		return agent.Errorf(agent.CodeBadOutput, "the reply of %s has %d bytes; at most %d are taken", model, len(raw), maxReply)
	}
	return nil
}

func (d *Activities) askModel(ctx context.Context, in ModelInput) (wire.Reply, error) {
	t := newCharges(ctx, in.Carryover)
	// The charges so far go with each heartbeat: after a lost worker they are all that is
	// known.
	defer heartbeatWith(ctx, t.heartbeat)()
	reply, err := d.answer(ctx, in, t)
	reply, err = t.settle(ctx, reply, err)
	return reply, delayed(ctx, err)
}

func (d *Activities) answer(ctx context.Context, in ModelInput, t *charges) (wire.Reply, error) {
	ctx, leave := d.begin(ctx, in.Session, in.KnownHolds, in.Parent)
	defer leave()
	if hold := heldBy(ctx); hold != nil {
		return wire.Reply{Finish: wire.FinishHeld, Hold: hold}, nil
	}
	if d.runElsewhere(ctx, in) {
		return wire.Reply{Finish: wire.FinishElsewhere}, nil
	}
	log, err := d.logUpTo(ctx, in.Run, in.UpTo)
	if err != nil {
		return d.partialReply(ctx, "", err)
	}
	spec, came, err := d.withSkills(ctx, log, log.Spec(), in)
	if err != nil {
		return wire.Reply{}, err
	}
	entries := log.Entries()
	spec = instructed(offerFiles(spec, entries))
	in.recital = recital(log, spec, entries, in.Turn)
	hidden := in.hiddenTools(spec, entries)
	offered := withoutTools(spec, hidden)
	// Before anything is sent: an attempt that is lost is charged by this estimate.
	t.measures(estimatorOf(log, offered))
	if in.Summary == loop.SummaryOfOlder {
		return d.compact(ctx, log, offered, in, t)
	}
	spec, offered = in.spec(spec), in.spec(offered)
	messages, full := fitted(log, requestEntries(log, entries, spec), offered, in)
	if full {
		return wire.Reply{Finish: wire.FinishTooLong}, nil
	}
	reply, heard, err := d.askFitted(ctx, offered, messages, log, in, t)
	if err != nil {
		if in.overflowed(spec, err) {
			return wire.Reply{Finish: wire.FinishTooLong}, nil
		}
		held, err := d.partialReply(ctx, heard, err)
		held.Model = reply.Model
		return held, err
	}
	reply.Skills = came
	// Before the checks: rules, digests and schemas must judge the arguments that the
	// tool will get.
	if in.Summary == "" {
		reply.Parts, reply.TextCalls = textCalls(spec, reply.Parts)
	}
	reply.Parts = normalized(reply.Parts, spec)
	if err := d.examine(ctx, conversation{log, entries, in}, spec, hidden, &reply); err != nil {
		return wire.Reply{}, err
	}
	if in.Summary == loop.SummaryOfAll {
		reply.Parts = d.withCited(ctx, in, log, reply.Parts)
		reply.Parts = append(reply.Parts, d.ownFiles(ctx, in.Session, namedFiles(entries))...)
	}
	return reply, bounded(reply, cmp.Or(reply.Model, spec.Model))
}

// examine says what is wrong with a reply's calls and its output, and what they ask for. An unfinished
// reply has no final arguments, and a summary calls no tools.
func (d *Activities) examine(ctx context.Context, have conversation, spec *agent.Spec, hidden map[string]bool, reply *wire.Reply) (err error) {
	if slices.Contains([]agent.Finish{agent.FinishLength, agent.FinishContentFilter, agent.FinishPauseTurn}, reply.Finish) || have.in.Summary != "" {
		return nil
	}
	reply.Output, reply.OutputError = checkOutput(spec, reply.Parts)
	reply.ArgumentErrors = faults(spec, reply.Parts)
	d.findFiles(ctx, have, spec, reply)
	calls := (agent.Message{Parts: reply.Parts}).ToolCalls()
	reply.Notebook, reply.ArgumentErrors = updateNotebook(have, spec, calls, reply.ArgumentErrors)
	if reply.RuleMatches, err = matchRules(spec, reply.Parts); err != nil {
		return err
	}
	reply.Digests = loop.Digests(calls, spec)
	reply.ParkRequests = parkings(reply.Parts)
	noteHidden(reply, spec, hidden)
	return nil
}

// overflowed reports whether the provider refused a conversation as too long, and it can
// still be compacted.
func (in ModelInput) overflowed(spec *agent.Spec, err error) bool {
	return overflow(err) && !in.ForceFit && in.Summary == "" && spec.Compaction.Strategy != agent.CompactionNone
}

// shown reports whether people see the reply while it comes. A summary is for the run or for a
// handoff, but for the last reply at a limit.
func (in ModelInput) shown() bool {
	return !in.quiet && (in.Summary == "" || in.Summary == loop.SummaryFinal)
}

// spec returns the run's Spec, changed for a summary.
func (in ModelInput) spec(spec *agent.Spec) *agent.Spec {
	s := *spec
	s.Reasoning = cmp.Or(in.Reasoning, s.Reasoning)
	if n := in.Next; n != nil {
		s.MaxOutputTokens, s.Reasoning = cmp.Or(n.MaxOutputTokens, s.MaxOutputTokens), cmp.Or(n.Reasoning, s.Reasoning)
		s.Temperature = cmp.Or(n.Temperature, s.Temperature)
	}
	if in.Summary == loop.SummaryFinal { // an answer for people, in the agent's own form
		s.Completion = agent.CompletionNatural
	} else if in.Summary != "" {
		s.Output, s.Completion = in.output(), agent.CompletionNatural
	}
	// A stop and a resume continue without their summary, so one attempt is enough.
	if in.Summary != "" && in.Summary != loop.SummaryOfOlder {
		s.ModelAttempts = 1
	}
	return &s
}

// added returns how many bytes this call adds to the conversation.
func (in ModelInput) added(spec *agent.Spec) int {
	return len(in.note(spec)) + len(in.LateAnswers) + len(in.recital) + len(spec.ReminderMessage().Text())
}

// messages returns the conversation with the notebook, the notes of this call, the lessons and the reminders.
func (in ModelInput) messages(spec *agent.Spec, messages []agent.Message) []agent.Message {
	messages = slices.Clip(messages)
	// A reply that the provider paused is continued from itself.
	paused := len(messages) == 0 || messages[len(messages)-1].Note == agent.NotePauseTurn
	if in.recital != "" && !paused {
		shown := agent.TextMessage(agent.RoleUser, in.recital)
		shown.Note = agent.NoteNotebook
		messages = append(messages, shown)
	}
	if text := in.note(spec); text != "" {
		note := agent.TextMessage(agent.RoleUser, text)
		note.Note = agent.NoteResumed
		if in.Summary != "" {
			note.Note = agent.NoteSummary
		}
		messages = append(messages, note)
	}
	if in.LateAnswers != "" {
		late := agent.TextMessage(agent.RoleUser, in.LateAnswers)
		late.Note = agent.NoteLateAnswer
		messages = append(messages, late)
	}
	if in.Lessons != "" {
		lessons := agent.TextMessage(agent.RoleUser, in.Lessons)
		lessons.Note = agent.NoteLessons
		messages = append(messages, lessons)
	}
	if reminded := spec.ReminderMessage(); len(reminded.Parts) > 0 && in.Summary == "" && !paused {
		messages = append(messages, reminded)
	}
	// A provider refuses a request that ends with the model's own words: a part of a reply that an
	// interrupt left, if no note about the suspension follows it.
	if n := len(messages); n > 0 && !paused && messages[n-1].Role == agent.RoleAssistant {
		messages = append(messages, agent.Message{Role: agent.RoleUser, Note: agent.NoteResumed, Parts: continued})
	}
	return messages
}

// partialReply returns what the model had said when its call was cancelled. It keeps the
// text, which every provider takes back. A thought that was cut off is dropped: not every
// provider takes it back.
func (d *Activities) partialReply(ctx context.Context, heard string, err error) (wire.Reply, error) {
	if !stopped(ctx) {
		return wire.Reply{}, err
	}
	reply := wire.Reply{Finish: wire.FinishHeld, Hold: heldBy(ctx)}
	if text := strings.TrimSpace(strings.Map(printable, heard)); text != "" {
		reply.Parts = []agent.Part{{Type: agent.PartText, Text: excerpt.Of(text, maxResult, len(text))}}
	}
	return reply, nil
}

// generate makes the call with two timeouts: one for the whole call, and one for a stream
// that has fallen silent.
func (d *Activities) generate(ctx context.Context, m Model, spec *agent.Spec, messages []agent.Message, files map[string][]byte, in ModelInput, t *charges) (_ wire.Reply, heard string, _ error) {
	var said strings.Builder
	ctx, stop := context.WithTimeoutCause(ctx, time.Duration(spec.ModelTimeout),
		model.Fault(agent.FaultTimeout, 0, 0, "the model had not answered after "+spec.ModelTimeout.String()))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.Duration(spec.ModelSilence)
	watch := time.AfterFunc(silence, func() {
		cancel(model.Fault(agent.FaultTimeout, 0, 0, "the model sent nothing for "+silence.String()))
	})
	defer watch.Stop()
	// Deltas have the reply's limit: a model that never stops is cancelled while it streams.
	streamed := 0
	reply, err := m.Generate(ctx, &model.Request{
		Call:  model.CallInfo{Session: in.Session, Run: in.Run, Agent: spec.Name, Model: m.Full, Trace: in.Trace, Turn: in.Turn, Attempt: in.attempt(ctx)},
		Model: m.Name, Instructions: spec.Instructions, Messages: messages, Files: files, Tools: spec.Toolset, NoCalls: in.Summary != "", Output: outputFor(spec),
		DeniedServerTools: slices.DeleteFunc(model.ServerTools(), func(t model.ServerTool) bool { return loop.MayServe(spec, string(t)) }),
		MaxOutputTokens:   spec.MaxOutputTokens, Temperature: spec.Temperature, Reasoning: spec.Reasoning,
	}, func(delta model.Delta) {
		watch.Reset(silence)
		if streamed += len(delta.Text) + len(delta.Thinking); streamed > maxReply {
			cancel(tooLong(m.Full))
			return
		}
		// Reported at once, so that the next heartbeat has it.
		t.addReceived(streamed, model.ClampUsage(delta.Usage))
		at := said.Len() + 1
		said.WriteString(delta.Text)
		if in.shown() && delta.Text+delta.Thinking != "" {
			d.publish(liveEvent{Session: in.Session, Run: in.Run, Turn: in.Turn, Text: delta.Text, At: at, Thinking: delta.Thinking})
		}
	})
	if err != nil {
		// The cause, not the adapter's error: that may say only that the context ended.
		if fault := outOfTime(ctx); fault != nil {
			err = fault
		}
		return wire.Reply{}, said.String(), err
	}
	out := wire.Reply{Parts: reply.Parts, Finish: reply.Finish, Usage: model.ClampUsage(reply.Usage)}
	if reply.ProviderModel != m.Full {
		out.ProviderModel = reply.ProviderModel
	}
	return out, "", nil
}

// tooLong is the fault of a model that sends more than can be recorded. It might never
// end.
func tooLong(name string) *agent.Error {
	fault := model.Fault(agent.FaultBadRequest, 0, 0, fmt.Sprintf("the model had sent more than %d bytes, and was not done; lower max_output_tokens", maxReply))
	fault.Code, fault.Provider.Model = agent.CodeBadOutput, name
	return fault
}

// outOfTime returns the fault of a model whose context one of the two timeouts, or the
// limit of its length, has ended; nil otherwise.
func outOfTime(ctx context.Context) *agent.Error {
	if fault, ok := errors.AsType[*agent.Error](context.Cause(ctx)); ok && fault.Provider != nil {
		return fault
	}
	return nil
}

// outputFor returns the schema for the model's text. With completion "tool", the output
// is the arguments of a tool instead.
func outputFor(spec *agent.Spec) json.RawMessage {
	if spec.Completion == agent.CompletionTool {
		return nil
	}
	return spec.Output
}

// checkOutput checks an answer against the Spec's schema: the text of a reply without
// calls, or the arguments of the tool finish.
func checkOutput(spec *agent.Spec, parts []agent.Part) (output json.RawMessage, fault string) {
	m := agent.Message{Parts: parts}
	calls := m.ToolCalls()
	if spec.Completion == agent.CompletionTool {
		for _, c := range calls {
			if c.Tool == agent.FinishTool && c.Malformed == "" {
				return checkFinish(spec, c.Arguments)
			}
		}
		return nil, ""
	}
	if len(spec.Output) == 0 || len(calls) > 0 {
		return nil, ""
	}
	answer := unfence(m.Text())
	if rawjson.Depth(answer) > rawjson.MaxWrittenDepth {
		return nil, fmt.Sprintf("it is nested more than %d levels deep", rawjson.MaxWrittenDepth)
	}
	if fault := model.Fits(spec.Output, answer); fault != "" {
		return nil, fault
	}
	return answer, ""
}

// checkFinish checks the arguments of finish: they are the output, or have a summary. Without either
// the run would end with an older text.
func checkFinish(spec *agent.Spec, arguments json.RawMessage) (output json.RawMessage, fault string) {
	if len(spec.Output) > 0 {
		return arguments, model.Fits(spec.Output, arguments)
	}
	var said struct {
		Summary string `json:"summary"`
	}
	if err := json.Unmarshal(arguments, &said); err != nil || strings.TrimSpace(said.Summary) == "" {
		return nil, "summary must be a text that is not blank"
	}
	return nil, ""
}

// unfence removes the Markdown fence that models like to put around JSON.
func unfence(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		if _, body, ok := strings.Cut(rest, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
		}
	}
	return json.RawMessage(text)
}
