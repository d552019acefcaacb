package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Verify says what is checked before a run completes. When the model has answered, the checks are
// made in their order. If all accept, the run completes. If one vetoes, the model reads why and goes
// on; the checks after it are not made. The zero value checks nothing.
type Verify struct {
	// Checks are made one after the other; at most 8.
	Checks []Check `json:"checks,omitempty"`
	// Max is after how many vetoes the run fails with [CodeVerifyCapped]; zero means 5, and -1 any
	// number. With -1 only the other limits bound the run.
	Max int `json:"max,omitempty"`
}

// defaultVetoes is after how many vetoes a run fails, if its agent does not say.
const defaultVetoes = 5

// Bounds of checks.
const (
	maxChecks       = 8
	maxCheckTask    = 4 << 10  // bytes; the run's state has it
	maxCheckText    = 16 << 10 // bytes, of instructions and of arguments
	maxCheckTimeout = Duration(24 * time.Hour)
)

// WithDefaults returns v with every default filled in.
func (v Verify) WithDefaults() Verify {
	if len(v.Checks) > 0 {
		v.Max = or(v.Max, defaultVetoes)
	}
	return v
}

// Check is something that looks at what a run has done, and accepts or vetoes it. One of Tool,
// Command, Agent and Judge is set.
type Check struct {
	// Name is what events, limits and the model call the check by: 1 to 32 lower-case letters,
	// digits or "_", beginning with a letter.
	Name string `json:"name"`
	// Tool is a tool of the worker; the agent need not have it. It should only look: the call may be
	// made again. It accepts by null or true, or by a verdict in JSON, and a worker's own function also
	// by an empty result. Any other text is a veto, and the model reads the text.
	Tool string `json:"tool,omitempty"`
	// Arguments are the tool's; empty means the answer as JSON, with task, text, output and turn.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Command is run by the tool shell_run. It accepts by the exit status 0. Otherwise the model
	// reads its output.
	Command string `json:"command,omitempty"`
	// Agent is an agent that looks at the answer, as a sub-agent: it counts to the run's limits.
	Agent string `json:"agent,omitempty"`
	// Task is what the agent is asked to do. It gets the answer as its context.
	Task string `json:"task,omitempty"`
	// Tools are names and patterns of tools that the agent may use; empty means those that this
	// agent has too.
	Tools []string `json:"tools,omitempty"`
	// Limits may lower the agent's own limits.
	Limits Limits `json:"limits,omitzero"`
	// Judge is a model that is asked once.
	Judge *Judge `json:"judge,omitempty"`
	// Max is after how many vetoes of this check the run fails with [CodeVerifyCapped], also if
	// [Verify.Max] allows more. Zero means that only that counts. Hooks have no such bound.
	Max int `json:"max,omitempty"`
	// Cadence says which answers a judge of verify looks at; the zero value means each.
	Cadence Cadence `json:"cadence,omitzero"`
	// MaySkip are names of later checks of the list that need not look if this tool accepts and says so;
	// empty means none. Only a tool of verify or hooks.before_calls has it.
	MaySkip []string `json:"may_skip,omitempty"`
	// Skip says when a judge of hooks.before_calls is passed over; the zero value means never.
	Skip Skip `json:"skip,omitzero"`
	// FeedbackFallback is what the model reads after a veto that says nothing; empty means a text of
	// the runtime's.
	FeedbackFallback string `json:"feedback_fallback,omitempty"`
	// OnError says what a check counts as that could not be made; empty means veto.
	OnError CheckError `json:"on_error,omitempty"`
	// Timeout is how long one attempt may take; zero means the tool's own time, which is 31m for a
	// command, and 10m for a judge and for other tools. An agent has its limits instead.
	Timeout Duration `json:"timeout,omitempty"`
}

// Judge is a model that is asked whether what a run has done is enough. It sees the conversation,
// cut to what fits, and answers with a verdict. Its usage counts to the run.
type Judge struct {
	// Model is the model's full name; empty means the agent's own model.
	Model string `json:"model,omitempty"`
	// Instructions say what is enough: the rubric.
	Instructions string `json:"instructions,omitempty"`
	// MaxOutputTokens bounds the reply, with what the judge thinks; zero means 1024, or the model's own
	// bound if the agent's reasoning_policy chooses how much it thinks.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
}

// StartJudge is the name of the check that a start adds ([Start.Judge]).
const StartJudge = "start_judge"

// Check returns a [CodeInvalidInput] error for a judge that a start can't add.
func (j Judge) Check() error {
	if j.MaxOutputTokens < 0 { // here, since the check itself has no path in a start
		return Errorf(CodeInvalidInput, "judge.max_output_tokens is %d; it must be positive", j.MaxOutputTokens).WithPath("judge.max_output_tokens")
	}
	return Check{Name: StartJudge, Judge: &j}.check("judge")
}

// With returns the checks with that of a start's judge as the last one. It refuses a judge beside
// the most checks that an agent may have.
func (v Verify) With(j Judge) (Verify, error) {
	if len(v.Checks) >= maxChecks {
		return v, Errorf(CodeInvalidInput, "judge: the agent has %d checks already, the most that there may be; start it without a judge", len(v.Checks)).WithPath("judge")
	}
	v.Checks = append(slices.Clip(v.Checks), Check{Name: StartJudge, Judge: &j})
	return v.WithDefaults(), nil
}

// CheckError says what a check counts as that could not be made: it failed, its time was up, or its
// verdict could not be read.
type CheckError string

// What such a check counts as. The zero value means veto.
const (
	CheckErrorVeto   CheckError = "veto"   // a veto: the model reads what went wrong
	CheckErrorAccept CheckError = "accept" // an acceptance
	CheckErrorHold   CheckError = "hold"   // the run is paused, and a resume makes the check again
)

// CheckKind says who makes a check.
type CheckKind string

// The kinds of checks.
const (
	CheckByTool    CheckKind = "tool"
	CheckByCommand CheckKind = "command"
	CheckByAgent   CheckKind = "agent"
	CheckByJudge   CheckKind = "judge"
)

// Kind returns who makes the check.
func (c Check) Kind() CheckKind {
	switch {
	case c.Judge != nil:
		return CheckByJudge
	case c.Agent != "":
		return CheckByAgent
	case c.Command != "":
		return CheckByCommand
	}
	return CheckByTool
}

// ShellTool is the tool that runs the command of a check.
const ShellTool = "shell_run"

// ToolName returns the name of the tool that makes the check.
func (c Check) ToolName() string {
	switch c.Kind() {
	case CheckByJudge:
		return GenerateTool
	case CheckByAgent:
		return SubAgentPrefix + c.Agent
	case CheckByCommand:
		return ShellTool
	}
	return c.Tool
}

// MayCall returns a [CodeInvalidInput] error if the check must not call a tool. Nobody is asked before a
// check's call, so the tool has no approval of its own. A tool that gets the answer gets what a model
// wrote, so it has to be read-only.
//
// The tool of a hook after a suspension or a resume may write: it is told, and can be for nothing else.
func (c Check) MayCall(p CheckPoint, t ToolSpec) error {
	switch {
	case t.Approval != nil:
		return Errorf(CodeInvalidInput, "the tool %s needs a person's approval before each call, and a check asks nobody; name another tool", t.Name)
	case c.Kind() == CheckByTool && len(c.Arguments) == 0 && !t.ReadOnly && !p.Tells():
		return Errorf(CodeInvalidInput, "the tool %s is not read-only, and without arguments it gets what a model wrote; make the tool read-only, or give the check arguments", t.Name)
	}
	return nil
}

// Proposal is an answer that would complete a run, as a check's tool gets it.
type Proposal struct {
	// Task is what people and programs have asked the run. A daemon's is what woke it last.
	Task string `json:"task"`
	// Text is the answer. Output is the answer as JSON, if the agent has an output schema.
	Text   string          `json:"text"`
	Output json.RawMessage `json:"output,omitempty"`
	Turn   int             `json:"turn"`
}

// Verdict is what a check says. Its JSON form is what a judge and an agent answer with, and what a
// tool may return.
type Verdict struct {
	// Decision is accept or veto.
	Decision Decision `json:"verdict"`
	// Reasoning says why. NextStep says what the model should do next. Evidence lists what was
	// looked at: commands with their results, files, sources.
	Reasoning string   `json:"reasoning,omitempty"`
	NextStep  string   `json:"next_step,omitempty"`
	Evidence  []string `json:"evidence,omitempty"`
	// Skip are names of later checks that need not look this time: those that [Check.MaySkip] allows.
	// Only a tool that accepts says so.
	Skip []string `json:"skip,omitempty"`
	// ToParent, with the veto of a hook before a resume, says that the owner declines for good: the model of
	// the run's parent may resume the run, and no hook is asked about that. Elsewhere it is ignored.
	ToParent bool `json:"to_parent,omitempty"`
	// Text replaces what a hook was asked about: the reason of a suspension, the message of a resume.
	// Empty leaves it as it is. Other checks have none.
	Text string `json:"text,omitempty"`
}

// Decision is the word of a verdict.
type Decision string

// The decisions.
const (
	DecisionAccept Decision = "accept"
	DecisionVeto   Decision = "veto"
)

// UnmarshalJSON reads a decision. It refuses words that are none.
func (d *Decision) UnmarshalJSON(raw []byte) error {
	var word string
	if err := json.Unmarshal(raw, &word); err != nil {
		return fmt.Errorf("a verdict is accept or veto, not %s", raw)
	}
	if *d = Decision(word); *d != DecisionAccept && *d != DecisionVeto {
		return fmt.Errorf("a verdict is accept or veto, not %q", word)
	}
	return nil
}

// VerdictSchema returns the JSON Schema of a [Verdict], as judges and agents get it.
func VerdictSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"reasoning":{"type":"string","description":"Why, in a few sentences"},` +
		`"verdict":{"type":"string","enum":["accept","veto"],"description":"accept if the work is done, veto if not"},` +
		`"next_step":{"type":"string","description":"After a veto: what has to be done next"},` +
		`"evidence":{"type":"array","items":{"type":"string"},"description":"What you looked at"}},"required":["reasoning","verdict"],"additionalProperties":false}`)
}

// CheckUpdate says what happened to a check. check.started has its first fields, and check.done all.
type CheckUpdate struct {
	Name  string     `json:"name"`
	Point CheckPoint `json:"point"`
	Kind  CheckKind  `json:"kind"`
	// Call is the id of the check's call, and Tool what makes it.
	Call string `json:"call"`
	Tool string `json:"tool,omitempty"`
	// Verdict is nil for a check that has not ended, or was not finished: it is made again, or
	// nobody needs it any more.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Skipped means that the check was not made, as Reason says. Such a check has no check.started.
	Skipped bool       `json:"skipped,omitempty"`
	Reason  SkipReason `json:"reason,omitempty"`
	// Decision is what a tool of hooks.after_turn decides, in place of a verdict.
	Decision *TurnDecision `json:"decision,omitempty"`
	// Status is how the call ended. Error says why the check could not be made.
	Status CallStatus `json:"status,omitempty"`
	Error  string     `json:"error,omitempty"`
	// Duration is the time from check.started to check.done.
	Duration Duration `json:"duration,omitempty"`
	// Model, Usage and Cost are those of a judge. An agent's are in its own run.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage,omitzero"`
	Cost  USD    `json:"cost_usd,omitempty"`
}

func (c CheckUpdate) size() int {
	n := len(c.Error)
	if d := c.Decision; d != nil {
		n += len(d.Reason) + len(d.Message)
	}
	if v := c.Verdict; v != nil {
		n += len(v.Reasoning) + len(v.NextStep) + len(v.Text)
		for _, name := range v.Skip {
			n += len(name)
		}
		for _, e := range v.Evidence {
			n += len(e)
		}
	}
	return n
}

// CheckCount counts the checks of a run.
type CheckCount struct {
	// Invocations are the checks that gave a verdict, and Vetoes those that vetoed.
	Invocations int `json:"invocations"`
	Vetoes      int `json:"vetoes"`
	// Max is after how many vetoes the run fails; nil means after any number.
	Max *int `json:"max"`
	// CapReached means that the run has failed for its vetoes.
	CapReached bool `json:"cap_reached"`
	// CapReachedBy is the name of the check whose own max that was; empty for [Verify.Max].
	CapReachedBy string `json:"cap_reached_by,omitempty"`
}

// check refuses checks that can never work, with [CodeInvalidInput].
func (v Verify) check() error {
	switch {
	case len(v.Checks) == 0 && v.Max != 0:
		return Errorf(CodeInvalidInput, "verify.max bounds vetoes, and verify.checks is empty; name a check").WithPath("verify.checks")
	case v.Max < -1:
		return Errorf(CodeInvalidInput, "verify.max is %d; it is a number of vetoes, or -1 for any number", v.Max).WithPath("verify.max")
	}
	return PointVerify.check(v.Checks)
}

// isObject reports whether JSON is an object.
func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}

func (c Check) check(path string) error {
	fault := func(field, format string, args ...any) error {
		return Errorf(CodeInvalidInput, "%s: %s", path, fmt.Sprintf(format, args...)).WithPath(path + field)
	}
	if !nameForm.MatchString(c.Name) {
		return fault(".name", "the check's name is %q: use 1 to 32 lower-case letters, digits or '_', beginning with a letter", c.Name)
	}
	kinds := 0
	for _, set := range []bool{c.Tool != "", c.Command != "", c.Agent != "", c.Judge != nil} {
		if set {
			kinds++
		}
	}
	isTool, isAgent := c.Kind() == CheckByTool, c.Kind() == CheckByAgent
	switch {
	case kinds != 1:
		return fault("", "a check has one of tool, command, agent and judge")
	case len(c.Arguments) > 0 && !isTool:
		return fault(".arguments", "only a tool has arguments")
	case len(c.Arguments) > maxCheckText || len(c.Command) > maxCheckText || c.Judge != nil && len(c.Judge.Instructions) > maxCheckText:
		return fault("", "its arguments, command or instructions are longer than %d bytes", maxCheckText)
	case len(c.Task) > maxCheckTask || len(c.FeedbackFallback) > maxCheckTask:
		return fault("", "task and feedback_fallback have %d bytes at most", maxCheckTask)
	case isAgent && c.Task == "":
		return fault(".task", "say in task what the agent has to look at")
	case !isAgent && (c.Task != "" || len(c.Tools) > 0 || c.Limits != (Limits{})):
		return fault("", "task, tools and limits belong to a check with an agent")
	case isAgent && c.Timeout != 0:
		return fault(".timeout", "an agent has limits; use limits.wall_clock")
	case c.Timeout < 0 || c.Timeout > maxCheckTimeout:
		return fault(".timeout", "timeout is %s; it may be %s at most", c.Timeout, maxCheckTimeout)
	case c.Max < 0:
		return fault(".max", "max is %d; it is a number of vetoes, or left out", c.Max)
	case c.Judge != nil && c.Judge.MaxOutputTokens < 0:
		return fault(".judge.max_output_tokens", "it must be positive")
	case !slices.Contains([]CheckError{"", CheckErrorVeto, CheckErrorAccept, CheckErrorHold}, c.OnError):
		return fault(".on_error", "it is veto, accept or hold, not %q", c.OnError)
	case len(c.Arguments) > 0 && !isObject(c.Arguments):
		return fault(".arguments", "they are an object, such as {path: report.md}")
	}
	if isTool {
		if err := CheckTool(c.Tool); err != nil {
			return fault(".tool", "%v", err)
		}
	}
	if isAgent {
		if err := CheckName(c.Agent); err != nil {
			return fault(".agent", "%v", err)
		}
	}
	if err := c.Limits.Check(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
