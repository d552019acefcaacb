package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/live"
)

// Options says how a run is shown; the zero Options is for a file or a pipe.
type Options struct {
	// Color allows colours, and shows progress of tools.
	Color bool
	// Width is how many characters a line of ours may have; zero means 100. It does not
	// limit the model's own text.
	Width int
}

// Printer shows one run. One goroutine uses it. Durable facts come as events, in order.
// Live pieces wait for the event that opens their turn, so that nothing is shown before
// what came before it.
type Printer struct {
	w     io.Writer
	style style
	width int

	turn     int                  // the last opened turn
	answered int                  // the last turn whose whole reply was shown
	early    map[int][]live.Event // pieces of turns that are not open yet
	streamed strings.Builder      // what was shown of the turn's reply
	midline  bool
	text     untrusted.Stream
	reply    string // the last whole reply
	calls    map[string]*call
	settled  []string // calls that have ended but are not shown yet
	remarks  *ProgressOrder
}

// call is a tool call of the turn, or an open step of a flow.
type call struct {
	agent.ToolCall
	step             string // the step's path; empty for a model's call
	startedAt, ended time.Time
	status           agent.CallStatus
	partial          bool
	printed          bool
}

// name returns what people know the call by.
func (c *call) name() string { return untrusted.Name(cmp.Or(c.step, c.Tool)) }

// New returns a printer that writes to w.
func New(w io.Writer, o Options) *Printer {
	t := &Printer{w: w, width: o.Width, early: map[int][]live.Event{}, calls: map[string]*call{}, remarks: &ProgressOrder{}}
	if o.Color {
		t.style = colours
	}
	if t.width <= 0 {
		t.width = 100
	}
	return t
}

// StartMidTurn starts in the middle of a run, in a turn whose beginning was shown
// elsewhere. asked reports whether the model's reply is still to come: then its pieces
// are shown.
func (t *Printer) StartMidTurn(turn int, asked bool) {
	if t.turn = turn; !asked {
		t.answered = turn
	}
}

// Event shows an event.
func (t *Printer) Event(e agent.Event) {
	// The arguments are taken now, and the progress is shown after the event.
	defer func(due []live.Event) { t.remarked(due) }(t.remarks.Event(e))
	switch e.Type {
	case agent.EventRunStarted:
		if e.Started != nil && e.Started.Spec != nil {
			t.note("%s · %s", untrusted.Name(e.Started.Spec.Name), untrusted.Name(e.Started.Spec.Model))
		}
	case agent.EventTurnStarted:
		t.openTurn(e.Turn)
	case agent.EventMessage:
		t.message(e)
	case agent.EventModelRetried:
		t.note("the reply was unusable; the model is called again")
	case agent.EventModelDelayed:
		t.note("the model is called again in %s, at %s: %s", e.Delay.Until.Sub(e.Time).Round(time.Second), e.Delay.Until.Local().Format(time.TimeOnly), untrusted.Line(e.Delay.Error.Message, 200))
	case agent.EventCallRequested:
		t.callOf(e)
	case agent.EventCallStarted:
		t.called(e)
	case agent.EventCallDone, agent.EventCallUnknown:
		// Shown later: the result usually follows at once, with more to show.
		if c := t.calls[e.Call.Call]; c != nil {
			c.ended, c.status, c.partial = e.Time, e.Call.Status, e.Call.Partial
			t.settled = append(t.settled, e.Call.Call)
		}
	default:
		t.aside(e)
	}
}

// aside shows events that are neither turns nor calls.
func (t *Printer) aside(e agent.Event) {
	switch e.Type {
	case agent.EventHoldAdded, agent.EventHoldRemoved, agent.EventRunSuspended, agent.EventOwnerFailed, agent.EventRunResumed, agent.EventRunStopped:
		t.showHeld(e)
	case agent.EventRequestOpened, agent.EventRequestAnswered, agent.EventRequestAnsweredLate, agent.EventRequestExpired, agent.EventRequestReminded:
		t.asked(e)
	case agent.EventChildStarted, agent.EventChildSuspended, agent.EventChildResumed, agent.EventChildEnded:
		t.child(e)
	case agent.EventCompacted:
		t.note("the model continues from a summary of the earlier messages")
	case agent.EventToolsChanged:
		if r := e.ToolsChange; r != nil && len(r.Left) > 0 {
			t.note("%s is used without %s: see fermata lock", untrusted.Name(r.Source), LeftOut(*r))
		}
	case agent.EventArtifactSaved:
		t.note("  saved %s", Artifact(e.Artifact))
	case agent.EventVerbRefused:
		if r := e.Refusal; r != nil && r.Error != nil {
			t.note("%s", untrusted.Line(refused(*r), maxAsked))
		}
	default:
		t.policy(e)
	}
}

func (t *Printer) openTurn(turn int) {
	// Calls of the last turn come before anything of this one.
	t.Flush()
	t.turn = turn
	t.streamed.Reset()
	pieces := t.early[turn]
	// Pieces of turns that were never opened will not be shown any more.
	maps.DeleteFunc(t.early, func(of int, _ []live.Event) bool { return of <= turn })
	for _, l := range pieces {
		// Live and not print: the pieces may include a reset.
		t.Live(l)
	}
}

// Live shows a live piece.
func (t *Printer) Live(l live.Event) {
	switch {
	case l.Turn > t.turn:
		t.early[l.Turn] = append(t.early[l.Turn], l)
	case l.Turn < t.turn:
		// Too late: the event with the whole text was shown before.
	case l.Type == agent.EventCallProgress:
		t.remarked(t.remarks.Live(l))
	// The whole reply is shown already, so its late pieces are dropped.
	case l.Turn == t.answered:
	case l.Type == agent.EventDeltaReset:
		if t.streamed.Len() > 0 {
			t.note("the model is called again")
			t.streamed.Reset()
		}
	case l.Type == agent.EventDeltaText:
		t.streamed.WriteString(l.Data.Text)
		t.print(l.Data.Text)
	}
}

// remarked shows progress of tools, if a person watches.
func (t *Printer) remarked(list []live.Event) {
	for _, l := range list {
		if t.style != (style{}) {
			t.note("  %s", untrusted.Line(l.Data.Text, t.width-2))
		}
	}
}

func (t *Printer) message(e agent.Event) {
	m := e.Message
	switch m.Role {
	case agent.RoleUser:
		switch {
		case m.Note != "":
			t.note("(%s) %s", m.Note, untrusted.Line(said(m), t.width))
		case t.turn > 0: // not the task itself, which the user knows
			t.note("(%s) %s", cmp.Or(untrusted.Name(m.By), "said"), untrusted.Line(said(m), t.width))
		}
	case agent.RoleAssistant:
		t.showReply(m.Text())
		for _, line := range citationsOf(m) {
			t.note("%s", untrusted.Block(line))
		}
		t.answered = e.Turn
		for _, c := range m.ToolCalls() {
			t.calls[c.ID] = &call{ToolCall: c}
		}
	case agent.RoleTool:
		for _, p := range m.Parts {
			if p.Result != nil {
				t.result(p.Result)
			}
		}
		// Only then: results beside others have their names before them.
		for _, p := range m.Parts {
			if p.Result != nil {
				delete(t.calls, p.Result.Call)
			}
		}
		t.settled = slices.DeleteFunc(t.settled, func(id string) bool { return t.calls[id] == nil })
	}
}

// showReply shows a whole reply, as far as its pieces were not shown.
func (t *Printer) showReply(text string) {
	rest, ok := strings.CutPrefix(text, t.streamed.String())
	switch {
	case ok:
	// The reply was cut off, and all of it was shown.
	case text != "" && strings.HasPrefix(t.streamed.String(), text):
		rest = ""
	default:
		// The reply differs from what was streamed, so all of it is shown again.
		t.endText()
		rest = text
	}
	t.print(rest)
	t.endText()
	t.streamed.Reset()
	if text != "" {
		t.reply = text
	}
}

func (t *Printer) called(e agent.Event) {
	c := t.callOf(e)
	c.startedAt = e.Time
	t.printCall(c)
}

// callOf returns the call that an event is about.
func (t *Printer) callOf(e agent.Event) *call {
	c := t.calls[e.Call.Call]
	if c == nil {
		c = &call{ToolCall: agent.ToolCall{ID: e.Call.Call, Tool: e.Call.Tool}}
		t.calls[c.ID] = c
	}
	c.step = e.Call.Step
	return c
}

func (t *Printer) printCall(c *call) {
	line := untrusted.Cut(c.name()+" "+Arguments(c.ToolCall), t.width-2)
	name, arguments, _ := strings.Cut(line, " ")
	t.line("%s→%s %s%s%s %s", t.style.dim, t.style.off, t.style.bold, name, t.style.off, arguments)
}

// result shows how a call ended, with the beginning of its result.
func (t *Printer) result(r *agent.ToolResult) {
	c := t.calls[r.Call]
	if c == nil || c.startedAt.IsZero() {
		// The call was not made, so nothing was shown of it yet.
		if c == nil {
			c = &call{ToolCall: agent.ToolCall{ID: r.Call, Tool: r.Tool}}
		}
		t.printCall(c)
	}
	// Its success was shown when the call ended; only a failure has more to say.
	if !c.printed || r.Status != agent.CallOK {
		c.status, c.partial = r.Status, r.Partial
		t.printEnd(c, r.Text)
	}
	for _, f := range (agent.Message{Parts: r.Files}).Files() {
		t.note("  %s", untrusted.Line(c.name()+" shows "+f.String(), t.width-2))
	}
}

func (t *Printer) printEnd(c *call, text string) {
	head := came(agent.ToolResult{Status: c.status, Partial: c.partial})
	// A call that was never made took no time.
	if !c.startedAt.IsZero() && c.ended.After(c.startedAt) {
		head += " " + Took(c.ended.Sub(c.startedAt))
	}
	if c.printed || c.step != "" || len(t.calls) > 1 {
		head = c.name() + " " + head
	}
	mark := t.style.good
	if c.status != agent.CallOK {
		mark = t.style.bad
	}
	rest := untrusted.Line(text, max(10, t.width-len(head)-4))
	t.line("  %s%s%s %s%s%s", mark, head, t.style.off, t.style.dim, rest, t.style.off)
}

// Flush shows calls that have ended while others of their turn run. Their results come
// with the last one's.
func (t *Printer) Flush() {
	for _, id := range t.settled {
		if c := t.calls[id]; c != nil && !c.printed && !c.startedAt.IsZero() {
			t.printEnd(c, "")
			c.printed = true
		}
	}
	t.settled = nil
}

// Waiting reports whether Flush would show something.
func (t *Printer) Waiting() bool { return len(t.settled) > 0 }

// Note shows a remark of ours.
func (t *Printer) Note(format string, args ...any) { t.note(format, args...) }

func (t *Printer) note(format string, args ...any) {
	t.line("%s%s%s", t.style.dim, untrusted.Sprintf(format, args...), t.style.off)
}

// line writes a line of ours. Text from outside in it must be escaped before.
func (t *Printer) line(format string, args ...any) {
	t.endText()
	fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// print writes a piece of the model's text behind the margin.
func (t *Printer) print(s string) { t.margin(t.text.Next(s)) }

func (t *Printer) margin(s string) {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if !t.midline {
			b.WriteString(untrusted.Mark)
			if line != "\n" {
				b.WriteByte(' ')
			}
		}
		b.WriteString(line)
		t.midline = !strings.HasSuffix(line, "\n")
	}
	fmt.Fprint(t.w, b.String())
}

// endText ends the model's text and its unfinished line.
func (t *Printer) endText() {
	t.margin(t.text.End())
	if t.midline {
		fmt.Fprintln(t.w)
		t.midline = false
	}
}

// style has a terminal's colour sequences; the zero style has none.
type style struct{ dim, bold, good, bad, off string }

var colours = style{dim: "\x1b[2m", bold: "\x1b[1m", good: "\x1b[32m", bad: "\x1b[31m", off: "\x1b[0m"}
