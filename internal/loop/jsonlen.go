package loop

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// jsonLen returns the greatest length of a call in JSON.
func (k Call) jsonLen() int {
	n := callFrame + jsonLen(k.ProviderID) + rawJSONLen(k.Arguments) + jsonLen(k.Malformed) + jsonLen(k.Approver) + textsJSONLen(k.Children) + changesJSONLen(k.StateChanges) + filesJSONLen(k.Files)
	if k.Result == nil { // the result's size has it already (Calls.finish)
		n += k.edits()
	} else {
		n += partsJSONLen(k.Result.Files)
	}
	for _, a := range k.Answers {
		n += answerJSONLen(a)
	}
	if k.Unknown != "" {
		n += maxWhy // and not its length, as of a child's error
	}
	return n + k.ResultSize + k.Wait.size() + stepJSONLen(k.Step)
}

// stepJSONLen returns the greatest length of a step's options in JSON.
func stepJSONLen(o wire.StepOptions) int {
	n := temporalJSONLen(o.Temporal)
	if o.Answer == nil && len(o.Approvers) == 0 {
		return n // the rest is in callFrame
	}
	n += verbFrame + textsJSONLen(o.Approvers)
	if o.Answer != nil {
		n += verbFrame + jsonLen(o.Answer.Default)
	}
	return n
}

// temporalJSONLen returns the greatest length in JSON of what a tool or a step calls; zero for nil.
func temporalJSONLen(t *agent.TemporalCall) int {
	if t == nil {
		return 0
	}
	return outsideFrame + jsonLen(t.Type) + jsonLen(t.TaskQueue) + jsonLen(t.Endpoint) + jsonLen(t.Service) + textsJSONLen(t.NonRetryable)
}

// edits returns the length of the text that a result has about edited arguments.
func (k Call) edits() int {
	if !k.Edited {
		return 0
	}
	return verbFrame + rawJSONLen(k.Arguments)
}

// resultJSONLen returns the greatest length of a result's text in JSON. bytes counts the text that a
// tool, model or person wrote. Within a text of the runtime it is JSON within JSON, where each byte
// takes up to seven.
func resultJSONLen(text string, bytes int) int {
	if bytes == len(text) { // nothing of it is the runtime's, so it can be measured
		return max(ownWords, jsonLen(text))
	}
	return ownWords + 7*bytes
}

func answerJSONLen(a agent.ToolAnswer) int {
	return verbFrame + jsonLen(a.Text) + rawJSONLen(a.Data) + jsonLen(a.By) + rawJSONLen(a.State) + jsonLen(a.Name) + digestJSONLen(a.Digest)
}

// digestJSONLen returns the greatest length in JSON of a field with a question's digest; zero for none,
// as in runs of older builds.
func digestJSONLen(digest string) int {
	if digest == "" {
		return 0
	}
	return len(`,"question_digest":""`) + jsonLen(digest)
}

// changesJSONLen returns the length of a call's state changes.
func changesJSONLen(set map[string]json.RawMessage) (n int) {
	keys := slices.Collect(maps.Keys(set)) //workflowcheck:ignore a sum has no order
	for _, k := range keys {
		n += len(`"":,`) + jsonLen(k) + rawJSONLen(set[k])
	}
	return n
}

// keptSize returns what a call will need when the run is suspended. A pending or running call has a
// result by then, and no arguments. If a hold keeps it from being made, it keeps its arguments:
// see overlong.
func (k Call) keptSize() int {
	if k.State == CallDone || k.State == CallAwaitingEvent || k.awaitsPeople() {
		return k.Size
	}
	return callFrame + jsonLen(k.ProviderID) + ownWords + k.edits()
}

// awaitsPeople reports whether a call waits for a person, or is decided and waits until the other
// requests are.
func (k Call) awaitsPeople() bool {
	return k.State == CallAwaitingAnswer || k.State == CallPending && k.hasDecision()
}

func (c Calls) keptSize() (n int) {
	for _, k := range c.List {
		n += k.keptSize()
	}
	return n
}

// pendingSize returns how many bytes the pending calls need beyond keptSize.
func (c Calls) pendingSize() (n int) {
	for _, k := range c.List {
		if k.State == CallPending {
			n += k.Size - k.keptSize()
		}
	}
	return n
}

// jsonLen returns the greatest length of a child in JSON.
func (c Child) jsonLen() int {
	n := childFrame + len(c.Session) + len(c.Run) + len(c.Agent) + len(c.Call) + len(c.StartedBy) + jsonLen(c.Task)
	if s := c.Suspension; s != nil {
		n += noteFrame + jsonLen(s.ID) + jsonLen(s.Kind) + jsonLen(s.Initiator) + jsonLen(s.Cause) + jsonLen(s.Reason) + jsonLen(s.Owner)
		if f := s.OwnerFailed; f != nil {
			n += verbFrame + jsonLen(f.Suspension) + jsonLen(f.Owner) + jsonLen(f.Code) + jsonLen(f.Reason)
		}
		for _, r := range s.Requests {
			n += verbFrame + jsonLen(r.ID) + jsonLen(r.Type) + jsonLen(r.Text) + jsonLen(r.Tool) + jsonLen(r.Digest) + textsJSONLen(r.Approvers)
		}
	}
	if o := c.Outcome; o != nil {
		n += outcomeFrame + len(o.Session) + len(o.Run) + len(o.Agent) + jsonLen(o.Text) + rawJSONLen(o.Output) + filesJSONLen(o.Files)
		if o.Workspace != nil {
			n += workspaceFrame
		}
		if o.Error != nil && o.Error.Message != "" {
			n += maxWhy // and not its length: the runtime's own words may change in a later build
		}
	}
	return n
}

// jsonLen returns the greatest length in JSON of what the parent passed to this run.
func (p Parent) jsonLen() int {
	n := textsJSONLen(p.ForbiddenTools) + rulesJSONLen(p.InheritedRules)
	if b := p.Start; b != nil {
		n += labelsJSONLen(b.Labels) + jsonLen(b.Principal)
		for _, r := range b.Reminders {
			n += verbFrame + jsonLen(r.Text) + jsonLen(r.OriginatingAgent)
		}
		if w := b.Workspace; w != nil {
			n += requestFrame + labelsJSONLen(w.Env)
		}
		n += requestFrame + rulesJSONLen(b.Rules) + rawJSONLen(b.Output)*2 + len(b.Parent.Session)
		for _, c := range b.Ceilings {
			n += receiptFrame + textsJSONLen(c)
		}
	}
	return n
}

func labelsJSONLen(labels map[string]string) (n int) {
	names := slices.Sorted(maps.Keys(labels)) //workflowcheck:ignore the order of the map is gone after sorting
	for _, name := range names {
		n += jsonLen(name) + jsonLen(labels[name]) + 6
	}
	return n
}

func policyJSONLen(policy agent.Policy) (n int) {
	for _, p := range policy {
		n += verbFrame + textsJSONLen(p.Agents) + textsJSONLen(p.Principals) + labelsJSONLen(p.Labels)
		for _, v := range p.Verbs {
			n += jsonLen(v) + 3
		}
	}
	return n
}

func rulesJSONLen(rules []agent.Rule) (n int) {
	for _, r := range rules {
		n += callFrame/2 + textsJSONLen(r.Tools) + textsJSONLen(r.Approvers) + jsonLen(r.Reason) + jsonLen(r.Default) + rawJSONLen(r.Arguments)
	}
	return n
}

// specJSONLen returns the greatest length in JSON of what a state keeps of a Spec. It counts the names
// of tools twice: the state may also list each tool as one that needs no approval any more.
func specJSONLen(spec agent.Spec) int {
	n := 4*requestFrame + jsonLen(spec.Instructions) + jsonLen(spec.Description) + jsonLen(spec.Model) + textsJSONLen(spec.Fallbacks) + textsJSONLen(spec.Unpriced) + 2*verbFrame*len(spec.Prices) +
		turnOptionsJSONLen(spec.Definition) + textsJSONLen(spec.Tools) + textsJSONLen(spec.Ceiling) + rulesJSONLen(spec.Rules) + jsonLen(spec.Nudge) + rawJSONLen(spec.Output) + jsonLen(spec.AnswerTimeouts.Default) +
		jsonLen(spec.Compaction.Instructions) + jsonLen(spec.ModelQueue) + policyJSONLen(spec.Policy)
	remedies := slices.Collect(maps.Values(spec.Recovery)) //workflowcheck:ignore a sum has no order
	for _, r := range remedies {
		n += verbFrame + jsonLen(r.Text)
	}
	for _, t := range spec.Toolset {
		n += callFrame/4 + 2*jsonLen(t.Name) + textsJSONLen(t.Secrets) + temporalJSONLen(t.Temporal)
		if t.Approval != nil {
			n += rulesJSONLen([]agent.Rule{t.Approval.Rule()})
		}
	}
	n += textsJSONLen(spec.Skills)
	for _, k := range spec.Skillset {
		n += callFrame/4 + jsonLen(k.Name) + jsonLen(k.Digest) + textsJSONLen(k.Tools)
	}
	for _, a := range spec.Agents {
		n += callFrame/2 + jsonLen(a.Description) + textsJSONLen(a.Tools) + rawJSONLen(a.Output)
		if a.Workspace != nil {
			n += verbFrame + labelsJSONLen(a.Workspace.Env)
		}
	}
	for _, one := range spec.Require {
		n += textsJSONLen(one)
	}
	for _, k := range spec.Checks() {
		n += callFrame/2 + jsonLen(k.Name) + jsonLen(k.Tool) + jsonLen(k.Agent) + jsonLen(k.Command) + jsonLen(k.Task) + jsonLen(k.FeedbackFallback) + textsJSONLen(k.Tools) + rawJSONLen(k.Arguments)
		if k.Judge != nil {
			n += jsonLen(k.Judge.Model) + jsonLen(k.Judge.Instructions)
		}
	}
	for _, m := range spec.Judges {
		n += 2*verbFrame + jsonLen(m.Model)
	}
	if spec.Daemon != nil {
		n += requestFrame + textsJSONLen(spec.Daemon.Topics) + textsJSONLen(spec.Daemon.Watch)
	}
	return n
}

// turnOptionsJSONLen counts the options about the turn; zero if the agent names none.
func turnOptionsJSONLen(d agent.Definition) (n int) {
	if d.DoneSentinel != "" || d.TurnPolicy != nil || d.TextCalls != "" || d.ToolNarrowing != nil {
		n += requestFrame + jsonLen(d.DoneSentinel) + jsonLen(d.TextCalls)
	}
	if d.Report {
		n += 2 * reportSpace // the state keeps it, and at the end the outcome too
		if len(d.Verify.Checks) > 0 {
			n += 2 * decisionSpace
		}
	}
	if slices.Contains(d.Tools, agent.ReportProgressTool) {
		n += progressSpace
	}
	if l := d.LoopDetection; l.Scope == agent.LoopScopeRun || len(l.Exempt) > 0 {
		n += verbFrame + maxEqualCalls*equalFrame + textsJSONLen(l.Exempt)
	}
	if d.ToolSearch != nil {
		n += verbFrame + textsJSONLen(d.ToolSearch.Always)
	}
	for _, r := range d.Reminders {
		n += verbFrame + jsonLen(r.Text)
	}
	if d.Compaction.Tool != "" {
		n += verbFrame + jsonLen(d.Compaction.Tool)
	}
	names := slices.Collect(maps.Keys(d.Texts)) //workflowcheck:ignore a sum has no order
	for _, name := range names {
		n += jsonLen(name) + jsonLen(d.Texts[name]) + 6
	}
	return n + textsJSONLen(d.StopAfter)
}
