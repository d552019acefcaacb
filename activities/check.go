package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// makeCheck makes a check's call of a tool. The result's text is a verdict.
func (d *Activities) makeCheck(ctx context.Context, in ToolInput) (ToolOutput, error) {
	out, err := d.callTool(ctx, in)
	if err == nil && in.Check.Point == agent.PointAfterTurn {
		return decided(out), nil
	}
	if err == nil && out.Question == nil && out.Status == agent.CallOK {
		if notRun(out) {
			out.Status, out.Text = agent.CallFailed, "the command could not be run: "+out.Text
			return out, nil
		}
		_, own := d.Tools[in.Tool]
		v := verdictOf(out.Text, own)
		if in.Tool == agent.ShellTool {
			v = commandVerdict(out.Text, out.exitStatus)
		}
		out.Text, out.Size = verdictJSON(v), 0
	}
	return out, err
}

// notRun reports whether the shell did not find the command, or may not run it: that is no verdict.
func notRun(out ToolOutput) bool {
	return out.exitStatus != nil && (*out.exitStatus == 126 || *out.exitStatus == 127)
}

// completeCheck sets the arguments of a check's call. What is checked is in the log, so the call's
// input has nothing of it.
func (d *Activities) completeCheck(ctx context.Context, log *store.View, in *ToolInput) error {
	k, ok := checkIn(log.Spec(), *in.Check)
	if !ok {
		return agent.Errorf(agent.CodeInternal, "the log has no check %s", in.Check.Name)
	}
	if k.Kind() == agent.CheckByTool {
		if err := d.offersCheck(ctx, in.Check.Point, k); err != nil {
			return err
		}
	}
	whole := log
	if !in.Check.Point.AroundSuspension() && (k.Judge != nil || k.Kind() == agent.CheckByTool && len(k.Arguments) == 0) {
		var err error
		if whole, err = d.wholeUpTo(ctx, in.Run, in.UpTo); err != nil {
			return err
		}
	}
	raw, err := checkArguments(log, whole, k, *in)
	if err == nil && k.Kind() == agent.CheckByCommand {
		raw, err = commandArguments(k, d.Tools[agent.ShellTool].Spec())
	}
	if err == nil {
		in.Arguments = raw
	}
	return err
}

// offersCheck returns a [agent.CodeDenied] error if a check's tool is of a source that does not list it
// now, or lists it otherwise than it was accepted. A worker's own tools were looked at when it started.
func (d *Activities) offersCheck(ctx context.Context, p agent.CheckPoint, k agent.Check) error {
	name, _, is := strings.Cut(k.Tool, tool.Separator)
	if _, own := d.Tools[k.Tool]; own || !is || d.Sources[name] == nil {
		return nil
	}
	listed, err := d.listSource(ctx, name)
	if err != nil {
		return agent.Errorf(agent.CodeDenied, "the check %s can't call %s: %w", k.Name, k.Tool, err)
	}
	i := slices.IndexFunc(listed.Tools, func(t agent.ToolSpec) bool { return t.Name == k.Tool })
	if i < 0 {
		return agent.Errorf(agent.CodeDenied, "the check %s can't call %s: %s does not list it, or nobody has accepted it as it is now; look with fermata lock", k.Name, k.Tool, name)
	}
	if err := k.MayCall(p, listed.Tools[i]); err != nil {
		return agent.Errorf(agent.CodeDenied, "the check %s: %w", k.Name, err)
	}
	return nil
}

// checkIn finds a check in a Spec.
func checkIn(spec *agent.Spec, want loop.CheckArgs) (agent.Check, bool) {
	checks := spec.ChecksAt(want.Point)
	i := slices.IndexFunc(checks, func(k agent.Check) bool { return k.Name == want.Name })
	if i < 0 {
		return agent.Check{}, false
	}
	return checks[i], true
}

// checkArguments returns the arguments of a check's call: a judge's prompt, the tool's own, or the
// proposal. log is what the model knows, and whole has also what summaries replaced.
func checkArguments(log, whole *store.View, k agent.Check, in ToolInput) (json.RawMessage, error) {
	switch {
	case k.Command != "": // see commandArguments
		return nil, nil
	case len(k.Arguments) > 0:
		return k.Arguments, nil
	case in.Check.Point.AroundSuspension():
		return in.Check.Subject, nil
	}
	seen, ask, err := material(log, whole, in)
	if err != nil || k.Judge == nil {
		return seen, err
	}
	q, err := ask()
	if err != nil {
		return nil, err
	}
	return json.Marshal(q.prompt(k, log.Spec(), in.Check.Reasoning))
}

// material returns what a check's tool gets, and what a judge is asked about it.
func material(log, whole *store.View, in ToolInput) (seen json.RawMessage, ask func() (judgeQuestion, error), err error) {
	switch in.Check.Point {
	case agent.PointAfterTurn: // no judge looks at it
		seen, err = json.Marshal(turnReport(whole, in))
		return seen, nil, err
	case agent.PointBeforeRun:
		t := unreadTask(whole)
		t.Session = in.Session
		seen, err = json.Marshal(t)
		return seen, func() (judgeQuestion, error) { return taskQuestion(t) }, err
	case agent.PointBeforeCalls:
		p, err := proposedCalls(whole, in.Turn)
		if err == nil {
			seen, err = json.Marshal(p)
		}
		return seen, func() (judgeQuestion, error) { return callsQuestion(log, p) }, err
	}
	if in.Check.Point == agent.PointStalled || in.Check.Stalled {
		p := lastWords(whole, in.Turn)
		seen, err = json.Marshal(p)
		return seen, func() (judgeQuestion, error) { return lastWordsQuestion(log, p, in.Check.Point) }, err
	}
	p, err := proposalIn(whole, in.Check.Answer, in.Turn)
	if err == nil {
		seen, err = json.Marshal(p)
	}
	return seen, func() (judgeQuestion, error) { return answerQuestion(log, p) }, err
}

// maxCommandTime is the most that shell_run gives a command.
const maxCommandTime = 30 * time.Minute

// commandArguments returns the arguments of the call that runs a check's command. The command may take
// as long as the check, which the worker's shell_run would otherwise end after its own default.
func commandArguments(k agent.Check, shell agent.ToolSpec) (json.RawMessage, error) {
	var takes struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(shell.Input, &takes); err != nil {
		return nil, err
	}
	args := struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout_seconds,omitempty"`
	}{Command: k.Command}
	if _, ok := takes.Properties["timeout_seconds"]; ok {
		most := cmp.Or(min(time.Duration(k.Timeout), maxCommandTime), maxCommandTime)
		args.Timeout = int((most + time.Second - 1) / time.Second)
	}
	return json.Marshal(args)
}

// proposalIn returns the answer of a log's last run: what the outcome would have. answer is the id of
// the call that is the answer; empty means the text of the last reply.
func proposalIn(whole *store.View, answer string, turn int) (agent.Proposal, error) {
	p, spec := agent.Proposal{Task: taskIn(whole), Turn: turn}, whole.Spec()
	if answer != "" {
		return p, setAnswer(&p, whole, answer)
	}
	m, found := lastSaid(whole.LastRun(), func(m agent.Message) bool { return true })
	if !found {
		return p, agent.Errorf(agent.CodeInternal, "the log has no answer")
	}
	p.Text = loop.AnswerText(spec, m.Text())
	p.Output, _ = checkOutput(spec, m.Parts)
	return p, nil
}

// lastWords returns the answer of a run that repeats itself: the last text of its model, which may be
// empty. Half a reply, which an interrupt cut off, is none. A daemon's are those since its task came.
func lastWords(whole *store.View, turn int) agent.Proposal {
	p := agent.Proposal{Task: taskIn(whole), Turn: turn}
	daemon := whole.Spec().Daemon != nil
	for _, e := range slices.Backward(whole.Events()) {
		m := e.Message
		switch {
		case e.Started != nil && e.Started.Imported == nil, daemon && asks(m, daemon):
			return p
		case m != nil && m.Role == agent.RoleAssistant && m.Text() != "" && !m.Partial:
			p.Text = loop.AnswerText(whole.Spec(), m.Text())
			return p
		}
	}
	return p
}

// setAnswer sets the answer that a call is: the arguments of finish, or the result of another tool.
func setAnswer(p *agent.Proposal, whole *store.View, id string) error {
	call, ok := whole.Call(id)
	if !ok {
		return agent.Errorf(agent.CodeInternal, "the log has no call %s, which is the answer", id)
	}
	if spec := whole.Spec(); call.Tool == agent.FinishTool && spec.Completion == agent.CompletionTool {
		var said struct{ Summary string }
		if json.Unmarshal(call.Arguments, &said) != nil || said.Summary == "" { // as the run does: the last text counts
			m, _ := lastSaid(whole.LastRun(), func(m agent.Message) bool { return m.Text() != "" })
			said.Summary = m.Text()
		}
		if p.Text = said.Summary; len(spec.Output) > 0 {
			p.Output = call.Arguments
		}
		return nil
	}
	for _, e := range slices.Backward(whole.Events()) {
		if e.Message == nil || e.Message.Role != agent.RoleTool {
			continue
		}
		for _, part := range e.Message.Parts {
			if part.Result != nil && part.Result.Call == id {
				p.Text, p.Output = part.Result.Text, loop.ResultOutput(*part.Result)
				return nil
			}
		}
	}
	return agent.Errorf(agent.CodeInternal, "the log has no result of call %s, which is the answer", id)
}

// lastSaid returns the model's last message that fits.
func lastSaid(events []agent.Event, fits func(agent.Message) bool) (agent.Message, bool) {
	for _, e := range slices.Backward(events) {
		if m := e.Message; m != nil && m.Role == agent.RoleAssistant && fits(*m) {
			return *m, true
		}
	}
	return agent.Message{}, false
}

// taskIn returns the text of what the last run of a log was asked.
func taskIn(whole *store.View) string { return askedIn(whole).Task }

// askedIn returns what the last run of a log was asked: all that people and programs have said to it, and
// the files with it. A daemon's task is what woke it last, also if that was an event. A run that continues
// from a checkpoint without a message has the task of the run before it. A message with files alone is a
// task, too: the run has then nothing of the task before it.
func askedIn(whole *store.View) (t agent.RunTask) {
	var asked []agent.Message // the newest first
	daemon := whole.Spec().Daemon != nil
	for _, e := range slices.Backward(store.KnownEvents(whole.Events())) {
		m, began := e.Message, e.Started
		if began != nil && (began.Carry == agent.CarryReset || began.HasFirstTurn() && len(asked) > 0) {
			break
		}
		if daemon && m != nil && m.Role == agent.RoleAssistant && len(asked) > 0 {
			break
		}
		if m != nil && m.Role == agent.RoleUser && loop.IsTask(m.Note, daemon) {
			asked = append(asked, *m)
		}
	}
	var lines []string
	for _, m := range slices.Backward(asked) {
		if words := m.Words(); words != "" {
			lines = append(lines, words)
		}
		for _, f := range m.Files() {
			t.Files = append(t.Files, agent.TaskFile{Name: f.Name, MediaType: f.MediaType})
		}
	}
	t.Task = strings.Join(lines, "\n\n")
	return t
}

// Bounds of what a tool says that vetoes, in bytes.
const (
	maxFeedback = 4 << 10
	maxEvidence = 500
)

// commandVerdict reads how a command has ended. Its text may say anything, so only the status counts.
func commandVerdict(text string, status *int) agent.Verdict {
	first, _, _ := strings.Cut(text, "\n")
	v := agent.Verdict{Decision: agent.DecisionAccept, Evidence: []string{cut(first, maxEvidence)}}
	if status == nil || *status != 0 {
		v.Decision, v.Reasoning = agent.DecisionVeto, cut(text, maxFeedback)
	}
	return v
}

// verdictOf reads what a check's tool has returned. A worker's own function accepts by saying nothing;
// the tool of a source does not.
func verdictOf(text string, own bool) agent.Verdict {
	v, trimmed := agent.Verdict{}, strings.TrimSpace(text)
	switch {
	case trimmed == "null" || trimmed == "true" || trimmed == "" && own:
		v.Decision = agent.DecisionAccept
	case trimmed == "":
		v = agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "The check said nothing."}
	case json.Unmarshal([]byte(trimmed), &v) == nil && v.Decision != "":
	default:
		v = agent.Verdict{Decision: agent.DecisionVeto, Reasoning: cut(text, maxFeedback)}
	}
	return v
}

func verdictJSON(v agent.Verdict) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error() // no verdict: the check counts as one that could not be made
	}
	return string(raw)
}

// cut returns the beginning of a long text, which says that it was cut.
func cut(text string, most int) string { return excerpt.Of(text, most, len(text)) }
