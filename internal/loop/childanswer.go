package loop

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// childEnded handles a child's end that Temporal has confirmed: by its result, or by a check.
func (s *step) childEnded(in ChildEnded) error {
	i := s.Children.find(in.Session)
	if i < 0 || !s.Children.List[i].notEnded() {
		return s.refuse("child %s is not waited for", in.Session)
	}
	s.childGone(i, in.Outcome, in.Files...)
	return nil
}

func (s *step) childGone(i int, o *agent.Outcome, files ...agent.Part) {
	c := s.Children.List[i]
	answers := false // whether a call shows the end
	// A background child that has started has answered its call in childStarted already: only a
	// failed start answers it here.
	if k := s.Calls.find(c.StartedBy); k >= 0 && s.Calls.List[k].State == CallAwaitingChildren && (c.Call != "" || !c.Started) {
		answers = true
		s.setResultAs(k, childResult(c.StartedBy, s.Calls.List[k].Tool, o, files, s.isFlow()), outcomeSize(o))
	}
	// Before Children.ended: each account has a child in the list. grants.go and budgetview.go look
	// the child up without a check.
	s.closeAccount(c, o)
	s.Artifacts.addChild(c.Session, o)
	s.Children.ended(i, s.keptOutcome(c, o, files), s.now())
	if answers && s.waitsForNews() {
		s.Children.shown(i, s.Turn.N)
	}
	s.recordChild(agent.EventChildEnded, i, o.Reason)
	s.answerWaits()
	s.Children.trim() // after answerWaits, which reads the texts that trim drops
}

// childResult returns a child's outcome as the result of the call that waits for it.
func childResult(call, tool string, o *agent.Outcome, files []agent.Part, forFlow bool) agent.ToolResult {
	r := agent.ToolResult{Call: call, Tool: tool, Status: agent.CallFailed, Partial: o.Status == agent.StatusStopped}
	if o.Status == agent.StatusCompleted {
		r.Status = agent.CallOK
	}
	answer := childAnswerOf(o)
	r.Files, answer.Missing = splitFiles(files)
	if forFlow && !o.OK() {
		answer.Reason = o.Reason
	}
	text, err := json.Marshal(answer)
	if err != nil { // the output is no JSON
		text = []byte(o.Text)
	}
	r.Text = string(text)
	return r
}

// childAnswer is what the model sees of a child, as JSON.
type childAnswer struct {
	OK         bool                     `json:"ok"`
	Child      string                   `json:"child"`
	Status     agent.Status             `json:"status"`
	Text       string                   `json:"text,omitempty"`
	Output     json.RawMessage          `json:"output,omitempty"`
	Error      string                   `json:"error,omitempty"`
	Unsaved    string                   `json:"unsaved,omitempty"` // why the child's end is not stored
	Reason     string                   `json:"reason,omitempty"`  // for a flow
	Suspension *agent.SuspensionSummary `json:"suspension,omitempty"`
	Tokens     int64                    `json:"tokens_used,omitempty"`
	// Missing says which files the child gave back that are gone.
	Missing []string `json:"missing_files,omitempty"`
	// Note says what the model can do about a child that its call does not wait for any more.
	Note string `json:"note,omitempty"`
	// Workspace says what became of the child's own workspace.
	Workspace *agent.WorkspaceOutcome `json:"workspace,omitempty"`
}

// splitFiles splits what a child gives back into files, and words for files that are gone.
func splitFiles(parts []agent.Part) (files []agent.Part, missing []string) {
	for _, p := range parts {
		if p.File != nil {
			files = append(files, p)
		} else {
			missing = append(missing, fit(p.Text, maxWhy))
		}
	}
	return files, missing
}

func childAnswerOf(o *agent.Outcome) childAnswer {
	e := childAnswer{OK: o.OK(), Child: o.Session, Status: o.Status, Text: o.Text, Output: o.Output, Tokens: max(o.Usage.Total(), o.Tree.Usage.Total()), Workspace: shortWorkspace(o.Workspace)}
	if saysMore(o) {
		e.Text = o.Handoff.Summary
	}
	if err := o.Err(); err != nil {
		e.Error = err.Error()
	}
	if o.Unsaved != nil {
		e.Unsaved = fmt.Sprintf("%s: %s", o.Unsaved.Code, o.Unsaved.Message)
	}
	return e
}

// saysMore reports whether a child's handoff sums up more than its last text: the child was stopped, or
// its model summed up. A failed child's error says the rest.
func saysMore(o *agent.Outcome) bool {
	return o.Handoff != nil && (o.Status == agent.StatusStopped || o.Handoff.SummarizedBy == agent.SummarizedByModel)
}

// answer returns what the model sees of a child's present state.
func (c Child) answer() childAnswer {
	if c.Outcome == nil {
		return childAnswer{Child: c.Session, Status: c.Status, Suspension: forModel(c.Suspension)}
	}
	e := childAnswerOf(c.Outcome)
	e.Child = c.Session
	return e
}

// forModel returns a child's suspension without what a tool asks: that is the tool's and a person's alone.
func forModel(w *agent.SuspensionSummary) *agent.SuspensionSummary {
	if w == nil {
		return nil
	}
	less := *w
	if less.Cause == causeToolAsks {
		less.Reason = ""
	}
	less.Requests = slices.Clone(w.Requests)
	for i, r := range less.Requests {
		if r.Type == agent.RequestQuestion && r.Tool != "" && r.Tool != agent.WaitForUserTool { // a model's question has no tool
			less.Requests[i].Text = ""
		}
	}
	return &less
}

// keptOutcome returns what a run keeps of a child's outcome. It keeps the handoff only during a stop,
// because the run's own handoff is made from it. A call that waits for the child shows the child's
// files; those of a child in the background are kept until a call of subagent_wait shows them.
func (s *step) keptOutcome(c Child, o *agent.Outcome, files []agent.Part) *agent.Outcome {
	most := maxChildText
	if c.Released && s.waitsForNews() { // in the foreground it would have been shown whole
		most = maxReleasedText
	}
	kept := outcomeWithin(o, most)
	if kept.Files = nil; c.Call == "" {
		kept.Files = filesIn(files)
	}
	if kept.Handoff != nil && s.End.Stopping == nil {
		if saysMore(o) {
			kept.Text = keptText(kept.Handoff.Summary, most)
		}
		kept.Handoff = nil
	}
	return kept
}

// FetchedOutcome returns an outcome as a run asks Temporal for it: with all that Temporal would have
// delivered by itself, since a call may still wait for the answer, and bounded, since any worker may
// have written it. It does not change o, which names its session.
func FetchedOutcome(o *agent.Outcome) *agent.Outcome {
	b := boundedOutcome(o)
	b.Text = excerpt.Of(o.Text, maxChildAnswer, len(o.Text))
	if jsonLen(b.Text)+rawJSONLen(b.Output) > maxOutcome {
		b.Output = nil
	}
	b.Files = b.Files[:min(len(b.Files), agent.MaxFiles)]
	var saved Artifacts
	saved.addChild(o.Session, o)
	b.Artifacts, b.ArtifactsLeft = saved.Children, saved.Left
	return b
}

// shorterOutcome returns a kept outcome with short texts. It does not change o.
func shorterOutcome(o *agent.Outcome) *agent.Outcome {
	b := *o
	if b.Text = fit(b.Text, maxChildText); rawJSONLen(b.Output) > maxChildText {
		b.Output = nil
	}
	return &b
}

// outcomeWithin returns a bounded outcome with a text and an output of at most so many bytes of JSON each.
func outcomeWithin(o *agent.Outcome, most int) *agent.Outcome {
	b := boundedOutcome(o)
	b.Text = keptText(b.Text, most)
	if b.Workspace = shortWorkspace(b.Workspace); b.Workspace != nil {
		b.Workspace.Paths, b.Workspace.PathsLeft = nil, b.Workspace.PathsLeft+len(b.Workspace.Paths)
	}
	b.Artifacts, b.ArtifactsLeft = nil, 0 // see Artifacts.addChild
	if rawJSONLen(b.Output) > most {
		b.Output = nil
	}
	return b
}

// keptText returns a text as a parent keeps it. A long one says that it is cut.
func keptText(text string, most int) string {
	if most <= maxChildText {
		return fit(text, most)
	}
	return fit(excerpt.Of(text, most, len(text)), most)
}

// boundedOutcome returns a copy of an outcome with short names and bounded numbers, and without what
// a parent has no use for. The answer and the artifacts stay as they are.
func boundedOutcome(o *agent.Outcome) *agent.Outcome {
	b := *o
	b.Type, b.Status, b.Reason = "outcome", fit(b.Status, receiptFrame), fit(b.Reason, maxName)
	b.By, b.Citations, b.Tools, b.ToolsMode, b.Checkpoint, b.Suspension, b.Error = "", nil, nil, "", "", nil, codeOnly(b.Error)
	b.Workspace, b.Unsaved = shortWorkspace(o.Workspace), codeOnly(o.Unsaved)
	b.Usage, b.Cost, b.Tree = b.Usage.Bounded(), amount.Clamp(b.Cost), b.Tree.Bounded()
	if b.Error != nil {
		b.Error.Message = fit(o.Error.Message, maxWhy)
	}
	if b.Unsaved != nil {
		b.Unsaved.Message = fit(o.Unsaved.Message, maxWhy)
	}
	return &b
}

// codeOnly returns an error without its texts; nil for nil.
func codeOnly(e *agent.Error) *agent.Error {
	if e == nil {
		return nil
	}
	return &agent.Error{Code: fit(e.Code, receiptFrame), Status: fit(e.Status, receiptFrame), Retryable: e.Retryable}
}

// recordChild writes an event about a child to the log, unless the run's end is there already.
func (s *step) recordChild(t agent.EventType, i int, reason string) {
	if s.outcomeDecided() {
		return
	}
	c := s.Children.List[i]
	s.resumed.Cause = agent.Initiator(firstOf(string(s.resumed.Cause), string(agent.InitiatorTriggered)))
	u := &agent.ChildUpdate{Session: c.Session, Run: c.Run, Agent: c.Agent, Call: c.StartedBy, Status: c.Status, Reason: fit(reason, maxName)}
	if k := s.Calls.find(c.StartedBy); k >= 0 {
		u.Step = s.stepPath(s.Calls.List[k])
	}
	if c.Outcome != nil {
		u.Tokens, u.Cost = c.Outcome.Tree.Usage.Total(), c.Outcome.Tree.Cost
		u.Workspace = shortWorkspace(c.Outcome.Workspace)
	}
	s.recordIfBegun(agent.Event{Type: t, Child: u})
}
