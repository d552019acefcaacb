package loop

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// inJSON is the length of all that a call holds.
func (k Call) inJSON() int {
	n := callFrame + inJSON(k.ProviderID) + rawInJSON(k.Arguments) + inJSON(k.Malformed) + inJSON(k.Approver) + allInJSON(k.On) + setInJSON(k.Set)
	if k.Result == nil {
		n += k.edits()
	}
	for _, a := range k.Answers {
		n += answerInJSON(a)
	}
	return n + k.Said
}

// edits is the length of what the result tells of arguments that a person has edited.
func (k Call) edits() int {
	if !k.Edited {
		return 0
	}
	return verbFrame + rawInJSON(k.Arguments)
}

// resultInJSON is the length of a result's text, of which so many bytes are somebody's. In
// the middle of the runtime's words, as JSON within JSON, each takes seven at most.
func resultInJSON(text string, bytes int) int {
	if bytes == len(text) {
		return max(ownWords, inJSON(text))
	}
	return ownWords + 7*bytes
}

func answerInJSON(a agent.ToolAnswer) int {
	return verbFrame + inJSON(a.Text) + rawInJSON(a.Data) + inJSON(a.By) + rawInJSON(a.State)
}

// setInJSON is the length of what a call sets.
func setInJSON(set map[string]json.RawMessage) (n int) {
	keys := slices.Collect(maps.Keys(set)) //workflowcheck:ignore a sum has no order
	for _, k := range keys {
		n += len(`"":,`) + inJSON(k) + rawInJSON(set[k])
	}
	return n
}

// kept is what a call counts: one that is to be made, or is being made, will have a result
// when the run rests and not its arguments. Where a hold keeps it from being made, it rests as
// it is: see overlong.
func (k Call) kept() int {
	if k.State == Done || k.rests() {
		return k.Size
	}
	return callFrame + inJSON(k.ProviderID) + ownWords + k.edits()
}

// rests reports whether a call waits for people, or for what else people are asked.
func (k Call) rests() bool {
	return k.State == Awaiting || k.State == Waiting && k.decided()
}

func (c Calls) kept() (n int) {
	for _, k := range c.List {
		n += k.kept()
	}
	return n
}

// waiting is how much longer than they count the calls are that are yet to be made.
func (c Calls) waiting() (n int) {
	for _, k := range c.List {
		if k.State == Waiting {
			n += k.Size - k.kept()
		}
	}
	return n
}

// inJSON is that of a child.
func (c Child) inJSON() int {
	n := childFrame + len(c.Session) + len(c.Run) + len(c.Agent) + len(c.Call) + len(c.By) + inJSON(c.Task)
	if s := c.Suspension; s != nil {
		n += noteFrame + inJSON(s.ID) + inJSON(s.Kind) + inJSON(s.Initiator) + inJSON(s.Cause) + inJSON(s.Reason) + inJSON(s.Owner)
		for _, r := range s.Requests {
			n += verbFrame + inJSON(r.ID) + inJSON(r.Type) + inJSON(r.Text) + inJSON(r.Tool) + inJSON(r.Digest) + allInJSON(r.Approvers)
		}
	}
	if o := c.Outcome; o != nil {
		n += outcomeFrame + len(o.Session) + len(o.Run) + len(o.Agent) + inJSON(o.Text) + rawInJSON(o.Output)
		if o.Error != nil && o.Error.Message != "" {
			n += maxWhy
		}
	}
	return n
}

// inJSON is that of what the runs above say of this one.
func (p Parent) inJSON() int {
	n := allInJSON(p.Beyond) + rulesInJSON(p.Inherited)
	if b := p.Birth; b != nil {
		n += labelsInJSON(b.Labels)
		n += requestFrame + rulesInJSON(b.Rules) + rawInJSON(b.Output)*2 + len(b.Parent.Session)
		for _, c := range b.Ceilings {
			n += postFrame + allInJSON(c)
		}
	}
	return n
}

func labelsInJSON(labels map[string]string) (n int) {
	names := slices.Sorted(maps.Keys(labels)) //workflowcheck:ignore the order of the map is gone after sorting
	for _, name := range names {
		n += inJSON(name) + inJSON(labels[name]) + 6
	}
	return n
}

func policyInJSON(policy agent.Policy) (n int) {
	for _, p := range policy {
		n += verbFrame + allInJSON(p.Agents) + allInJSON(p.Principals) + labelsInJSON(p.Labels)
		for _, v := range p.Verbs {
			n += inJSON(v) + 3
		}
	}
	return n
}

func rulesInJSON(rules []agent.Rule) (n int) {
	for _, r := range rules {
		n += callFrame/2 + allInJSON(r.Tools) + allInJSON(r.Approvers) + inJSON(r.Reason) + inJSON(r.Default) + rawInJSON(r.Arguments)
	}
	return n
}

// specInJSON is the length of what a state has of a Spec. The names of tools are in it
// twice: those that need no approval any more are kept, too.
func specInJSON(spec agent.Spec) int {
	n := 4*requestFrame + inJSON(spec.Instructions) + inJSON(spec.Description) + inJSON(spec.Model) + allInJSON(spec.Fallbacks) + allInJSON(spec.Unpriced) +
		allInJSON(spec.Tools) + allInJSON(spec.Ceiling) + rulesInJSON(spec.Rules) + inJSON(spec.Nudge) + rawInJSON(spec.Output) + inJSON(spec.Asking.Default) +
		inJSON(spec.Compaction.Instructions) + inJSON(spec.ModelQueue) + policyInJSON(spec.Policy)
	for _, t := range spec.Toolset {
		n += callFrame/4 + 2*inJSON(t.Name) + allInJSON(t.Secrets)
		if t.Ask != nil {
			n += rulesInJSON([]agent.Rule{t.Ask.Rule()})
		}
	}
	for _, a := range spec.Agents {
		n += callFrame/2 + inJSON(a.Description) + allInJSON(a.Tools) + rawInJSON(a.Output)
	}
	for _, one := range spec.Require {
		n += allInJSON(one)
	}
	if spec.Daemon != nil {
		n += requestFrame + allInJSON(spec.Daemon.Topics)
	}
	return n
}
