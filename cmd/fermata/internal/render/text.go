package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/internal/rawjson"
)

// maxArgument bounds one argument of a call on its line.
const maxArgument = 60

// Arguments writes a call's arguments on one line, sorted by name: lines=20
// path="main.go".
func Arguments(c agent.ToolCall) string {
	if c.Malformed != "" {
		return untrusted.Line(c.Malformed, maxArgument)
	}
	list, ok := untrusted.Fields(c.Arguments)
	if !ok {
		return untrusted.Line(string(c.Arguments), maxArgument)
	}
	var fields []string
	for _, f := range list {
		fields = append(fields, untrusted.Cut(f.Key, maxArgument)+"="+untrusted.Cut(f.Value, maxArgument))
	}
	return strings.Join(fields, " ")
}

// Took returns a duration with as many digits as matter.
func Took(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return agent.Duration(d.Round(time.Second)).String()
}

// Money returns an amount in dollars. A small amount is never shown as zero.
func Money(u agent.USD) string {
	switch dollars := float64(u) / float64(agent.Dollar); {
	case u != 0 && dollars < 0.0001:
		return "$" + u.String()
	case u != 0 && dollars < 0.01:
		return fmt.Sprintf("$%.4f", dollars)
	default:
		return fmt.Sprintf("$%.2f", dollars)
	}
}

// Count returns a number of things: "1 turn", "2 turns".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// thousands returns 12345 as 12,345.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Summary says on one line how a run ended.
func Summary(o *agent.Outcome) string {
	parts := []string{string(o.Status) + By(o.By)}
	switch {
	case o.Suspension != nil:
		parts[0] += fmt.Sprintf(" (%s): %s", o.Suspension.ID, Waits(o.Suspension))
	case o.Status != agent.StatusCompleted && o.Reason != "":
		parts[0] += " (" + untrusted.Line(o.Reason, maxAsked) + ")"
	}
	parts = append(parts, Count(o.Turns, "turn")+calls(o.Tools))
	if took := o.Ended.Sub(o.Started); took > 0 && !o.Started.IsZero() {
		parts = append(parts, Took(took))
	}
	// Listings have no tokens, and say what a suspended run has used if no worker answers.
	if o.Suspension == nil || o.Usage.Total() > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", thousands(o.Usage.Input), thousands(o.Usage.Output)))
	}
	if o.Cost > 0 {
		parts = append(parts, Money(o.Cost))
	}
	return strings.Join(parts, " · ")
}

// By returns " by ana"; empty if nobody said who.
func By(who string) string {
	if who == "" {
		return ""
	}
	return " by " + untrusted.Cut(untrusted.Name(who), maxArgument)
}

func calls(tools []agent.ToolCount) string {
	var all, bad int
	for _, t := range tools {
		all += t.Calls
		bad += t.Calls - t.OK
	}
	switch {
	case all == 0:
		return ""
	case bad == 0:
		return ", " + Count(all, "call")
	}
	return fmt.Sprintf(", %s (%d not ok)", Count(all, "call"), bad)
}

// Output returns a structured answer, indented; unchanged if it is not JSON.
func Output(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, rawjson.UnescapeHTML(raw), "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// same reports whether two JSON values differ at most in white space.
func same(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, rawjson.UnescapeHTML(a)) == nil && json.Compact(&y, rawjson.UnescapeHTML(b)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// LeftOut says what of a source nobody has accepted.
func LeftOut(r agent.ToolsChange) string {
	var names []string
	for _, name := range r.Left {
		if name == r.Source {
			names = append(names, "its instructions")
			continue
		}
		names = append(names, untrusted.Name(name))
	}
	return strings.Join(names, ", ")
}

// Age returns how long ago a time was, in one or two units.
func Age(t time.Time) string {
	switch d := time.Since(t); {
	case t.IsZero():
		return "-"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// Clock returns a time as lists show it.
func Clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// ShortRun returns enough of a run's id to tell it from the session's others: its first
// characters are the time at which it began.
func ShortRun(run string) string { return run[:min(len(run), 13)] }
