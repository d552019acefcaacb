package loop

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// jsonLen is the length of all that a call holds.
func (k Call) jsonLen() int {
	n := callFrame + jsonLen(k.ProviderID) + rawJSONLen(k.Arguments) + jsonLen(k.Malformed) + jsonLen(k.Approver) + textsJSONLen(k.Children) + changesJSONLen(k.StateChanges)
	if k.Result == nil {
		n += k.edits()
	}
	for _, a := range k.Answers {
		n += answerJSONLen(a)
	}
	return n + k.ResultSize
}

// edits is the length of what the result tells of arguments that a person has edited.
func (k Call) edits() int {
	if !k.Edited {
		return 0
	}
	return verbFrame + rawJSONLen(k.Arguments)
}

// resultJSONLen is the length of a result's text, of which so many bytes are somebody's. In
// the middle of the runtime's words, as JSON within JSON, each takes seven at most.
func resultJSONLen(text string, bytes int) int {
	if bytes == len(text) {
		return max(ownWords, jsonLen(text))
	}
	return ownWords + 7*bytes
}

func answerJSONLen(a agent.ToolAnswer) int {
	return verbFrame + jsonLen(a.Text) + rawJSONLen(a.Data) + jsonLen(a.By) + rawJSONLen(a.State)
}

// changesJSONLen is the length of what a call sets.
func changesJSONLen(set map[string]json.RawMessage) (n int) {
	keys := slices.Collect(maps.Keys(set)) //workflowcheck:ignore a sum has no order
	for _, k := range keys {
		n += len(`"":,`) + jsonLen(k) + rawJSONLen(set[k])
	}
	return n
}

// keptSize is what a call counts: one that is to be made, or is being made, will have a result
// when the run rests and not its arguments. Where a hold keeps it from being made, it rests as
// it is: see overlong.
func (k Call) keptSize() int {
	if k.State == CallDone || k.awaitsPeople() {
		return k.Size
	}
	return callFrame + jsonLen(k.ProviderID) + ownWords + k.edits()
}

// awaitsPeople reports whether a call waits for people, or for what else people are asked.
func (k Call) awaitsPeople() bool {
	return k.State == CallAwaitingAnswer || k.State == CallPending && k.hasDecision()
}

func (c Calls) keptSize() (n int) {
	for _, k := range c.List {
		n += k.keptSize()
	}
	return n
}

// pendingSize is how much longer than they count the calls are that are yet to be made.
func (c Calls) pendingSize() (n int) {
	for _, k := range c.List {
		if k.State == CallPending {
			n += k.Size - k.keptSize()
		}
	}
	return n
}

// jsonLen is that of a child.
func (c Child) jsonLen() int {
	n := childFrame + len(c.Session) + len(c.Run) + len(c.Agent) + len(c.Call) + len(c.StartedBy) + jsonLen(c.Task)
	if s := c.Suspension; s != nil {
		n += noteFrame + jsonLen(s.ID) + jsonLen(s.Kind) + jsonLen(s.Initiator) + jsonLen(s.Cause) + jsonLen(s.Reason) + jsonLen(s.Owner)
		for _, r := range s.Requests {
			n += verbFrame + jsonLen(r.ID) + jsonLen(r.Type) + jsonLen(r.Text) + jsonLen(r.Tool) + jsonLen(r.Digest) + textsJSONLen(r.Approvers)
		}
	}
	if o := c.Outcome; o != nil {
		n += outcomeFrame + len(o.Session) + len(o.Run) + len(o.Agent) + jsonLen(o.Text) + rawJSONLen(o.Output)
		if o.Error != nil && o.Error.Message != "" {
			n += maxWhy
		}
	}
	return n
}

// jsonLen is that of what the runs above say of this one.
func (p Parent) jsonLen() int {
	n := textsJSONLen(p.ForbiddenTools) + rulesJSONLen(p.InheritedRules)
	if b := p.Start; b != nil {
		n += labelsJSONLen(b.Labels)
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

// specJSONLen is the length of what a state has of a Spec. The names of tools are in it
// twice: those that need no approval any more are kept, too.
func specJSONLen(spec agent.Spec) int {
	n := 4*requestFrame + jsonLen(spec.Instructions) + jsonLen(spec.Description) + jsonLen(spec.Model) + textsJSONLen(spec.Fallbacks) + textsJSONLen(spec.Unpriced) +
		textsJSONLen(spec.Tools) + textsJSONLen(spec.Ceiling) + rulesJSONLen(spec.Rules) + jsonLen(spec.Nudge) + rawJSONLen(spec.Output) + jsonLen(spec.AnswerTimeouts.Default) +
		jsonLen(spec.Compaction.Instructions) + jsonLen(spec.ModelQueue) + policyJSONLen(spec.Policy)
	for _, t := range spec.Toolset {
		n += callFrame/4 + 2*jsonLen(t.Name) + textsJSONLen(t.Secrets)
		if t.Approval != nil {
			n += rulesJSONLen([]agent.Rule{t.Approval.Rule()})
		}
	}
	for _, a := range spec.Agents {
		n += callFrame/2 + jsonLen(a.Description) + textsJSONLen(a.Tools) + rawJSONLen(a.Output)
	}
	for _, one := range spec.Require {
		n += textsJSONLen(one)
	}
	if spec.Daemon != nil {
		n += requestFrame + textsJSONLen(spec.Daemon.Topics)
	}
	return n
}
