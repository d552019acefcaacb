package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/mermaid"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/internal/durable"
)

// Where the status comes from.
const (
	sourceWorker = "worker" // the run itself answered
	sourceMemo   = "memo"   // no worker answers: from Temporal's visibility
	sourceResult = "result" // the run has ended
)

// shown is what show prints.
type shown struct {
	agent.RunStatus
	Source  string         `json:"source"`
	Task    string         `json:"task,omitempty"`
	Outcome *agent.Outcome `json:"outcome,omitempty"`
	// DeleteAfter is the end of an ended session's retention; zero means forever.
	DeleteAfter time.Time `json:"delete_after,omitzero"`
}

// askFor bounds the query to a run that may have no worker.
const askFor = 3 * time.Second

func (c *cli) showCommand() *cobra.Command {
	draw, steps := false, false
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show the status of a run",
		Long: `Show asks the last run of a session for its status. If no worker answers, it shows what
Temporal knows and says so. For an ended run, it shows the result.

With --draw it shows the steps of a flow as a Mermaid flowchart: how each ended, how long
it took, what it cost, and which run does it. With --json, each step is a line of JSON.

With --todo it shows the list of steps that the model keeps with the tool todo, as it was
after the last turn.`,
		Example: `  fermata show invoice-118
  fermata show invoice-118 --json | jq .cost_usd
  fermata show invoice-118 --todo
  fermata show review-7 --draw > review-7.mmd`,
		Args: exactArgs(1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if draw {
				return c.ReadLog(cmd.Context(), args[0], func(runs *fermata.Client) error {
					return c.draw(cmd.Context(), runs, args[0])
				})
			}
			if steps {
				return c.ReadLog(cmd.Context(), args[0], func(runs *fermata.Client) error {
					return c.showTodo(cmd.Context(), runs, args[0])
				})
			}
			return c.WithServer(cmd.Context(), func(s *connect.Server, runs *fermata.Client) error {
				return c.show(cmd.Context(), s, runs, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&draw, "draw", false, "show the steps of a flow as a Mermaid flowchart")
	cmd.Flags().BoolVar(&steps, "todo", false, "show the list of steps that the model keeps with the tool todo")
	c.jsonFlag(cmd, "print the status as one line of JSON, or each step as one")
	return cmd
}

// draw shows the steps of a flow.
func (c *cli) draw(ctx context.Context, runs *fermata.Client, session string) error {
	steps, err := runs.Steps(ctx, session)
	switch {
	case err != nil:
		return err
	case len(steps) == 0:
		return agent.Errorf(agent.CodeNotFound, "the last run of session %s has no steps: it is no flow, or has not begun; see %s", session, c.CommandLine("transcript %s", session))
	case c.JSON:
		for _, s := range steps {
			c.Line(stepLine{V: agent.Version, Type: "step", StepRecord: s})
		}
		return nil
	}
	c.Print("%s", untrusted.Block(untrusted.Text(strings.TrimSuffix(mermaid.Steps(steps, time.Now()), "\n"))))
	return nil
}

// stepLine is a step for programs.
type stepLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	agent.StepRecord
}

func (c *cli) show(ctx context.Context, s *connect.Server, runs *fermata.Client, session string) error {
	_, v, err := c.standing(ctx, s, runs, session)
	if err != nil {
		return err
	}
	if v.Outcome != nil && v.DeleteAfter.IsZero() { // Temporal has forgotten the run, and the store may know
		v.DeleteAfter, _ = runs.DeleteAfter(ctx, session)
	}
	if v.Source == sourceMemo {
		c.Note("no worker answers at the task queue of the run: this is what Temporal knows of it")
	}
	if c.JSON {
		c.Line(v)
		return nil
	}
	c.showText(v)
	return nil
}

// last returns a session's last run and what Temporal knows of it: nil once retention has removed it, but the
// store may have its result. Both are of one run, also if another one starts meanwhile.
func last(ctx context.Context, s *connect.Server, runs *fermata.Client, session string) (*fermata.Run, *workflowpb.WorkflowExecutionInfo, error) {
	for {
		run, err := runs.Get(ctx, session)
		if err != nil {
			return nil, nil, err
		}
		d, err := s.DescribeWorkflowExecution(ctx, session, "")
		switch {
		case errors.As(err, new(*serviceerror.NotFound)):
			return run, nil, nil
		case err != nil:
			return nil, nil, fmt.Errorf("looking for session %s: %w", session, durable.FromRPC(err))
		case d.GetWorkflowExecutionInfo().GetFirstRunId() == run.ID:
			return run, d.GetWorkflowExecutionInfo(), nil
		}
	}
}

// standing returns a session's last run and its state.
func (c *cli) standing(ctx context.Context, s *connect.Server, runs *fermata.Client, session string) (*fermata.Run, *shown, error) {
	run, info, err := last(ctx, s, runs, session)
	if err != nil {
		return nil, nil, err
	}
	memo := fermata.ReadMemo(info)
	if info == nil || durable.Closed(info) {
		o, err := run.Result(ctx)
		if err != nil {
			return nil, nil, err
		}
		v := &shown{RunStatus: statusFromOutcome(o, memo), Source: sourceResult, Task: memo.Task, Outcome: o}
		if memo.Retention > 0 {
			v.DeleteAfter = o.Ended.Add(time.Duration(memo.Retention))
		}
		return run, v, nil
	}
	// A query waits for a worker, and there may be no worker.
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	status, err := run.Status(asking)
	switch {
	case err == nil:
		return run, &shown{RunStatus: status, Source: sourceWorker, Task: memo.Task}, nil
	// Only without a worker's answer: other errors are not hidden by old data.
	case ctx.Err() == nil && (errors.Is(err, agent.CodeNoWorker) || errors.Is(err, agent.CodeTimeout)):
		return run, &shown{Source: sourceMemo, Task: memo.Task, RunStatus: statusFromMemo(run, info, memo)}, nil
	}
	return nil, nil, err
}

func (c *cli) showText(v *shown) {
	t := c.Table()
	row := t.Field
	row("session", "%s", v.Session)
	row("run", "%s", v.Run)
	row("agent", "%s", untrusted.Name(v.Agent))
	row("task", "%s", untrusted.Line(v.Task, 120))
	row("status", "%s since %s, %s", shownStatus(v), v.Since.Local().Format(time.DateTime), render.Age(v.Since))
	if !v.DeleteAfter.IsZero() {
		row("kept until", "%s", v.DeleteAfter.Local().Format(time.DateTime))
	}
	if v.Turns == v.Turn {
		row("turn", "%d", v.Turn)
	} else { // it goes on from an earlier run's checkpoint
		row("turn", "%d, %s of this run", v.Turn, render.Count(v.Turns, "turn"))
	}
	for _, d := range v.InFlight {
		row("doing", "%s, for %s", render.Words(doing(d)...), render.Age(d.Since))
		if d.Delay != nil {
			row("delayed", "until %s, in %s: [%s] %s", d.Delay.Until.Local().Format(time.DateTime), time.Until(d.Delay.Until).Round(time.Second),
				d.Delay.Error.Code, untrusted.Line(d.Delay.Error.Message, 200))
		}
	}
	if p := v.Progress; p != nil {
		row("progress", "%s", strings.TrimPrefix(render.Progress(p), "progress: "))
	}
	showRest(row, v)
	// The memo has no token counts, and zeros would be wrong.
	if v.Source != sourceMemo {
		row("tokens", "%d in, %d out", v.Usage.Input, v.Usage.Output)
	}
	row("cost", "%s", render.Money(v.Cost))
	if v.Tree.Agents > 1 {
		row("tree", "%s below, %s used; %s left", render.Count(v.Tree.Agents-1, "agent"), render.Used(v.Tree), render.Budget(v.Remaining))
	}
	showLimits(row, v)
	c.showUnknown(row, v.Outcome)
	for _, name := range slices.Sorted(maps.Keys(v.Labels)) {
		row("label", "%s=%s", untrusted.Name(name), untrusted.Name(v.Labels[name]))
	}
	if v.Build != "" {
		row("worker", "%s", v.Build)
	}
	if d := v.SuspensionDenied; d != nil {
		row("denied", "%s at %s by the hook %s: %s", d.Suspension, d.At.Local().Format(time.DateTime), untrusted.Name(d.Hook), untrusted.Line(d.Reason, 200))
	}
	for _, r := range v.Refused {
		row("refused", "%s%s at %s: %s", untrusted.Line(r.Verb, 60), render.By(r.By), r.At.Local().Format(time.DateTime), untrusted.Line(r.Error.Error(), 200))
	}
	t.Flush()
	c.showAsked(v)
	if o := v.Outcome; o != nil {
		c.answer(o)
	}
}

// shownStatus says how a run is, who ended it, and why.
func shownStatus(v *shown) string {
	text := string(v.Status)
	if v.Outcome != nil {
		text += render.By(v.Outcome.By)
	}
	if v.Reason != "" {
		text += " (" + untrusted.Line(v.Reason, 200) + ")"
	}
	return text
}

// doing says what is in flight: a flow's step by its path, anything else by its call.
func doing(d agent.InFlight) []string {
	words := []string{string(d.Kind)}
	if d.Name != "" {
		words = append(words, untrusted.Name(d.Name))
	}
	switch {
	case d.Step != "":
		words = append(words, "("+untrusted.Name(d.Step)+")")
	case d.Call != "":
		words = append(words, d.Call)
	}
	return words
}

// showUnknown shows tools with calls whose effect is unknown.
func (c *cli) showUnknown(row func(string, string, ...any), o *agent.Outcome) {
	if o == nil {
		return
	}
	for _, t := range o.Tools {
		if t.Unknown > 0 {
			row("unknown", "%d of %s of %s: it is unknown whether it took effect; see %s", t.Unknown, render.Count(t.Calls, "call"), untrusted.Name(t.Tool), c.CommandLine("transcript %s", o.Session))
		}
	}
}

// showLimits shows how much of each limit is used. A limit counts from its last renewal;
// the rows above count from the run's start.
func showLimits(row func(string, string, ...any), v *shown) {
	limit := func(text string, renewed bool) {
		if renewed {
			text += ", since it was renewed"
		}
		row("limit", "%s", text)
	}
	l := v.Limits
	if u := l.OwnTurns; u != nil {
		limit(fmt.Sprintf("%d of %s of its own", u.Used, render.Count(u.Max, "turn")), v.Tree.Agents <= 1 && v.Tree.Turns > u.Used)
	}
	if u := l.Turns; u != nil {
		limit(fmt.Sprintf("%d of %s", u.Used, render.Count(u.Max, "turn")), v.Tree.Turns > u.Used)
	}
	if u := l.Tokens; u != nil {
		limit(fmt.Sprintf("%d of %s", u.Used, render.Count(int(u.Max), "token")), v.Tree.Usage.Total() > u.Used)
	}
	if u := l.CostUSD; u != nil {
		limit(fmt.Sprintf("%s of %s", render.Money(u.Used), render.Money(u.Max)), v.Tree.Cost > u.Used)
	}
	if u := l.WallClock; u != nil {
		limit(fmt.Sprintf("%s of %s of work", time.Duration(u.Used), time.Duration(u.Max)), false)
	}
	if u := l.Agents; u != nil {
		limit(fmt.Sprintf("%d of %s below", u.Used, render.Count(u.Max, "agent")), false)
	}
}

// showRest shows why a run waits, and what was sent to it.
func showRest(row func(string, string, ...any), v *shown) {
	if s := v.Suspension; s != nil {
		row("waits", "%s, %s since %s, %s", s.ID, s.Kind, s.Since.Local().Format(time.DateTime), render.Age(s.Since))
		if s.Reason != "" && len(s.Requests)+len(s.Holds) == 0 { // requests and holds are shown below
			row("reason", "%s", untrusted.Line(s.Reason, 200))
		}
		if !s.ResumeBy.IsZero() {
			row("resume by", "%s", s.ResumeBy.Local().Format(time.DateTime))
		}
		if s.OwnerFailed != nil {
			row("owner", "%s", render.OwnerFailed(*s.OwnerFailed))
		}
		for _, h := range s.Holds {
			row("hold", "%s, for %s", render.Held(h), render.Age(h.At))
		}
		if s.Conditions != nil {
			row("waits", "%s", strings.TrimSpace(render.Conditions(s.Conditions)))
		}
		for _, w := range s.Waits {
			row("step", "%s waits %s", untrusted.Name(w.Step), strings.TrimSpace(render.Conditions(&w.Conditions)))
		}
	}
	if v.StoreError != nil {
		row("fault", "[%s] %s", v.StoreError.Code, untrusted.Line(v.StoreError.Message, 200))
	}
	if n := v.Children; n != (agent.ChildCounts{}) {
		row("below", "%d running, %d suspended, %d ended", n.Running, n.Suspended, n.Ended)
	}
	if len(v.Watch) > 0 {
		row("watches", "%s", untrusted.Line(strings.Join(v.Watch, ", "), 200))
	}
	if v.Queued > 0 {
		row("queued", "%s", counted(v.Queued, "message"))
	}
	if e := v.Event; e != nil {
		row("event", "%s", strings.TrimSpace(untrusted.Name(e.Topic)+" "+untrusted.Name(e.ID)))
	}
	if q := v.QueuedEvents; q != nil {
		row("queued", "%d of %s", q.Used, render.Count(q.Max, "event"))
	}
	showKept(row, v.Kept)
}

// showAsked shows whole requests, with the commands that answer them.
func (c *cli) showAsked(v *shown) {
	for _, q := range v.OpenRequests() {
		c.Print("")
		c.ask(q)
	}
}

// ask prints a whole request, with the commands that answer it.
func (c *cli) ask(q agent.Request) {
	c.console().Show(q)
	for _, line := range c.answers(q) {
		c.Print("  %s", line)
	}
}

// answer prints a run's result.
func (c *cli) answer(o *agent.Outcome) {
	if o.Error != nil {
		c.Print("")
		c.Print("[%s]", o.Error.Code)
		c.Print("%s", untrusted.Margin(o.Error.Message))
	}
	if o.Text != "" {
		c.Print("")
		c.Print("%s", untrusted.Margin(o.Text))
		for _, line := range render.Citations(o.Text, o.Citations, 0) {
			c.Print("%s", untrusted.Block(line))
		}
	}
	if len(o.Output) > 0 {
		c.Print("")
		c.Print("%s", untrusted.Margin(render.Output(o.Output)))
	}
	if lines := render.Unread(o.Unread); len(lines) > 0 {
		c.Print("")
		for _, line := range lines {
			c.Print("%s", untrusted.Block(line))
		}
	}
	if o.Workspace != nil {
		c.Print("")
		c.Print("workspace: %s", render.Workspace(o.Workspace))
	}
}
