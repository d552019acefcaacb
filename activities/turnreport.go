package activities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Bounds of a turn's report, in bytes.
const (
	maxReported = 4 << 10 // of one result
	maxResults  = 256 << 10
)

// turnReport returns what a hook gets to see of the last turn.
func turnReport(whole *store.View, in ToolInput) agent.TurnReport {
	r := agent.TurnReport{Session: in.Session, Turn: in.Turn, Task: taskIn(whole), Results: []agent.TurnResult{}, Tools: noTools(), All: noTools()}
	if b := in.Check.Budget; b != nil {
		r.Budget = *b
	}
	r.TextCalls = in.Check.TextCalls
	var counts []agent.ToolCount
	for _, e := range turnEvents(whole.Events(), in.Turn) {
		switch {
		case e.Message != nil && e.Message.Role == agent.RoleAssistant:
			r.Text, r.Calls = e.Message.Text(), len(e.Message.ToolCalls())
			r.TextChars = utf8.RuneCountInString(r.Text)
		case e.Message != nil && e.Message.Role == agent.RoleTool:
			addResults(&r, e.Message.Parts)
		case e.Type == agent.EventCheckDone && e.Check.Point == agent.PointVerify && e.Check.Verdict != nil:
			v := e.Check.Verdict
			r.Completion = agent.TurnCompletion{Proposed: true, Vetoed: v.Decision == agent.DecisionVeto, Verdict: v.Decision, Feedback: strings.TrimSpace(v.Reasoning + "\n" + v.NextStep)}
		case e.Snapshot != nil:
			counts = e.Snapshot.Tools
		}
	}
	for _, t := range counts {
		if t.OK > 0 {
			r.All.Successful = append(r.All.Successful, t.Tool)
		}
		if t.Rejected > 0 {
			r.All.Rejected = append(r.All.Rejected, t.Tool)
		}
	}
	r.Required = required(whole.Spec(), r.All.Successful)
	r.Progress = progressOf(r)
	return r
}

func noTools() agent.TurnTools {
	return agent.TurnTools{Successful: []string{}, Rejected: []string{}}
}

// turnEvents returns the events of a turn of a log's last run.
func turnEvents(events []agent.Event, turn int) []agent.Event {
	from := len(events)
	for from > 0 && events[from-1].Started == nil && events[from-1].Turn >= turn {
		from--
	}
	return events[from:]
}

func addResults(r *agent.TurnReport, parts []agent.Part) {
	room := maxResults
	for _, p := range parts {
		if p.Result == nil {
			continue
		}
		one := agent.TurnResult{Call: p.Result.Call, Tool: p.Result.Tool, OK: p.Result.Status == agent.CallOK, Status: p.Result.Status, Text: cut(p.Result.Text, max(0, min(maxReported, room)))}
		room -= len(one.Text)
		r.Results = append(r.Results, one)
		switch {
		case one.OK && !slices.Contains(r.Tools.Successful, one.Tool):
			r.Tools.Successful = append(r.Tools.Successful, one.Tool)
		case one.Status == agent.CallRejected && !slices.Contains(r.Tools.Rejected, one.Tool):
			r.Tools.Rejected = append(r.Tools.Rejected, one.Tool)
		}
	}
}

// required says which entries of the agent's require have a tool that has succeeded.
func required(spec *agent.Spec, done []string) agent.RequiredTools {
	r := agent.RequiredTools{Satisfied: []string{}, Missing: []string{}}
	for _, one := range spec.Require {
		if slices.ContainsFunc(one, func(name string) bool { return slices.Contains(done, name) }) {
			r.Satisfied = append(r.Satisfied, one.String())
		} else {
			r.Missing = append(r.Missing, one.String())
		}
	}
	return r
}

func progressOf(r agent.TurnReport) agent.TurnProgress {
	made := 0
	for _, one := range r.Results {
		if one.Status == agent.CallOK || one.Status == agent.CallFailed {
			made++
		}
	}
	p := agent.TurnProgress{Changed: made > 0 || r.Text != "", Summary: "the turn did nothing"}
	switch {
	case r.Completion.Vetoed:
		p.Summary = "a check vetoed the answer"
	case made > 0:
		p.Summary = fmt.Sprintf("made %d tool calls", made)
	case r.Text != "":
		p.Summary = "wrote text"
	}
	return p
}

// decided reads what a hook of a turn has returned. The result's text is the decision then.
func decided(out ToolOutput) ToolOutput {
	switch {
	case out.Question != nil:
		out.Question, out.Status, out.Text = nil, agent.CallFailed, "a hook of a turn asks nobody; return the action ask"
	case out.Status == agent.CallOK:
		d, err := decisionOf(out.Text)
		raw, _ := json.Marshal(d) // texts and numbers
		if out.Text, out.Size = string(raw), 0; err != nil {
			out.Status, out.Text = agent.CallFailed, "what it decided can't be read: "+err.Error()
		}
	}
	return out
}

// decisionOf reads a decision: an object, true for a stop, or a text for the model.
func decisionOf(text string) (d agent.TurnDecision, err error) {
	switch text = strings.TrimSpace(text); {
	case text == "" || text == "null" || text == "false":
		return d, nil
	case text == "true":
		return agent.TurnDecision{Action: agent.TurnStop}, nil
	case strings.HasPrefix(text, "{"):
		j := json.NewDecoder(bytes.NewReader([]byte(text)))
		j.DisallowUnknownFields()
		if err := j.Decode(&d); err != nil {
			return d, agent.Errorf(agent.CodeInvalidInput, "%w", err)
		}
		return d, d.Check()
	case json.Unmarshal([]byte(text), &d.Message) == nil:
		return d, nil
	}
	d.Message = text
	return d, nil
}
