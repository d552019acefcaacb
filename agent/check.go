package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Check returns a [CodeInvalidInput] error that names the field if the definition can
// never work. It does not know whether the tools and the model exist: the worker checks
// that when it starts.
func (d Definition) Check() error {
	if err := CheckName(d.Name); err != nil {
		return err
	}
	if strings.TrimSpace(d.Model) == "" {
		return Errorf(CodeInvalidInput, "agent %s: model is missing; name one, such as anthropic/claude-sonnet-5", d.Name).WithPath("model")
	}
	if _, ok := profiles[d.Profile]; !ok && d.Profile != "" {
		return Errorf(CodeInvalidInput, "agent %s: profile must be one of tool_using, researcher, verifier, completer, not %q", d.Name, d.Profile).WithPath("profile")
	}
	if !slices.Contains([]Completion{"", CompletionNatural, CompletionTool}, d.Completion) {
		return Errorf(CodeInvalidInput, "agent %s: completion must be natural or tool, not %q", d.Name, d.Completion).WithPath("completion")
	}
	if err := d.Limits.Check(); err != nil {
		return fmt.Errorf("agent %s: %w", d.Name, err)
	}
	if err := d.Compaction.Check(); err != nil {
		return fmt.Errorf("agent %s: %w", d.Name, err)
	}
	if err := errors.Join(d.owns(d.Reasoning.Check()), d.owns(d.ReasoningPolicy.Check())); err != nil {
		return err
	}
	if d.ReasoningPolicy != nil && d.Model == FlowModel {
		return Errorf(CodeInvalidInput, "agent %s: reasoning_policy is for a model, and a flow has none; leave reasoning_policy out", d.Name).WithPath("reasoning_policy")
	}
	if err := d.Notebook.Check(); err != nil {
		return fmt.Errorf("agent %s: %w", d.Name, err)
	}
	if d.Notebook != nil && d.Model == FlowModel {
		return Errorf(CodeInvalidInput, "agent %s: a notebook is for a model, and a flow has none; leave notebook out", d.Name).WithPath("notebook")
	}
	if err := d.Daemon.Check(); err != nil {
		return fmt.Errorf("agent %s: %w", d.Name, err)
	}
	if d.Daemon != nil && len(d.Require) > 0 {
		return Errorf(CodeInvalidInput, "agent %s: require says what must have happened before a run completes, and a daemon's does not; leave one of them out", d.Name).WithPath("require")
	}
	if err := errors.Join(d.owns(d.Verify.check()), d.owns(d.Hooks.BeforeRun.check()), d.owns(d.Hooks.BeforeCalls.check()), d.owns(d.Hooks.AfterTurn.check())); err != nil {
		return err
	}
	if err := d.checkSuspensionHooks(); err != nil {
		return fmt.Errorf("agent %s: %w", d.Name, err)
	}
	if err := d.checkStalledOutput(); err != nil {
		return err
	}
	return errors.Join(d.checkFallbacks(), d.checkAwaitResumption(), d.checkRules(), d.checkOnChildSuspend(), d.checkNumbers(), d.checkTexts(), d.checkSkills(), d.checkTurn(), d.checkRecovery(), d.checkReminders(), d.checkStateless(), d.LoopDetection.check(d.Name))
}

// owns puts the agent's name before an error. Each of several errors needs it: they are shown one by one.
func (d Definition) owns(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("agent %s: %w", d.Name, err)
}

// checkTexts refuses control characters in texts that are shown to people: they can
// rewrite a terminal.
func (d Definition) checkTexts() error {
	texts := []struct{ path, text string }{{"description", d.Description}}
	for i, a := range d.Agents {
		texts = append(texts, struct{ path, text string }{fmt.Sprintf("agents[%d].description", i), a.Description})
	}
	for i, t := range d.ClientTools {
		texts = append(texts, struct{ path, text string }{fmt.Sprintf("client_tools[%d].description", i), t.Description})
	}
	for _, one := range texts {
		if at := strings.IndexFunc(one.text, controls); at >= 0 {
			return Errorf(CodeInvalidInput, "agent %s: %s has a control character, %+q; take it out", d.Name, one.path, []rune(one.text[at:])[0]).WithPath(one.path)
		}
	}
	return nil
}

// controls reports whether a character controls a terminal. Line ends and tabs are
// ordinary text.
func controls(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }

func (d Definition) checkRules() error {
	for i, r := range d.Rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("agent %s: rules[%d]: %w", d.Name, i, err)
		}
		if r.Otherwise && (i < len(d.Rules)-1 || d.Default != "") {
			return Errorf(CodeInvalidInput, "agent %s: rules[%d]: otherwise belongs to the last rule, and is what default says in short; write one of them, once", d.Name, i).WithPath("otherwise")
		}
	}
	if d.Default != "" && d.Default != RulingAllow && d.Default != RulingAsk && d.Default != RulingDeny {
		return Errorf(CodeInvalidInput, "agent %s: default must be allow, ask or deny, not %q", d.Name, d.Default).WithPath("default")
	}
	for _, b := range []struct {
		path    string
		value   LimitAction
		actions []LimitAction
	}{
		{"on_limit", d.OnLimit, []LimitAction{LimitActionFail, LimitActionAsk, LimitActionFinalize}},
		{"on_loop", d.OnLoop, []LimitAction{LimitActionFail, LimitActionAsk}},
	} {
		if b.value != "" && !slices.Contains(b.actions, b.value) {
			return Errorf(CodeInvalidInput, "agent %s: %s must be one of %s, not %q", d.Name, b.path, listed(b.actions), b.value).WithPath(b.path)
		}
	}
	for i, t := range d.ClientTools {
		if err := CheckTool(t.Name); err != nil {
			return fmt.Errorf("agent %s: client_tools[%d]: %w", d.Name, i, err)
		}
		if t.Temporal != nil {
			return Errorf(CodeInvalidInput, "agent %s: client_tools[%d]: the client carries a client tool out, so it has no Temporal; make the tool with package tool", d.Name, i).WithPath("client_tools")
		}
		if t.Approval != nil {
			return Errorf(CodeInvalidInput, "agent %s: client_tools[%d]: a client tool needs no approval, since the client decides about each call; leave approval out", d.Name, i).WithPath("client_tools")
		}
	}
	if err := checkBound(d.Ceiling, "ceiling"); err != nil {
		return d.owns(err)
	}
	for i, a := range d.Agents {
		if err := CheckName(a.Agent); err != nil {
			return fmt.Errorf("agent %s: agents[%d]: %w", d.Name, i, err)
		}
		if err := checkBound(a.Tools, fmt.Sprintf("agents[%d].tools", i)); err != nil {
			return d.owns(err)
		}
		if err := a.Limits.Check(); err != nil {
			return fmt.Errorf("agent %s: agents[%d]: %w", d.Name, i, err)
		}
		if err := a.Workspace.check(); err != nil {
			return fmt.Errorf("agent %s: agents[%d]: %w", d.Name, i, err)
		}
		if a.Limits.Adaptive != nil {
			return Errorf(CodeInvalidInput, "agent %s: agents[%d]: limits.adaptive belongs to the limits of agent %s itself", d.Name, i, a.Agent).WithPath("agents")
		}
	}
	if err := d.AnswerTimeouts.check(); err != nil {
		return fmt.Errorf("agent %s: answer_timeouts: %w", d.Name, err)
	}
	return nil
}

// Limits for model calls. No provider accepts more.
const (
	maxModelTimeout = Duration(24 * time.Hour)
	maxTemperature  = 2
)

func (d Definition) checkNumbers() error {
	if slices.Contains(d.PersistState, "") {
		return Errorf(CodeInvalidInput, "agent %s: persist_state has an empty key", d.Name).WithPath("persist_state")
	}
	for _, f := range []struct {
		path  string
		value int64
	}{
		{"parallel_tools", int64(d.ParallelTools)},
		{"model_timeout", int64(d.ModelTimeout)}, {"model_silence", int64(d.ModelSilence)},
		{"model_attempts", int64(d.ModelAttempts)}, {"max_output_tokens", int64(d.MaxOutputTokens)},
		{"state_version", int64(d.StateVersion)}, {"resume_within", int64(d.ResumeWithin)},
		{"retention", int64(d.Retention)},
	} {
		if f.value < 0 {
			return Errorf(CodeInvalidInput, "agent %s: %s must be positive", d.Name, f.path).WithPath(f.path)
		}
	}
	for _, f := range []struct {
		path  string
		value int
	}{{"nudges", d.Nudges}, {"repairs", d.Repairs}} {
		if f.value < -1 {
			return Errorf(CodeInvalidInput, "agent %s: %s is %d; it may be a positive number, or -1 for none", d.Name, f.path, f.value).WithPath(f.path)
		}
	}
	for _, f := range []struct {
		path  string
		value Duration
	}{{"model_timeout", d.ModelTimeout}, {"model_silence", d.ModelSilence}} {
		if f.value > maxModelTimeout {
			return Errorf(CodeInvalidInput, "agent %s: %s is %s; it may be %s at most", d.Name, f.path, f.value, maxModelTimeout).WithPath(f.path)
		}
	}
	if t := d.Temperature; t != nil && !(*t >= 0 && *t <= maxTemperature) {
		return Errorf(CodeInvalidInput, "agent %s: temperature is %g; it may be 0 to %d", d.Name, *t, maxTemperature).WithPath("temperature")
	}
	if len(d.Output) > 0 && !json.Valid(d.Output) {
		return Errorf(CodeInvalidInput, "agent %s: output is not a JSON Schema", d.Name).WithPath("output")
	}
	// The arguments of finish become the output, and providers accept only objects as
	// arguments.
	var root struct{ Type any }
	if d.Completion == CompletionTool && json.Unmarshal(d.Output, &root) == nil && root.Type != nil && root.Type != "object" {
		return Errorf(CodeInvalidInput, "agent %s: under completion tool, output must be of an object, since it is the arguments of the tool finish; put it into one, or leave completion out", d.Name).WithPath("output")
	}
	return d.checkSize()
}

// checkSize refuses a definition that does not fit into a run's history. Such a run's
// first workflow task would fail forever.
func (d Definition) checkSize() error {
	raw, err := json.Marshal(d)
	if err != nil {
		return Errorf(CodeInvalidInput, "agent %s: a schema is not JSON", d.Name)
	}
	if len(raw) <= maxDefinition {
		return nil
	}
	if text, err := json.Marshal(d.Instructions); err == nil && len(text) > maxDefinition/2 {
		return Errorf(CodeInvalidInput, "agent %s: instructions have %d bytes; with all else that it is made of an agent may have %d as JSON. Let it read what is long from a file", d.Name, len(d.Instructions), maxDefinition).WithPath("instructions")
	}
	return Errorf(CodeInvalidInput, "agent %s: what it is made of has %d bytes as JSON, and may have %d", d.Name, len(raw), maxDefinition)
}
