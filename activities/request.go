package activities

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// This file has the options that change what a request shows, and not what the log has.

// instructed returns a Spec whose instructions end with where the model works, if that is a place of
// its own, and with how long, in the words of what ends the run. A summary is asked for with the same
// instructions: the provider has them in its cache.
func instructed(spec *agent.Spec) *agent.Spec {
	contract := ""
	switch {
	case spec.Completion == agent.CompletionTool:
		contract = spec.Text(agent.TextLoopContractTool)
	case spec.Sentinel() != "":
		contract = spec.Text(agent.TextLoopContractSentinel, "sentinel", spec.Sentinel())
	case len(spec.Toolset) > 0 && (spec.TurnPolicy == nil || !spec.TurnPolicy.RequireAction): // without tools the first reply is the answer
		contract = spec.Text(agent.TextLoopContractText)
	}
	s := *spec
	for _, text := range []string{ownPlace(spec), contract} {
		if text != "" && text != agent.NoText {
			s.Instructions = strings.TrimSpace(s.Instructions + "\n\n" + text)
		}
	}
	return &s
}

// ownPlace says that the model works in a place of its own, and what becomes of that; empty if it works
// where its parent works.
func ownPlace(spec *agent.Spec) string {
	w := spec.Workspace
	if w == nil {
		return ""
	}
	name, end := agent.TextWorktree, "kept on a branch"
	if w.Kind == agent.WorkspaceDirectory {
		name, end = agent.TextOwnDirectory, "kept"
	}
	switch w.Ends(agent.StatusCompleted) {
	case agent.WorkspaceMerge:
		end = "merged into that agent's files"
	case agent.WorkspaceDrop:
		end = "deleted"
	}
	return spec.Text(name, "at_end", end)
}

// hiddenTools returns the names of the tools that a request leaves out; nil if the agent hides none.
func hiddenTools(spec *agent.Spec, entries []store.Entry) map[string]bool {
	if !spec.HidesTools() {
		return nil
	}
	return loop.HiddenTools(spec, messagesOf(entries))
}

// hiddenTools returns the names of the tools that this request leaves out: also those that a hook has
// left out of the turn. The runtime's own tools stay.
func (in ModelInput) hiddenTools(spec *agent.Spec, entries []store.Entry) map[string]bool {
	hidden := hiddenTools(spec, entries)
	if in.Next == nil || in.Next.Tools == nil {
		return hidden
	}
	if hidden == nil {
		hidden = map[string]bool{}
	}
	for _, t := range spec.Toolset {
		if t.Executor != agent.ExecutorRuntime && !glob.MatchesAny(in.Next.Tools, t.Name) {
			hidden[t.Name] = true
		}
	}
	return hidden
}

// withoutTools returns a Spec without the tools that are hidden.
func withoutTools(spec *agent.Spec, hidden map[string]bool) *agent.Spec {
	if len(hidden) == 0 {
		return spec
	}
	s := *spec
	s.Toolset = slices.DeleteFunc(slices.Clone(spec.Toolset), func(t agent.ToolSpec) bool { return hidden[t.Name] })
	return &s
}

// noteHidden adds to a reply what came of hidden tools: what the model found, and what it called
// although it was not offered it.
func noteHidden(reply *wire.Reply, spec *agent.Spec, hidden map[string]bool) {
	if !spec.HidesTools() && len(hidden) == 0 {
		return
	}
	calls := (agent.Message{Parts: reply.Parts}).ToolCalls()
	if spec.HidesTools() {
		reply.FoundTools = loop.SearchTools(spec, hidden, calls)
	}
	for _, c := range calls {
		if hidden[c.Tool] && !slices.Contains(reply.HiddenTools, c.Tool) {
			reply.HiddenTools = append(reply.HiddenTools, c.Tool)
		}
	}
}

// requestEntries returns a conversation as a request shows it: without corrections from before a
// suspension, and with times, if the agent asks for them.
func requestEntries(log *store.View, entries []store.Entry, spec *agent.Spec) []store.Entry {
	entries = withoutCorrections(entries, log.Suspended())
	if spec.TimestampMessages {
		return dated(entries)
	}
	return entries
}

// corrections are the notes about the form of a reply. They are for the next reply, and whoever resumes
// a run says what comes next (PA-24). Verdicts of checks and hooks stay: they say what is wrong with the
// work.
var corrections = []agent.Note{agent.NoteNudge, agent.NoteRepair, agent.NoteRetry, agent.NoteRecovery}

// continued is what a request shows for a correction from before a suspension. Without it two messages
// of the model would stand in a row, which not every provider takes.
var continued = agent.TextMessage(agent.RoleUser, "Continue.").Parts

// withoutCorrections returns entries without what the corrections before an event say.
func withoutCorrections(entries []store.Entry, before int64) []store.Entry {
	outdated := func(e store.Entry) bool { return e.Seq < before && slices.Contains(corrections, e.Note) }
	if !slices.ContainsFunc(entries, outdated) {
		return entries
	}
	entries = slices.Clone(entries)
	for i := range entries {
		if outdated(entries[i]) {
			entries[i].Parts = continued
		}
	}
	return entries
}

// dated returns a conversation in which each message of a user, and the first of a turn's results,
// begins with the time of its event. A model's own messages stay as they were: providers take some
// of them back only unchanged, and a model would write the times itself. The message after one says
// when it was written.
func dated(entries []store.Entry) []store.Entry {
	out := slices.Clone(entries)
	before := time.Time{}
	for i, e := range out {
		if e.Role == agent.RoleAssistant {
			before = e.Time
			continue
		}
		stamp := "[" + e.Time.UTC().Format(time.RFC3339) + "]"
		if !before.IsZero() {
			stamp = fmt.Sprintf("[%s; your message before: %s]", e.Time.UTC().Format(time.RFC3339), before.UTC().Format(time.RFC3339))
		}
		before, out[i].Parts = time.Time{}, stamped(e.Parts, stamp)
	}
	return out
}

// stamped returns parts with a stamp before the first text or result.
func stamped(parts []agent.Part, stamp string) []agent.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		switch {
		case p.Type == agent.PartText:
			out[i].Text = stamp + " " + p.Text
			return out
		case p.Type == agent.PartToolResult && p.Result != nil:
			r := *p.Result
			r.Text, out[i].Result = stamp+"\n"+r.Text, &r
			return out
		}
	}
	return append([]agent.Part{{Type: agent.PartText, Text: stamp}}, out...)
}

// FirstRequest returns a Spec as the first request of a run shows it: with all instructions, and
// without the tools that are hidden until the model finds them.
func FirstRequest(spec *agent.Spec) *agent.Spec {
	return withoutTools(instructed(spec), hiddenTools(spec, nil))
}
