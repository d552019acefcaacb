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

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/window"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// fitted returns the conversation for the model. full means that it is too long and has
// to be compacted first. If it was compacted and is still too long, it is cut.
func fitted(log *store.View, entries []store.Entry, spec *agent.Spec, in ModelInput) (_ []agent.Message, full bool) {
	limit := window.Limit(spec)
	if limit == 0 || spec.Compaction.Strategy == agent.CompactionNone {
		return in.messages(spec, messagesOf(entries)), false
	}
	m := window.NewTokenEstimator(log, spec)
	switch tokens := m.Tokens(entries); {
	case in.ForceFit || in.Summary != "":
		entries = window.Fit(entries, m.BytesFor(limit)*9/10-in.added(spec)) // a tenth as a margin, since the estimate is not exact
	case float64(tokens) > spec.Compaction.Threshold*float64(limit):
		return nil, true
	}
	return in.messages(spec, messagesOf(entries)), false
}

// maxHalvings is how often a compacted conversation is halved if a provider still refuses
// it as too long.
const maxHalvings = 4

// askFitted asks the model. With ForceFit it halves the conversation as long as the
// provider refuses it as too long. In the end it says the files in words: one of the newest message
// may have more pages than any window takes.
func (d *Activities) askFitted(ctx context.Context, spec *agent.Spec, messages []agent.Message, log *store.View, in ModelInput, t *charges) (wire.Reply, string, error) {
	reply, heard, err := d.askModels(ctx, spec, messages, in, t)
	compacts := spec.Compaction.Strategy != agent.CompactionNone
	if compacts && !in.ForceFit || !overflow(err) {
		return reply, heard, err
	}
	entries := requestEntries(log, log.Entries(), spec)
	for room := window.Bytes(entries) / 2; compacts && overflow(err) && room > window.Bytes(entries)>>maxHalvings; room /= 2 {
		reply, heard, err = d.askModels(ctx, spec, in.messages(spec, messagesOf(window.Fit(entries, room))), in, t)
	}
	if overflow(err) && haveFiles(messages) {
		return d.askModels(ctx, spec, withoutFiles(messages), in, t)
	}
	return reply, heard, err
}

// overflow reports whether a provider refused a conversation as too long.
func overflow(err error) bool {
	e, ok := errors.AsType[*agent.Error](err)
	return ok && e.Provider != nil && e.Provider.Kind == agent.FaultContext && !e.Retryable
}

func messagesOf(entries []store.Entry) []agent.Message {
	out := make([]agent.Message, len(entries))
	for i, e := range entries {
		out[i] = e.Message
	}
	return out
}

// compact summarizes the older part of a conversation. If the model cannot, or the
// strategy is to truncate, the part is left out.
func (d *Activities) compact(ctx context.Context, log *store.View, spec *agent.Spec, in ModelInput, t *charges) (wire.Reply, error) {
	entries := requestEntries(log, log.Entries(), spec)
	m := window.NewTokenEstimator(log, spec)
	before := m.Tokens(entries)
	limit := window.Limit(spec)
	c := agent.Compaction{Strategy: spec.Compaction.Strategy, Reason: agent.CompactedForWindow, Before: before}
	if limit == 0 || float64(before) <= spec.Compaction.Threshold*float64(limit) { // by the estimate it fits; the provider knows better
		c.Reason, limit = agent.CompactedForOverflow, before/2
	}
	first, from := window.Split(entries, m, limit, spec.Compaction)
	if first >= from { // there is nothing older
		return wire.Reply{Finish: agent.FinishStop}, nil // there is nothing older
	}
	c.KeepFirst = first
	if from < len(entries) {
		c.KeepFrom = entries[from].Seq
	}
	reply, err := d.replacement(ctx, spec, &c, older{archived: entries[first:from], all: entries[:from], room: m.BytesFor(limit)*9/10 - in.added(spec)}, in, t)
	if err != nil || reply.Finish == wire.FinishHeld {
		return reply, err
	}
	text := agent.Message{Parts: reply.Parts}.Text()
	if most := m.TextBytesFor(limit / 5); len(text) > most { // a summary that is too long would fill the window again
		text = excerpt.Of(text, most, len(text))
	}
	text += d.cited(ctx, in, log, slices.Concat(entries[:first], entries[from:]), m.TextBytesFor(limit/5))
	said := store.Entry{Message: agent.TextMessage(agent.RoleUser, text)}
	said.Note = agent.NoteSummary
	said.Parts = append(said.Parts, d.ownFiles(ctx, in.Session, namedFiles(entries[first:from]))...)
	reply.Parts = said.Parts
	// A full slice expression: append must not overwrite entries that are kept.
	c.After = m.Tokens(append(append(entries[:first:first], said), entries[from:]...))
	reply.Compaction = &c
	return reply, nil
}

// older is the part of a conversation that is replaced.
type older struct {
	archived []store.Entry // what the model will not see any more
	all      []store.Entry // with the beginning, which stays
	room     int           // how many bytes a request for a summary may have
}

// replacement returns what replaces the older part of a conversation, and sets in c how it was made.
func (d *Activities) replacement(ctx context.Context, spec *agent.Spec, c *agent.Compaction, o older, in ModelInput, t *charges) (wire.Reply, error) {
	if c.Strategy == agent.CompactionCustom {
		text, err := d.customSummary(ctx, spec, o.archived, in)
		switch {
		case err == nil:
			return wire.Reply{Finish: agent.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: text}}}, nil
		case stopped(ctx):
			return d.partialReply(ctx, "", err)
		case ctx.Err() != nil:
			return wire.Reply{}, err
		}
		d.Logger.WarnContext(ctx, "the compaction's own tool failed; the model sums up", "session", in.Session, "run", in.Run, "tool", spec.Compaction.Tool, "error", err)
		c.Strategy, c.Fallback = agent.CompactionHybrid, cut(Printable(err.Error()), maxFallback)
	}
	if c.Strategy != agent.CompactionTruncate {
		c.Instructed = spec.Compaction.Instructions != ""
		summary, err := d.summary(ctx, window.Fit(o.all, o.room), spec, in, t)
		switch {
		case stopped(ctx):
			return d.partialReply(ctx, "", err)
		// The worker's end or a passing failure: another attempt may summarize after all.
		case ctx.Err() != nil || mayPass(err):
			return wire.Reply{}, err
		case err == nil:
			return summary, nil
		}
		d.Logger.WarnContext(ctx, "the conversation was not summed up; its older part is left out", "session", in.Session, "run", in.Run, "error", err)
		c.Strategy = agent.CompactionTruncate
	}
	return wire.Reply{Finish: agent.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: spec.Text(agent.TextLeftOut)}}}, nil
}

// Bounds of a custom compaction, in bytes: of what its tool gets, and of why it failed.
const (
	maxArchived = 1 << 20
	maxFallback = 500
)

// customSummary calls the tool of a custom compaction. It is no call of the model: no rule is asked,
// and no message has it. What it returns is recorded with the event compacted.
func (d *Activities) customSummary(ctx context.Context, spec *agent.Spec, archived []store.Entry, in ModelInput) (text string, err error) {
	name := spec.Compaction.Tool
	t, ok := d.Tools[name]
	if !ok {
		return "", agent.Errorf(agent.CodeUnknownTool, "tool %q is not in this worker's build", name)
	}
	raw, err := json.Marshal(agent.CompactionInput{Archived: archivedParts(window.Fit(archived, maxArchived), spec), Reminders: spec.ReminderTexts(), Policy: spec.Compaction})
	if err != nil {
		return "", err
	}
	within := cmp.Or(t.Spec().Timeout, agent.Duration(10*time.Minute))
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(within), errToolTime)
	defer cancel()
	of := ToolInput{ToolArgs: loop.ToolArgs{Caller: in.Caller, Agent: spec.Name, Call: fmt.Sprintf("t%d.compaction", in.Turn), Tool: name, Arguments: raw}}
	hooks := d.hooks(of)
	said, err := d.runTool(ctx, of, callOf(of, 1).With(hooks), hooks)
	var out agent.CompactionSummary
	switch {
	case err != nil:
		return "", err
	case json.Unmarshal([]byte(said), &out) != nil || strings.TrimSpace(out.Summary) == "":
		return "", agent.Errorf(agent.CodeBadOutput, "what the tool %s returned has no summary", name)
	}
	text, _ = bound(out.Summary)
	return text, nil
}

// archivedParts returns the parts of messages as a compaction's tool gets them: without thoughts, and
// without the secrets in arguments.
func archivedParts(entries []store.Entry, spec *agent.Spec) []agent.ArchivedPart {
	parts := []agent.ArchivedPart{}
	for _, e := range entries {
		for _, p := range e.Parts {
			part := agent.ArchivedPart{Role: e.Role, Note: e.Note}
			switch {
			case p.Call != nil:
				part.Call, part.Tool, part.Arguments = p.Call.ID, p.Call.Tool, string(loop.Redacted(p.Call.Arguments, spec, p.Call.Tool))
			case p.Result != nil:
				part.Call, part.Tool, part.Status, part.Text = p.Result.Call, p.Result.Tool, p.Result.Status, p.Result.Text
			case p.File != nil:
				part.File = p.File.Name
			case p.Type == agent.PartText:
				part.Text = p.Text
			default:
				continue
			}
			parts = append(parts, part)
		}
	}
	return parts
}

// cited returns what the notebook cites and the conversation does not show any more; empty without a
// notebook.
func (d *Activities) cited(ctx context.Context, in ModelInput, log *store.View, kept []store.Entry, room int) string {
	n := log.Notebook()
	if log.Spec().Notebook == nil || len(n.Sources()) == 0 {
		return ""
	}
	ctx, stop := context.WithTimeout(ctx, filesTime) // the summary is paid
	defer stop()
	events, err := d.wholeLog(ctx, in)
	if err != nil {
		d.Logger.WarnContext(ctx, "what the notebook cites is left out of a summary", "session", in.Session, "run", in.Run, "error", err)
		return ""
	}
	return citedBodies(events, n, kept, room)
}

// maxCited is how many bytes of what a notebook cites stay if the model's window is not known.
const maxCited = 64 << 10

// withCited adds what the notebook cites to the summary of a whole conversation.
func (d *Activities) withCited(ctx context.Context, in ModelInput, log *store.View, parts []agent.Part) []agent.Part {
	if strings.TrimSpace(agent.Message{Parts: parts}.Text()) == "" { // the conversation stays
		return parts
	}
	room := maxCited
	if limit := window.Limit(log.Spec()); limit > 0 {
		room = window.NewTokenEstimator(log, log.Spec()).TextBytesFor(limit / 5)
	}
	if text := d.cited(ctx, in, log, nil, room); text != "" {
		parts = append(slices.Clip(parts), agent.Part{Type: agent.PartText, Text: text})
	}
	return parts
}

// mayPass reports whether an error is retryable.
func mayPass(err error) bool {
	e, ok := errors.AsType[*agent.Error](err)
	return ok && e.Retryable
}

// summary asks the model for a summary. It may not call tools. A refusal is no summary. One that is cut
// off is: what it has says more than the text that the conversation's older part is left out.
func (d *Activities) summary(ctx context.Context, entries []store.Entry, spec *agent.Spec, in ModelInput, t *charges) (wire.Reply, error) {
	reply, _, err := d.askModels(ctx, in.spec(spec), in.messages(spec, messagesOf(entries)), in, t)
	switch {
	case err != nil:
	case reply.Finish == agent.FinishContentFilter:
		err = agent.Errorf(agent.CodeBadOutput, "the model refused the summary")
	case strings.TrimSpace(agent.Message{Parts: reply.Parts}.Text()) == "":
		err = agent.Errorf(agent.CodeBadOutput, "the summary is empty")
	}
	return reply, err
}
