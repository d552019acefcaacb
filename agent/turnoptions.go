package agent

import (
	"slices"
	"strings"
	"unicode"
)

// TurnPolicy bounds the form of a turn. A reply of another form gets a correction, and none of
// it counts as an answer; nudges bounds how many come in a row. After them the run
// fails with the code [CodeStuck].
type TurnPolicy struct {
	// RequireAction means that each reply needs a tool call, or the agent's done_sentinel.
	RequireAction bool `json:"require_action,omitempty"`
	// MaxProseChars is how many characters of text a reply may have; zero means any number.
	// Calls beside a longer text are made. An answer that fits the output's schema is no prose.
	MaxProseChars int `json:"max_prose_chars,omitempty"`
}

// TextCalls says what is done with tool calls that a model writes as text,
// <tool_call>{"name": …, "arguments": …}</tool_call>, at the end of a reply without calls.
type TextCalls string

// What is done with calls that are written as text. The zero value means that they are text.
const (
	TextCallsAllow     TextCalls = "allow"      // they are made like other calls
	TextCallsAllowOnce TextCalls = "allow_once" // those of the run's first such reply are made; later ones are refused
	TextCallsReject    TextCalls = "reject"     // they are refused, and the model reads how to call
)

// ToolsMode says how a model calls tools.
type ToolsMode string

// The modes. There is no text mode: native calls are always made.
const (
	ToolsNative        ToolsMode = "native"          // by the provider's own form
	ToolsNativeAndText ToolsMode = "native_and_text" // calls that are written as text are made too
)

// ToolSearch offers the model few tools at first. It finds the others with the tool
// tool_search.
type ToolSearch struct {
	// Always are the names of tools that are offered from the start, or patterns of names. The
	// runtime's own tools are too.
	Always []string `json:"always,omitempty"`
}

// ToolNarrowing hides tools that only read and that the model does not use. A tool with an approval
// of its own stays, and so do those of require and stop_after, sub-agents and the runtime's own tools.
type ToolNarrowing struct {
	// WindowTurns is after how many turns without a call a tool is hidden; zero means 5.
	WindowTurns int `json:"window_turns,omitempty"`
}

// defaultWindowTurns is after how many turns an unused tool is hidden.
const defaultWindowTurns = 5

// WithDefaults returns the narrowing with every default filled in; nil for nil.
func (n *ToolNarrowing) WithDefaults() *ToolNarrowing {
	if n == nil {
		return nil
	}
	return &ToolNarrowing{WindowTurns: or(n.WindowTurns, defaultWindowTurns)}
}

// HidesTools reports whether tools may be hidden from the model.
func (d *Definition) HidesTools() bool { return d.ToolSearch != nil || d.ToolNarrowing != nil }

// NeedsToEnd reports whether a run may need a tool to complete: one of require or of stop_after.
func (d *Definition) NeedsToEnd(tool string) bool {
	return slices.Contains(d.StopAfter, tool) || slices.ContainsFunc(d.Require, func(names OneOf) bool { return slices.Contains(names, tool) })
}

// Sentinel returns the text that marks the end of a run; empty if there is none. An agent that has
// to answer in JSON, because its parent asks for that, has no room for it.
func (d *Definition) Sentinel() string {
	if len(d.Output) > 0 {
		return ""
	}
	return d.DoneSentinel
}

// maxSentinel bounds the text that marks the end, in bytes.
const maxSentinel = 64

// checkTurn checks the options about the turn.
func (d Definition) checkTurn() error {
	if err := d.checkEnds(); err != nil {
		return err
	}
	if d.TextCalls != "" && !slices.Contains([]TextCalls{TextCallsAllow, TextCallsAllowOnce, TextCallsReject}, d.TextCalls) {
		return Errorf(CodeInvalidInput, "agent %s: text_calls must be allow, allow_once or reject, not %q", d.Name, d.TextCalls).WithPath("text_calls")
	}
	if n := d.ToolNarrowing; n != nil && n.WindowTurns < 0 {
		return Errorf(CodeInvalidInput, "agent %s: tool_narrowing.window_turns must be positive", d.Name).WithPath("tool_narrowing.window_turns")
	}
	if d.Nudge != "" && d.Texts[TextNudge] != "" {
		return Errorf(CodeInvalidInput, "agent %s: nudge and texts.nudge are the same text; write one of them", d.Name).WithPath("texts.nudge")
	}
	return d.checkOwnTexts()
}

// checkEnds checks the options that say what ends a run: each has to leave a way to end.
func (d Definition) checkEnds() error {
	s := d.DoneSentinel
	switch {
	case s != strings.TrimSpace(s) || len(s) > maxSentinel || strings.ContainsFunc(s, unicode.IsControl):
		return Errorf(CodeInvalidInput, "agent %s: done_sentinel must be one line of at most %d bytes, without spaces around it", d.Name, maxSentinel).WithPath("done_sentinel")
	case s != "" && d.Completion == CompletionTool:
		return Errorf(CodeInvalidInput, "agent %s: under completion tool the tool finish ends the run; leave done_sentinel or completion out", d.Name).WithPath("done_sentinel")
	case s != "" && len(d.Output) > 0:
		return Errorf(CodeInvalidInput, "agent %s: an answer that fits output is JSON alone, and has no room for done_sentinel; leave one of them out", d.Name).WithPath("done_sentinel")
	case len(d.StopAfter) > 0 && len(d.Output) > 0:
		return Errorf(CodeInvalidInput, "agent %s: with stop_after a call's result is the answer, and no model makes it fit output; leave one of them out", d.Name).WithPath("stop_after")
	case slices.Contains(d.StopAfter, ""):
		return Errorf(CodeInvalidInput, "agent %s: stop_after has an empty name", d.Name).WithPath("stop_after")
	case d.TurnPolicy == nil:
		return nil
	case d.TurnPolicy.MaxProseChars < 0:
		return Errorf(CodeInvalidInput, "agent %s: turn_policy.max_prose_chars must be positive", d.Name).WithPath("turn_policy.max_prose_chars")
	case d.TurnPolicy.RequireAction && d.Completion != CompletionTool && s == "" && len(d.StopAfter) == 0:
		return Errorf(CodeInvalidInput, "agent %s: with turn_policy.require_action no text ends the run; say what does: completion tool, done_sentinel or stop_after", d.Name).WithPath("turn_policy.require_action")
	}
	return nil
}
