package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// dryRun shows what the run would be, and starts nothing.
func (r *runner) dryRun(ctx context.Context) error {
	switch {
	case r.detach:
		return agent.Errorf(agent.CodeInvalidInput, "--dry-run and --detach exclude each other: nothing is started")
	case r.session != "" || r.options.Carry != agent.CarryInherit:
		return agent.Errorf(agent.CodeInvalidInput, "--dry-run looks at a start in a new session: leave out --session and --carry")
	case len(r.options.Files) > 0:
		return agent.Errorf(agent.CodeInvalidInput, "--dry-run reads no files: leave out --file")
	case r.file == nil:
		return noAgents()
	}
	if _, err := r.file.Agent(r.agent); err != nil {
		return err
	}
	if err := r.setModel(); err != nil {
		return err
	}
	if err := r.file.MissingKey(r.agent); err != nil { // a look needs no key, and the run does
		r.Note("the run would fail: %v", err)
	}
	start := agent.Start{Agent: r.agent, Input: agent.Input{Text: r.task, Briefing: r.options.Briefing}, By: r.options.By, Park: r.options.Park, Skills: r.skills, WorkingFiles: r.working, Judge: r.options.Judge}
	p, err := r.host.DryRun(ctx, r.file, start)
	if err != nil {
		return err
	}
	if r.JSON {
		r.Line(p)
		return nil
	}
	r.printPreview(p)
	return nil
}

// maxReminder is how much of a reminder is shown, in characters: all of it.
const maxReminder = 500

func (r *runner) printPreview(p *agent.Preview) {
	s := p.Spec
	r.Print("agent         %s (nothing was started)", untrusted.Name(p.Agent))
	r.Print("model         %s", untrusted.Name(strings.Join(s.Models(), ", then ")))
	if s.Role != "" {
		r.Print("role          %s", s.Role)
	}
	switch p := s.ReasoningPolicy; {
	case s.Reasoning != "":
		r.Print("reasoning     %s", s.Reasoning)
	case p != nil:
		r.Print("reasoning     %s (%s, scale %s)", p.Level(p.Task), p.Task, p.Scale)
	}
	r.Print("limits        %s", limitsText(s))
	r.Print("ends          %s", endText(s))
	r.printChecks(s)
	for _, u := range p.Skills {
		how := "named by you"
		if u.Cause == agent.SkillMatched {
			how = "matches the task"
		}
		r.Print("skill         %s (%s)", untrusted.Name(u.Name), how)
	}
	for _, one := range s.Reminders {
		r.Print("reminder      %s", untrusted.Line(one.Text, maxReminder))
	}
	if len(s.Output) > 0 {
		r.Print("output        a JSON Schema of %d bytes", len(s.Output))
	}
	switch q := p.Request; {
	case q.Bytes == 0:
		r.Print("first request none: the run would begin without a model call")
	case q.Window > 0:
		r.Print("first request %d bytes, about %d of the %d tokens of the model's window", q.Bytes, q.Tokens, q.Window)
	default:
		r.Print("first request %d bytes, about %s", q.Bytes, render.Count(int(q.Tokens), "token"))
	}
	if len(p.Tools) > 0 {
		r.Print("")
		t := r.Table("TOOL", "CALLS ARE", "DOES", "WHY")
		for _, one := range p.Tools {
			t.Row(untrusted.Name(one.Tool), rulingText(one), doesText(one), untrusted.Text(one.Reason))
		}
		t.Flush()
	}
	if p.Instructions != "" {
		r.Print("\ninstructions\n%s", untrusted.Margin(p.Instructions))
	}
	for _, m := range p.Messages {
		r.Print("\n%s\n%s", m.Role, untrusted.Margin(m.Text()))
	}
}

// printChecks prints what checks an answer, calls and turns, and what follows a failure.
func (r *runner) printChecks(s agent.Spec) {
	for _, k := range s.Verify.Checks {
		r.Print("check         %s (%s%s)", untrusted.Name(k.Name), k.Kind(), judging(k))
	}
	if len(s.Verify.Checks) > 0 {
		bound := "any number"
		if s.Verify.Max > 0 {
			bound = fmt.Sprintf("%d at most", s.Verify.Max)
		}
		r.Print("vetoes        %s", bound)
	}
	for _, p := range agent.CheckPoints() {
		if p == agent.PointVerify {
			continue
		}
		for _, k := range s.ChecksAt(p) {
			text := judging(k)
			if p == agent.PointBeforeRun {
				text += ", not asked: taken to accept"
			}
			r.Print("hook          %s (%s, %s%s)", untrusted.Name(k.Name), p, k.Kind(), text)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Recovery)) {
		r.Print("recovery      %s: %s", kind, remedyText(s.Recovery[kind]))
	}
	if s.Lessons {
		r.Print("lessons       the model reads what has failed")
	}
}

// judging says when a judge is asked, and when it is passed over; empty if it always looks.
func judging(k agent.Check) string {
	c, s, text := k.Cadence, k.Skip, ""
	for _, part := range []struct {
		set  bool
		text string
	}{
		{c.When == agent.CadenceStalled, "when a call repeats"},
		{c.Every > 0, fmt.Sprintf("every %s", render.Count(c.Every, "turn"))},
		{c.AfterTurns > 0, fmt.Sprintf("after %s", render.Count(c.AfterTurns, "turn"))},
		{c.MaxInvocations > 0, fmt.Sprintf("at most %s", render.Count(c.MaxInvocations, "time"))},
		{s.Stalled, "not when a call repeats"},
		{s.LastTurns > 0, "not in the last " + strings.TrimPrefix(render.Count(s.LastTurns, "turn"), "1 ")},
		{s.Attempts > 0, fmt.Sprintf("not after %s in a row", render.Count(s.Attempts, "attempt"))},
	} {
		if part.set {
			text += ", " + part.text
		}
	}
	return text
}

func remedyText(m agent.Remedy) string {
	if m.Attempts() == 0 {
		return string(m.Do)
	}
	return fmt.Sprintf("%s, at most %s in a row, then %s", m.Do, render.Count(m.Attempts(), "time"), m.After())
}

func limitsText(s agent.Spec) string {
	l := s.Limits
	var parts []string
	add := func(on bool, format string, value any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	if a := l.Adaptive; a != nil {
		add(true, "%s", fmt.Sprintf("%d turns of its own at first, and up to %d", a.Initial, a.Max))
	} else {
		add(l.OwnTurns > 0, "%d turns of its own", l.OwnTurns)
	}
	add(l.Turns > 0, "%d turns with sub-agents", l.Turns)
	add(l.Tokens > 0, "%d tokens", l.Tokens)
	add(l.CostUSD > 0, "%s USD", l.CostUSD)
	add(l.WallClock > 0, "%s of work", l.WallClock)
	if len(s.Agents) > 0 {
		add(true, "%d agents", l.Agents)
		add(true, "%d levels", l.Depth)
	}
	return strings.Join(parts, ", ")
}

func endText(s agent.Spec) string {
	if s.Completion == agent.CompletionTool {
		return fmt.Sprintf("by the tool %s, after at most %s in a row", agent.FinishTool, render.Count(max(0, s.Nudges), "nudge"))
	}
	return "by a reply without tool calls"
}

func rulingText(t agent.ToolPreview) string {
	text := map[agent.Ruling]string{agent.RulingAllow: "made", agent.RulingAsk: "asked for", agent.RulingDeny: "refused"}[t.Ruling]
	if len(t.Approvers) > 0 {
		text += " (" + untrusted.Name(strings.Join(t.Approvers, ", ")) + ")"
	}
	for _, m := range t.Maybe {
		text += fmt.Sprintf("; some %s", map[agent.Ruling]string{agent.RulingAllow: "made", agent.RulingAsk: "asked for", agent.RulingDeny: "refused"}[m])
	}
	return text
}

func doesText(t agent.ToolPreview) string {
	switch {
	case t.Executor == agent.ExecutorSubAgent:
		return "starts an agent"
	case t.Executor == agent.ExecutorClient:
		return "asks the client"
	case t.Executor == agent.ExecutorRuntime:
		return "the runtime's"
	case t.ReadOnly:
		return "reads"
	}
	return "writes"
}
