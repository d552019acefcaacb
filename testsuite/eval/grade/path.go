package grade

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/model"
)

// Calls are facts about the tool calls. Calls that were refused or rejected count, too:
// the model asked for them.
type Calls struct {
	// Made are calls that were made. Each pattern counts for itself.
	Made []CallPattern `json:"made,omitempty"`
	// Never are names or patterns ("bank__*") of tools that were not called.
	Never []string `json:"never,omitempty"`
	// Order are tools that were called in this order. Others may come between.
	Order []string `json:"order,omitempty"`
	// Exactly are all calls, in their order.
	Exactly []string `json:"exactly,omitempty"`
}

// CallPattern matches tool calls.
type CallPattern struct {
	// Tool is the name of the tool, or a pattern.
	Tool string `json:"tool"`
	// Arguments is a JSON Schema that the arguments fit; empty fits all.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Status is how the call ended; empty means anyhow.
	Status agent.CallStatus `json:"status,omitempty"`
	Count
}

// Count says how many of something there may be. The zero value means at least one.
type Count struct {
	// Min is the least number; nil means 1, or 0 if Max is set.
	Min *int `json:"min,omitempty"`
	// Max is the largest number; nil means any.
	Max *int `json:"max,omitempty"`
}

func (c Count) check() error {
	if c.Min != nil && *c.Min < 0 || c.Max != nil && (*c.Max < 0 || c.Min != nil && *c.Min > *c.Max) {
		return agent.Errorf(agent.CodeInvalidInput, "min and max are 0 or more, and min is not above max")
	}
	return nil
}

// fault returns what is wrong with a number; empty if nothing is.
func (c Count) fault(n int) string {
	least := 1
	switch {
	case c.Min != nil:
		least = *c.Min
	case c.Max != nil:
		least = 0
	}
	switch {
	case n < least:
		return fmt.Sprintf("%d, and at least %d are expected", n, least)
	case c.Max != nil && n > *c.Max:
		return fmt.Sprintf("%d, and at most %d are expected", n, *c.Max)
	}
	return ""
}

// Check implements [Pure].
func (c *Calls) Check() error {
	if len(c.Made)+len(c.Never)+len(c.Order)+len(c.Exactly) == 0 {
		return agent.Errorf(agent.CodeInvalidInput, "needs made, never, order or exactly")
	}
	for i, p := range c.Made {
		switch {
		case p.Tool == "":
			return agent.Errorf(agent.CodeInvalidInput, "made[%d] needs a tool", i)
		case p.Arguments != nil:
			if err := model.CheckOutput(p.Arguments); err != nil {
				return agent.Errorf(agent.CodeInvalidInput, "made[%d].arguments: %w", i, err)
			}
		}
		if err := p.check(); err != nil {
			return agent.Errorf(agent.CodeInvalidInput, "made[%d]: %w", i, err)
		}
	}
	return nil
}

// Grade implements [Pure].
func (c *Calls) Grade(f *Facts) string {
	if f.CallsLeft > 0 {
		return fmt.Sprintf("the run made %d calls, and only %d can be graded", len(f.Calls)+f.CallsLeft, MaxCalls)
	}
	tools := make([]string, len(f.Calls))
	for i, call := range f.Calls {
		tools[i] = call.Tool
		if glob.MatchesAny(c.Never, call.Tool) {
			return "called " + call.Tool + ", which must not be called"
		}
	}
	for _, p := range c.Made {
		n := 0
		for _, call := range f.Calls {
			if p.fits(call) {
				n++
			}
		}
		if fault := p.fault(n); fault != "" {
			return fmt.Sprintf("matching calls of %s: %s; the calls were %s", p.Tool, fault, path(tools))
		}
	}
	at := 0
	for _, t := range tools {
		if at < len(c.Order) && glob.MatchesAny(c.Order[at:at+1], t) {
			at++
		}
	}
	if at < len(c.Order) {
		return fmt.Sprintf("not in the order %s: the calls were %s", path(c.Order), path(tools))
	}
	if len(c.Exactly) > 0 && !slices.Equal(c.Exactly, tools) {
		return fmt.Sprintf("the calls were %s, not %s", path(tools), path(c.Exactly))
	}
	return ""
}

func (p CallPattern) fits(c Call) bool {
	return glob.MatchesAny([]string{p.Tool}, c.Tool) && (p.Status == "" || p.Status == c.Status) &&
		(p.Arguments == nil || len(c.Arguments) > 0 && model.Fits(p.Arguments, c.Arguments) == "")
}

// path writes the names of calls.
func path(tools []string) string {
	if len(tools) == 0 {
		return "none"
	}
	const shown = 20
	if more := len(tools) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(tools[:shown], ", "), more)
	}
	return strings.Join(tools, ", ")
}

// Asked is what the person was asked. Empty fields match everything.
type Asked struct {
	// Type is approval, question, client_tool or limit.
	Type agent.RequestType `json:"type,omitempty"`
	// Tool is the name of the tool whose call it is about, or a pattern.
	Tool string `json:"tool,omitempty"`
	// Match is a regular expression for its text.
	Match string `json:"match,omitempty"`
	// Decision is how it was decided: answer, approve or reject.
	Decision string `json:"decision,omitempty"`
	Count
}

// Check implements [Pure].
func (a *Asked) Check() error {
	if _, err := regexp.Compile(a.Match); err != nil {
		return err
	}
	return a.check()
}

// Grade implements [Pure].
func (a *Asked) Grade(f *Facts) string {
	match, n := regexp.MustCompile(a.Match), 0
	for _, q := range f.Requests {
		if (a.Type == "" || a.Type == q.Type) && (a.Tool == "" || glob.MatchesAny([]string{a.Tool}, q.Tool)) &&
			(a.Decision == "" || a.Decision == q.Decision) && match.MatchString(q.Text) {
			n++
		}
	}
	if fault := a.fault(n); fault != "" {
		return "matching requests: " + fault
	}
	return ""
}

// AtMost is how much a run may have used, together with all runs below it. Zero fields are
// no bound.
type AtMost struct {
	CostUSD  agent.USD      `json:"cost_usd,omitempty"`
	Turns    int            `json:"turns,omitempty"`
	Tokens   int64          `json:"tokens,omitempty"`
	Duration agent.Duration `json:"duration,omitempty"`
	// Calls is the number of tool calls.
	Calls int `json:"calls,omitempty"`
}

// Check implements [Pure].
func (a *AtMost) Check() error {
	if *a == (AtMost{}) {
		return agent.Errorf(agent.CodeInvalidInput, "needs cost_usd, turns, tokens, duration or calls")
	}
	if a.CostUSD < 0 || a.Turns < 0 || a.Tokens < 0 || a.Duration < 0 || a.Calls < 0 {
		return agent.Errorf(agent.CodeInvalidInput, "has a negative bound")
	}
	return nil
}

// Grade implements [Pure].
func (a *AtMost) Grade(f *Facts) string {
	calls := len(f.Calls) + f.CallsLeft
	switch {
	case a.CostUSD > 0 && f.Cost > a.CostUSD:
		return fmt.Sprintf("cost $%s, and $%s are allowed", f.Cost, a.CostUSD)
	case a.Turns > 0 && f.Turns > a.Turns:
		return fmt.Sprintf("took %d turns, and %d are allowed", f.Turns, a.Turns)
	case a.Tokens > 0 && f.Tokens > a.Tokens:
		return fmt.Sprintf("used %d tokens, and %d are allowed", f.Tokens, a.Tokens)
	case a.Duration > 0 && f.Duration > a.Duration:
		return fmt.Sprintf("took %s, and %s are allowed", seconds(f.Duration), seconds(a.Duration))
	case a.Calls > 0 && calls > a.Calls:
		return fmt.Sprintf("made %d calls, and %d are allowed", calls, a.Calls)
	}
	return ""
}
