package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// waitText says what the run waits for.
func waitText(s State) string {
	v := s.Suspension()
	if v == nil {
		return ""
	}
	return fmt.Sprintf(", %s %s %v", s.Status(), v.ID, s.WaitsFor())
}

// unsavedText says that the store does not have the run's end, and the fault's code.
func unsavedText(s State) string {
	if o := s.End.Outcome; o != nil && o.Unsaved != nil {
		return fmt.Sprintf(", %s and not stored (%s)", o.Status, o.Unsaved.Code)
	}
	return ""
}

// awaited is what the event of a suspension tells of what the run waits for.
func awaited(v *agent.Suspension) (text string) {
	if v.Reason != "" {
		text += fmt.Sprintf(" %q", oneLine(v.Reason))
	}
	for _, r := range v.Requests {
		text += " " + r.ID
	}
	if v.Conditions == nil || len(v.Conditions.List()) == 0 {
		return text
	}
	for _, c := range v.Conditions.List() {
		if c.Event != nil {
			text += fmt.Sprintf(" topic:%s%s", c.Event.Topic, c.Event.Match)
		} else {
			text += " " + c.At.Format("02 15:04:05")
		}
	}
	return fmt.Sprintf("%s then %s", text, v.Conditions.OnTimeout)
}

func describeCheck(c agent.CheckUpdate) string {
	text := fmt.Sprintf(" %s %s %s by %s", c.Call, c.Point, c.Name, c.Tool)
	if c.Skipped {
		text += ": skipped, " + string(c.Reason)
	}
	if c.Status != "" {
		text += fmt.Sprintf(": %s in %s", c.Status, c.Duration)
	}
	if d := c.Decision; d != nil {
		text += fmt.Sprintf(", decides %s %q", d.Action, d.Reason)
	}
	if v := c.Verdict; v != nil {
		text += fmt.Sprintf(", %s %q", v.Decision, oneLine(v.Reasoning))
	}
	if c.Model != "" {
		text += fmt.Sprintf(", %d tokens of %s", c.Usage.Total(), c.Model)
	}
	return text
}

func describe(e agent.Event) string {
	switch {
	case e.Message != nil:
		var b strings.Builder
		if c := e.Compaction; c != nil {
			fmt.Fprintf(&b, " %s for %s, from %d", c.Strategy, c.Reason, c.KeepFrom)
		}
		fmt.Fprintf(&b, " %s", e.Message.Role)
		if e.Message.Partial {
			b.WriteString("(partial)")
		}
		if e.Message.Note != "" {
			fmt.Fprintf(&b, "(%s)", e.Message.Note)
		}
		for _, part := range e.Message.Parts {
			switch {
			case part.Call != nil:
				fmt.Fprintf(&b, " [%s %s]", part.Call.ID, part.Call.Tool)
			case part.Result != nil:
				fmt.Fprintf(&b, " [%s %s: %s]", part.Result.Call, part.Result.Status, oneLine(part.Result.Text))
			default:
				fmt.Fprintf(&b, " %s", oneLine(part.Text))
			}
		}
		return b.String()
	case e.Call != nil:
		text := " " + strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", e.Call.Call, e.Call.Step, e.Call.Tool, e.Call.Status)), " ")
		if l := e.Call.Lifecycle; l != nil {
			text += fmt.Sprintf(" by %s (%s) %s %q %s", l.By, l.Initiator, l.Children, l.Reason, l.Conditions)
		}
		return text
	case e.Check != nil:
		return describeCheck(*e.Check)
	case e.Snapshot != nil:
		text := fmt.Sprintf(" %d tokens", e.Snapshot.Usage.Total())
		for _, k := range slices.Sorted(maps.Keys(e.Snapshot.StateChanges)) {
			text += fmt.Sprintf(", %s is %s", k, e.Snapshot.StateChanges[k])
		}
		return text
	case e.Outcome != nil:
		text := fmt.Sprintf(" %s %q", e.Outcome.Reason, oneLine(e.Outcome.Text))
		if e.Outcome.Error != nil {
			text += ": " + oneLine(e.Outcome.Error.Message)
		}
		if n := e.Outcome.Verify; n != nil {
			text += fmt.Sprintf(", %d of %d checks vetoed, capped %t", n.Vetoes, n.Invocations, n.CapReached)
		}
		return text
	case e.Suspension != nil:
		return fmt.Sprintf(" %s %s by %s %s", e.Suspension.ID, e.Suspension.Kind, e.Suspension.Initiator, e.Suspension.Cause) + awaited(e.Suspension)
	case e.Resumed != nil:
		renewed := map[bool]string{true: "with fresh limits"}[e.Resumed.Renewed]
		return " " + strings.Join(strings.Fields(fmt.Sprintf("%s by %s %s %s", e.Resumed.Suspension, e.Resumed.Cause, e.Resumed.Event, renewed)), " ")
	case e.Hold != nil:
		text := fmt.Sprintf(" %s %s %s", e.Hold.ID, e.Hold.From, e.Hold.Verb)
		if e.Hold.By != "" {
			text += " by " + e.Hold.By
		}
		if e.Hold.Reason != "" {
			text += fmt.Sprintf(" %q", oneLine(e.Hold.Reason))
		}
		return text
	case e.Request != nil:
		text := fmt.Sprintf(" %s %s %q", e.Request.ID, e.Request.Type, oneLine(e.Request.Text))
		if e.Request.Call != nil {
			text += " " + string(e.Request.Call.Arguments)
		}
		return text
	case e.Answer != nil:
		text := strings.TrimRight(fmt.Sprintf(" %s %s %s", e.Answer.Request, e.Answer.Decision, e.Answer.By), " ")
		if e.Answer.Text != "" {
			text += fmt.Sprintf(" %q", oneLine(e.Answer.Text))
		}
		return text
	case e.Child != nil:
		return fmt.Sprintf(" %s %s", e.Child.Session, e.Child.Status)
	case e.OwnerFailed != nil:
		return fmt.Sprintf(" %s %s: %s %q", e.OwnerFailed.Suspension, e.OwnerFailed.Owner, e.OwnerFailed.Code, e.OwnerFailed.Reason)
	case e.Refusal != nil:
		return fmt.Sprintf(" %s: %s", e.Refusal.Verb, e.Refusal.Error.Code)
	case e.Skill != nil:
		return describeSkill(*e.Skill)
	case e.Matched != nil:
		text := fmt.Sprintf(" by %s: %d", e.Matched.Strategy, len(e.Matched.Candidates))
		for _, c := range e.Matched.Candidates {
			text += " " + c.Name
		}
		return text
	case e.Artifact != nil:
		return fmt.Sprintf(" %s version %d, by %s", e.Artifact.Name, e.Artifact.Version, e.Artifact.Call)
	case e.Notebook != nil:
		return fmt.Sprintf(" version %d, by %s", e.Notebook.Version, e.Notebook.Call)
	case e.Progress != nil:
		return fmt.Sprintf(" %q, %d of %d done, replace %t", e.Progress.Message, e.Progress.Done(), len(e.Progress.Entries), e.Progress.Replace)
	case e.Forked != nil:
		return fmt.Sprintf(" %s of %s", e.Forked.Checkpoint, e.Forked.Run)
	case e.Migrated != nil:
		return fmt.Sprintf(" %d to %d", e.Migrated.From, e.Migrated.To)
	case e.Started != nil && e.Started.Imported != nil:
		return fmt.Sprintf(" %s, goes on with %s", e.Started.Run, e.Started.Imported.Run)
	case e.Started != nil:
		return strings.TrimRight(" "+string(e.Started.Carry)+e.Started.Unrecovered, " ")
	case e.Lesson != nil:
		return fmt.Sprintf(" %s: %s", e.Lesson.Kind, oneLine(e.Lesson.Text))
	case e.Moved != nil:
		return fmt.Sprintf(" from %d to %d: %s", e.Moved.From, e.Moved.To, e.Moved.Reason)
	case e.Instructions != nil && e.Instructions.Error != nil:
		return " " + string(e.Instructions.Error.Code)
	case e.Instructions != nil && e.Instructions.By == "":
		return fmt.Sprintf(" %q", e.Instructions.Text)
	case e.Instructions != nil:
		return fmt.Sprintf(" %q by %s", e.Instructions.Text, e.Instructions.By)
	case e.Extended != "":
		return " " + string(e.Extended)
	}
	return ""
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 90 {
		s = s[:90] + "…"
	}
	return s
}

// amountsText is what is bounded, but agents where there are thousands.
func amountsText(a wire.Amounts) string {
	var parts []string
	for r := range wire.Resources {
		switch {
		case a[r] == 0 || a[r] == wire.Unlimited || r == wire.ResourceAgents && (a[r] > 1000 || a[r] == 1):
		case r == wire.ResourceTime:
			parts = append(parts, time.Duration(a[r]).String())
		case r == wire.ResourceCost:
			parts = append(parts, agent.USD(a[r]).String()+" USD")
		default:
			parts = append(parts, fmt.Sprintf("%d %s", a[r], r))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

func effectText(e Effect) string {
	switch e := e.(type) {
	case CallModel:
		text := fmt.Sprintf("call model, turn %d, up to event %d", e.Turn, e.Seq)
		if e.Summary != "" {
			text += ", to summarize: " + string(e.Summary)
		}
		if e.ForceFit {
			text += ", squeezed"
		}
		if o := e.Skills; o != nil && o.Match {
			text += ", matching skills"
		}
		if o := e.Skills; o != nil {
			for _, u := range o.Load {
				text += ", reading " + u.Name
			}
		}
		if e.Note != "" {
			text += ", noting " + strconv.Quote(oneLine(e.Note))
		}
		if e.LateAnswers != "" {
			text += ", with late answers " + strconv.Quote(strings.Join(strings.Fields(e.LateAnswers), " "))
		}
		if e.Next != nil {
			raw, _ := json.Marshal(e.Next)
			text += ", with " + string(raw)
		}
		if e.Skip > 0 {
			text += fmt.Sprintf(", without the first %d of the models", e.Skip)
		}
		if e.Lessons != "" {
			text += ", ending with " + strconv.Quote(strings.Join(strings.Fields(e.Lessons), " "))
		}
		return text
	case CallTool:
		if e.Edited {
			return fmt.Sprintf("call %s %s with %s", e.Call, e.Tool, e.Arguments)
		}
		text := fmt.Sprintf("call %s %s", e.Call, e.Tool)
		if e.Check != nil && len(e.Check.Subject) > 0 {
			text += " about " + string(e.Check.Subject)
		}
		if e.Check != nil && e.Check.Answer != "" {
			text += ", which looks at " + e.Check.Answer
		}
		if e.Temporal != nil {
			text += fmt.Sprintf(": %s, within %s", e.Temporal, e.Timeout)
		}
		for _, a := range e.Answers {
			text += fmt.Sprintf(", answered %q", a.Text)
			if a.Declined {
				text += " (declined)"
			}
			if a.Expired {
				text += " (expired)"
			}
			if len(a.State) > 0 {
				text += ", kept " + string(a.State)
			}
		}
		return text
	case Seal:
		where := map[bool]string{true: ", in this task"}[e.Local]
		return fmt.Sprintf("seal to event %d, %s%s", e.To, e.Status, where)
	case SetTimer:
		if e.At.IsZero() {
			return "clear timer"
		}
		return "set timer " + e.At.Format("02 15:04:05")
	case AskFlow:
		return fmt.Sprintf("ask flow, turn %d, up to event %d, room for %d%s", e.Turn, e.AskSeq, e.Room, map[bool]string{true: ", by an activity"}[e.Regular])
	case CancelCall:
		return "cancel call " + e.Call
	case Broadcast:
		text := fmt.Sprintf("broadcast %s of %s, hold %d", e.Verb, e.Session, e.N)
		if e.Grace != 0 {
			text += ", grace " + e.Grace.String()
		}
		return text
	case StartChild:
		text := fmt.Sprintf("start %s of %s: %s; held %d", e.Session, e.Agent, e.Task, len(e.ChildStart.Holds))
		if g := e.ChildStart.Grant; g != nil && g[wire.ResourceTokens]+g[wire.ResourceCost]+g[wire.ResourceTurns]+g[wire.ResourceTime] > 4*wire.Unlimited {
			text += ", granted " + amountsText(*g)
		}
		return text
	case OrderChild:
		text := fmt.Sprintf("order %s to %s, held %d", e.Session, e.Order.Verb, len(e.Order.Holds))
		if e.Order.Own && e.Order.Reason != "" {
			text += fmt.Sprintf(", saying %q", e.Order.Reason)
		}
		if e.Order.Again {
			text += ", again"
		}
		if e.Order.FromSummary {
			text += ", from a summary"
		}
		return text
	case ReportToParent:
		text := fmt.Sprintf("report to %s: %s", e.Session, e.Report.Status)
		if n := e.Report.Suspension; n != nil {
			text += fmt.Sprintf(", %s %s", n.ID, n.Kind)
			if n.OwnerFailed != nil {
				text += fmt.Sprintf(", its owner failed (%s)", n.OwnerFailed.Code)
			}
		}
		if r := e.Report.Budget; r != nil && r.Granted != (wire.Amounts{}) {
			text += fmt.Sprintf("; used %s of %s", amountsText(wire.UsedAmounts(r.Used)), amountsText(r.Granted))
			if r.Returned != (wire.Amounts{}) {
				text += ", gave back " + amountsText(r.Returned)
			}
			if r.Requested != (wire.Amounts{}) {
				text += ", asks for " + amountsText(r.Requested)
			}
		}
		return text
	case GrantChild:
		text := fmt.Sprintf("grant %s %s", e.Session, amountsText(e.Order.Granted))
		if e.Order.Recall {
			text += ", wanting back what it does not use"
		}
		if e.Order.Denied {
			text += ", no more agents"
		}
		return text
	case ForwardCommand:
		return fmt.Sprintf("pass %s on to %s: %+v", e.Command.Verb(), e.Session, e.Command)
	case MakeHandoff:
		children, left := "", ""
		if len(e.Children) > 0 {
			children = fmt.Sprintf(" %d children", len(e.Children))
		}
		for _, i := range e.Known.NotStarted {
			left += "; not begun: " + i.What
		}
		return fmt.Sprintf("make handoff%s, the model said %q%s", children, e.SummaryText, left)
	case Acknowledge:
		if e.For != "" {
			if e.Err != nil {
				return fmt.Sprintf("answer %s: refused %s: %s", e.For, e.Err.Code, e.Err)
			}
			return fmt.Sprintf("answer %s: %s, %s", e.For, e.Ack.Effect, e.Ack.Status)
		}
		if e.Err != nil {
			return fmt.Sprintf("answer refused %s: %s", e.Err.Code, e.Err)
		}
		return strings.TrimSpace(fmt.Sprintf("answer %s, %s %s", e.Ack.Effect, e.Ack.Status, e.Ack.Suspension))
	case Open:
		return "open " + e.Agent
	case Refresh:
		return "fetch the instructions of " + e.Agent
	case Locate:
		text := "locate"
		if e.From != nil {
			text += " " + e.From.Checkpoint + e.From.Retry
		}
		if e.NoMessage {
			text += ", silent"
		}
		return text
	case List:
		return "list " + strings.Join(e.Sources, ", ")
	case Look:
		return fmt.Sprintf("look %d at %s", e.N, strings.Join(e.Paths, ", "))
	case MakeWorkspace:
		return strings.TrimSpace(fmt.Sprintf("make %s %s %s", e.Kind, e.Name, e.Base))
	case EndWorkspace:
		return fmt.Sprintf("%s %s %s", e.AtEnd, e.Kind, e.Name)
	}
	return words(strings.TrimPrefix(fmt.Sprintf("%T", e), "loop."))
}

// words are a Go name's: "continue as new" of ContinueAsNew.
func words(name string) string {
	return strings.TrimSpace(strings.ToLower(capital.ReplaceAllString(name, " $0")))
}

var capital = regexp.MustCompile(`[A-Z]`)

func describeSkill(u agent.SkillUpdate) string {
	text := " " + u.Name
	for _, word := range []string{string(u.Cause), u.Instructions, u.Reason} {
		if word != "" {
			text += fmt.Sprintf(" %q", word)
		}
	}
	if u.Error != nil {
		text += " " + string(u.Error.Code)
	}
	if len(u.Removed) > 0 {
		text += fmt.Sprintf(", offered %v, not %v", u.Remaining, u.Removed)
	}
	return text
}
