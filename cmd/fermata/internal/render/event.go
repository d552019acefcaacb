package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Event describes an event of a session's log in a few words; empty if its type says everything.
func Event(session string, e agent.Event) string {
	switch {
	case e.Started != nil && e.Started.Spec != nil:
		return fmt.Sprintf("%s · %s · run %s", untrusted.Name(e.Started.Spec.Name), untrusted.Name(e.Started.Spec.Model), e.Started.Run)
	case e.Message != nil:
		return whatIsSaid(*e.Message)
	case e.Call != nil:
		return Words(e.Call.Call, untrusted.Name(cmp.Or(e.Call.Step, e.Call.Tool)), came(agent.ToolResult{Status: e.Call.Status, Partial: e.Call.Partial}))
	case e.Snapshot != nil:
		return fmt.Sprintf("turn %d · checkpoint %s", e.Turn, agent.CheckpointID(session, e.Seq))
	case e.Outcome != nil:
		return Summary(e.Outcome)
	case e.Suspension != nil:
		return e.Suspension.ID + " " + Waits(e.Suspension)
	case e.OwnerFailed != nil:
		return OwnerFailed(*e.OwnerFailed)
	case e.Resumed != nil:
		return Words(e.Resumed.Suspension, string(e.Resumed.Cause), untrusted.Name(e.Resumed.By))
	case e.Hold != nil && e.Hold.RemovedBy != "": // before the hold's reason, which may say anything
		return e.Hold.ID + " removed" + By(e.Hold.RemovedBy) + ", was " + Held(*e.Hold)
	case e.Hold != nil:
		return e.Hold.ID + " " + Held(*e.Hold)
	case e.Request != nil:
		return Asks(*e.Request)
	case e.Answer != nil:
		return answered(*e.Answer)
	case e.Child != nil:
		text := Words(untrusted.Name(e.Child.Session), string(e.Child.Status), e.Child.Reason)
		if e.Child.Workspace != nil {
			text += " · workspace: " + Workspace(e.Child.Workspace)
		}
		return text
	case e.Type == agent.EventTurnStarted:
		return fmt.Sprintf("turn %d", e.Turn)
	}
	return whatElse(e)
}

func whatElse(e agent.Event) string {
	switch {
	case e.Delay != nil && e.Delay.Error != nil:
		return fmt.Sprintf("until %s: %s", e.Delay.Until.Local().Format(time.DateTime), e.Delay.Error.Message)
	case e.Check != nil:
		return CheckLine(e.Check)
	case e.Artifact != nil:
		return Artifact(e.Artifact)
	case e.Progress != nil:
		return Progress(e.Progress)
	case e.Notebook != nil:
		return fmt.Sprintf("version %d", e.Notebook.Version)
	case e.Forked != nil:
		return Words(e.Forked.Session, e.Forked.Checkpoint)
	case e.ToolsChange != nil && e.ToolsChange.Refused != nil:
		return fmt.Sprintf("%s has other tools, which were refused: %s", untrusted.Name(e.ToolsChange.Source), e.ToolsChange.Refused)
	case e.ToolsChange != nil && len(e.ToolsChange.Left) > 0:
		return fmt.Sprintf("%s has %d tools now; not accepted: %s", untrusted.Name(e.ToolsChange.Source), len(e.ToolsChange.Tools), LeftOut(*e.ToolsChange))
	case e.ToolsChange != nil && e.ToolsChange.Source == "":
		return fmt.Sprintf("the runtime offers %d more tools now", len(e.ToolsChange.Tools))
	case e.ToolsChange != nil:
		return fmt.Sprintf("%s has %d tools now", untrusted.Name(e.ToolsChange.Source), len(e.ToolsChange.Tools))
	case e.Instructions != nil && e.Instructions.Error != nil:
		return "the run keeps its instructions: " + e.Instructions.Error.Message
	case e.Instructions != nil:
		return "the agent's newest instructions, " + e.Instructions.Digest[:min(12, len(e.Instructions.Digest))]
	case e.Migrated != nil:
		return fmt.Sprintf("%d → %d", e.Migrated.From, e.Migrated.To)
	case e.Refusal != nil && e.Refusal.Error != nil:
		return refused(*e.Refusal)
	}
	return policyEvent(e)
}

// refused says why a signal was refused, and who sent it.
func refused(r agent.RefusedVerb) string {
	if r.By == "" {
		return r.Error.Message
	}
	return "sent" + By(r.By) + ": " + r.Error.Message // first: the message may say anything
}

// Words joins words with spaces.
func Words(list ...string) string { return strings.Join(list, " ") }

// whatIsSaid returns a message's text, with its calls or their results.
func whatIsSaid(m agent.Message) string {
	text := string(m.Role) + ": " + said(&m)
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			text += " → " + untrusted.Name(p.Call.Tool) + " " + Arguments(*p.Call)
		case p.Result != nil:
			text += fmt.Sprintf(" %s %s: %s", untrusted.Name(p.Result.Tool), came(*p.Result), p.Result.Text) + filesIn(p.Result.Files)
		}
	}
	return text
}

// came says how a result came: "ok", or "ok, partial" if the call was interrupted.
func came(r agent.ToolResult) string {
	if r.Partial {
		return string(r.Status) + ", partial"
	}
	return string(r.Status)
}

// Artifact names a version of an artifact.
func Artifact(a *agent.Artifact) string { return untrusted.Line(a.String(), maxAsked) }
