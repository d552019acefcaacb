package activities

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// makeCheck makes a check's call of a tool. The result's text is a verdict.
func (d *Activities) makeCheck(ctx context.Context, in ToolInput) (ToolOutput, error) {
	out, err := d.callTool(ctx, in)
	if err == nil && out.Question == nil && out.Status == agent.CallOK {
		_, own := d.Tools[in.Tool]
		v := verdictOf(out.Text, own)
		if in.Tool == agent.ShellTool {
			v = commandVerdict(out.Text, out.exitStatus)
		}
		out.Text, out.Size = verdictJSON(v), 0
	}
	return out, err
}

// completeCheck sets the arguments of a check's call. What is checked is in the log, so the call's
// input has nothing of it.
func (d *Activities) completeCheck(ctx context.Context, log *store.View, in *ToolInput) error {
	k, ok := checkIn(log.Spec(), *in.Check)
	if !ok {
		return agent.Errorf(agent.CodeInternal, "the log has no check %s", in.Check.Name)
	}
	if k.Kind() == agent.CheckByTool {
		if err := d.offersCheck(ctx, k); err != nil {
			return err
		}
	}
	whole := log
	if k.Judge != nil || k.Kind() == agent.CheckByTool && len(k.Arguments) == 0 {
		var err error
		if whole, err = d.wholeUpTo(ctx, in.Run, in.UpTo); err != nil {
			return err
		}
	}
	raw, err := checkArguments(log, whole, k, *in)
	if err == nil {
		in.Arguments = raw
	}
	return err
}

// offersCheck returns a [agent.CodeDenied] error if a check's tool is of a source that does not list it
// now, or lists it otherwise than it was accepted. A worker's own tools were looked at when it started.
func (d *Activities) offersCheck(ctx context.Context, k agent.Check) error {
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
	if err := k.MayCall(listed.Tools[i]); err != nil {
		return agent.Errorf(agent.CodeDenied, "the check %s: %w", k.Name, err)
	}
	return nil
}

// checkIn finds a check in a Spec.
func checkIn(spec *agent.Spec, want loop.CheckArgs) (agent.Check, bool) {
	i := slices.IndexFunc(spec.Verify.Checks, func(k agent.Check) bool { return k.Name == want.Name })
	if i < 0 {
		return agent.Check{}, false
	}
	return spec.Verify.Checks[i], true
}

// checkArguments returns the arguments of a check's call: a judge's prompt, the tool's own, or the
// proposal. log is what the model knows, and whole has also what summaries replaced.
func checkArguments(log, whole *store.View, k agent.Check, in ToolInput) (json.RawMessage, error) {
	switch {
	case k.Command != "":
		return json.Marshal(map[string]string{"command": k.Command})
	case len(k.Arguments) > 0:
		return k.Arguments, nil
	}
	p, err := proposalIn(whole, in.Check.Answer, in.Turn)
	if err != nil {
		return nil, err
	}
	if k.Judge == nil {
		return json.Marshal(p)
	}
	prompt, err := judgePrompt(log, k, p)
	if err != nil {
		return nil, err
	}
	return json.Marshal(prompt)
}

// proposalIn returns the answer of a log's last run: what the outcome would have. answer is the id of
// the call that is the answer; empty means the text of the last reply.
func proposalIn(whole *store.View, answer string, turn int) (agent.Proposal, error) {
	p, spec := agent.Proposal{Task: taskIn(whole), Turn: turn}, whole.Spec()
	if answer != "" {
		return p, setAnswer(&p, whole, answer)
	}
	m, found := lastSaid(whole.Events(), func(m agent.Message) bool { return true })
	if !found {
		return p, agent.Errorf(agent.CodeInternal, "the log has no answer")
	}
	p.Text = loop.AnswerText(spec, m.Text())
	p.Output, _ = checkOutput(spec, m.Parts)
	return p, nil
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
			m, _ := lastSaid(whole.Events(), func(m agent.Message) bool { return m.Text() != "" })
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

// taskIn returns what the last run of a log was asked: all that people and programs have said to it. A
// daemon's task is what woke it last, also if that was an event. A run that continues from a checkpoint
// without a message has the task of the run before it.
func taskIn(whole *store.View) string {
	var asked []string
	daemon := whole.Spec().Daemon != nil
	for _, e := range slices.Backward(store.KnownEvents(whole.Events())) {
		m, began := e.Message, e.Started
		switch {
		case began != nil && (began.Carry == agent.CarryReset || began.HasFirstTurn() && len(asked) > 0):
			return strings.Join(reversed(asked), "\n\n")
		case m == nil:
		case m.Role == agent.RoleUser && asks(m.Note, daemon) && m.Text() != "":
			asked = append(asked, m.Text())
		case daemon && m.Role == agent.RoleAssistant && len(asked) > 0:
			return strings.Join(reversed(asked), "\n\n")
		}
	}
	return strings.Join(reversed(asked), "\n\n")
}

// asks reports whether a user's message with a note is a task.
func asks(n agent.Note, daemon bool) bool {
	return n == "" || daemon && (n == agent.NoteEvent || n == agent.NoteWake)
}

func reversed(lines []string) []string { slices.Reverse(lines); return lines }

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
