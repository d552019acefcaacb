package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Progress is the part that keeps how far the model says it is.
type Progress struct {
	Last agent.Progress `json:"last,omitzero"`
}

// Limits of a report. Texts are counted in bytes of JSON.
const (
	maxProgressText    = 500
	maxProgressEntries = 32
	maxProgressEntry   = 200
	// progressSpace is what a report takes in the state at most.
	progressSpace = maxProgressText + maxProgressEntries*(maxProgressEntry+48) + verbFrame
)

func (p *Progress) report(r agent.Progress) { p.Last = r }

var progressTool = agent.ToolSpec{
	Name: agent.ReportProgressTool, Executor: agent.ExecutorRuntime, ReadOnly: true,
	Input: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","description":"What you are doing now, in one sentence"},` +
		`"entries":{"type":"array","maxItems":32,"items":{"type":"object","properties":{"text":{"type":"string","description":"A part of the work"},` +
		`"state":{"type":"string","enum":["pending","in_progress","done"],"description":"How far it is; pending if left out"}},"required":["text"],"additionalProperties":false},"description":"The parts of your work"},` +
		`"replace":{"type":"boolean","description":"False keeps the message and the entries of your last report, except those that you give again; true if left out"}},"additionalProperties":false}`),
}

// takeProgress records the reports of progress of a reply. Listings are updated, since people look at
// them while the run works.
func (s *step) takeProgress() {
	if !s.hasOwnTool(agent.ReportProgressTool) {
		return
	}
	reported := false
	for i, c := range s.Calls.List {
		if c.State != CallPending || c.Tool != agent.ReportProgressTool {
			continue
		}
		p, wrong := readProgress(c.Arguments, s.Progress.Last)
		if wrong != "" {
			s.setResult(i, agent.CallRejected, "Not reported: "+wrong)
			continue
		}
		reported = true
		s.Progress.report(p)
		s.record(agent.Event{Type: agent.EventProgressReported, Progress: &p})
		s.setResult(i, agent.CallOK, "Reported.")
	}
	if reported {
		s.do(Publish{})
	}
}

// readProgress reads a report, and adds it to the last one if it does not replace that. wrong says what
// is invalid, for the model.
func readProgress(arguments json.RawMessage, last agent.Progress) (p agent.Progress, wrong string) {
	var in struct {
		Message string
		Entries []agent.TodoItem
		Replace *bool
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return p, err.Error()
	}
	p.Replace = in.Replace == nil || *in.Replace
	if !p.Replace {
		p.Message, p.Entries = last.Message, slices.Clone(last.Entries)
	}
	if said := oneSpaced(in.Message); said != "" {
		p.Message = said
	}
	if jsonLen(p.Message) > maxProgressText {
		return p, fmt.Sprintf("the message has more than %d bytes.", maxProgressText)
	}
	for i, e := range in.Entries {
		if e.Text = oneSpaced(e.Text); e.State == "" {
			e.State = agent.TodoPending
		}
		switch at := slices.IndexFunc(p.Entries, func(o agent.TodoItem) bool { return o.Text == e.Text }); {
		case e.Text == "" || jsonLen(e.Text) > maxProgressEntry:
			return p, fmt.Sprintf("entries[%d].text is blank, or has more than %d bytes.", i, maxProgressEntry)
		case !slices.Contains([]agent.TodoState{agent.TodoPending, agent.TodoInProgress, agent.TodoDone}, e.State):
			return p, fmt.Sprintf("entries[%d].state must be pending, in_progress or done.", i)
		case at >= 0:
			p.Entries[at] = e
		case len(p.Entries) == maxProgressEntries:
			return p, fmt.Sprintf("there are more than %d entries. Put small ones together.", maxProgressEntries)
		default:
			p.Entries = append(p.Entries, e)
		}
	}
	if p.IsZero() {
		return p, "say something in message or entries."
	}
	return p, ""
}

// oneSpaced returns a text on one line.
func oneSpaced(text string) string { return strings.Join(strings.Fields(text), " ") }
