package loop

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/amount"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

// Checks is the part that keeps the answer that waits for its checks, and knows which call is a
// check's. A check is a call that the runtime makes, one at a time: holds, limits, a stop and lost
// workers treat it as a call of the model. Three things differ: its events are check.started and
// check.done, no message tells of it, and one that was cut off is made again.
type Checks struct {
	// Proposal is the answer that would complete the run; nil if none waits.
	Proposal *Proposal `json:"proposal,omitempty"`
	// Current is the check whose call is in the list; nil if none is.
	Current *CurrentCheck `json:"current,omitempty"`
	// Made counts the calls of checks of the run. It makes their ids.
	Made int `json:"made,omitempty"`
	// Invocations count verdicts, and Vetoes those that vetoed. A daemon's count is of its task.
	Invocations int `json:"invocations,omitempty"`
	Vetoes      int `json:"vetoes,omitempty"`
	// VetoesBy counts them by the check's index, for checks with a max of their own.
	VetoesBy []int `json:"vetoes_by,omitempty"`
	// AskedBy counts verdicts by the check's index, for judges whose cadence has max_invocations.
	AskedBy []int `json:"asked_by,omitempty"`
	// Asked is what the run was asked, for agents that look at its answer, at most maxCheckedTask bytes of
	// JSON; empty if no agent does. Replied means that the model has replied since: a daemon's next
	// message is another task then.
	Asked   string `json:"asked,omitempty"`
	Replied bool   `json:"replied,omitempty"`
	// Capped means that the run has failed for its vetoes.
	Capped bool `json:"capped,omitempty"`
	// CappedBy is the name of the check whose own max that was.
	CappedBy string `json:"capped_by,omitempty"`
}

// Proposal is an answer that waits until it is checked.
type Proposal struct {
	Reason string `json:"reason"`
	// Call is the id of the call that is the answer; empty for a reply's text.
	Call   string          `json:"call,omitempty"`
	Text   string          `json:"text,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	// Citations are dropped where all is too long to be kept. Files are what the answer gives back.
	Citations []agent.Citation `json:"citations,omitempty"`
	Files     []agent.File     `json:"files,omitempty"`
	// Cut means that what is checked, the text, is not whole.
	Cut bool `json:"cut,omitempty"`
	// Next is the index of the check that is made next. Skip has the bit of each check that a check
	// before it has skipped.
	Next int `json:"next,omitempty"`
	Skip int `json:"skip,omitempty"`
	// Size is how long the proposal is in JSON at most.
	Size int `json:"size,omitempty"`
}

// CurrentCheck is the check whose call is in the list.
type CurrentCheck struct {
	Call  string           `json:"call"`
	Point agent.CheckPoint `json:"point"`
	Index int              `json:"index,omitempty"`
	Since time.Time        `json:"since,omitzero"`
	// Model, Usage and Cost are what a judge has used.
	Model string      `json:"model,omitempty"`
	Usage agent.Usage `json:"usage,omitzero"`
	Cost  agent.USD   `json:"cost_usd,omitempty"`
	// Verdict is what the call came to; nil if it was not finished. Failed says why the check could
	// not be made.
	Verdict *agent.Verdict `json:"verdict,omitempty"`
	// Decision is what a hook of a turn came to.
	Decision *agent.TurnDecision `json:"decision,omitempty"`
	Failed   string              `json:"failed,omitempty"`
}

// proposalShare bounds a proposal in the state, in bytes of JSON. It shares the space of what waits.
const proposalShare = 384 << 10

// maxCheckedTask bounds what a verifying agent sees of the task, in bytes of JSON. A judge sees as much.
const maxCheckedTask = 16 << 10

// checkFrame is what a check's call takes in the state, as Call.keptSize counts it. A proposal
// reserves that space: a check that found none would be made again without end.
const checkFrame = callFrame + ownWords

func (k Checks) clone() Checks {
	k.Proposal, k.Current, k.VetoesBy, k.AskedBy = copied(k.Proposal), copied(k.Current), slices.Clone(k.VetoesBy), slices.Clone(k.AskedBy)
	return k
}

// size returns how much of the space of what waits the part takes. A check's call that is in the
// list is counted there.
func (k Checks) size() (n int) {
	if k.Asked != "" {
		n = maxCheckedTask
	}
	switch {
	case k.Proposal == nil:
		return n
	case k.Current != nil:
		return n + k.Proposal.Size
	}
	return n + k.Proposal.Size + checkFrame
}

// ask keeps what the run is asked. A daemon's next task replaces the last one.
func (k *Checks) ask(text string, daemon bool) {
	if k.Asked != "" && !(daemon && k.Replied) {
		text = k.Asked + "\n\n" + text
	}
	k.Asked, k.Replied = fit(text, maxCheckedTask), false
}

func (k *Checks) replied() { k.Replied = k.Asked != "" }

// has reports whether a call is the one of the current check.
func (k Checks) has(call string) bool { return k.Current != nil && k.Current.Call == call }

// propose keeps an answer within a size. What is too long loses its citations, and then the end of its text: the log
// has both whole. It reports false for an output that is too long by itself.
func (k *Checks) propose(p Proposal, most int) bool {
	if p.Size = proposalJSONLen(p); p.Size > most {
		p.Citations = nil // they may be about what is cut
		if p.Size = proposalJSONLen(p); p.Size > most && !p.cutText(most) {
			return false
		}
	}
	k.Proposal = &p
	return true
}

// cutText cuts the text to what a size has space for. It reports false for an output that is too long by itself.
func (p *Proposal) cutText(most int) bool {
	text := p.Text
	p.Text = ""
	p.Size = proposalJSONLen(*p)
	if len(p.Output) > 0 && p.Size+ownWords > most { // the output says it all
		return p.Size <= most
	}
	p.Cut = len(p.Output) == 0
	least := p.Size + ownWords // with the mark of the cut
	p.Text, p.Size = excerpt.Of(text, bytesWithin(text, max(0, most-least)), len(text)), max(most, least)
	return true
}

// fill sets the answer of an outcome.
func (p Proposal) fill(o *agent.Outcome) {
	o.Text, o.Citations, o.Output, o.Files = p.Text, p.Citations, p.Output, p.Files
}

// dropProposal forgets the answer that waits.
func (k *Checks) dropProposal() { k.Proposal = nil }

// next counts a check that is about to be made, and returns its number.
func (k *Checks) next() int {
	k.Made++
	return k.Made
}

func (k *Checks) begin(c CurrentCheck)    { k.Current = &c }
func (k *Checks) started(at time.Time)    { k.Current.Since = at }
func (k *Checks) failed(why string)       { k.Current.Failed = why }
func (k *Checks) decide(v *agent.Verdict) { k.Current.Verdict = v }

// decideTurn sets what a hook of a turn came to.
func (k *Checks) decideTurn(d *agent.TurnDecision) { k.Current.Decision = d }

// used adds what an attempt of a judge has used.
func (k *Checks) used(c agent.Charge) {
	k.Current.Model = firstOf(c.Model, k.Current.Model)
	k.Current.Usage, k.Current.Cost = k.Current.Usage.Add(c.Usage), amount.Add(k.Current.Cost, c.Cost)
}

// end ends the current check and returns it.
func (k *Checks) end() CurrentCheck {
	was := *k.Current
	k.Current = nil
	return was
}

// accepted counts an acceptance, and reports whether it was the last of n checks.
func (k *Checks) accepted(n int) (all bool) {
	k.judged()
	return k.passed(n)
}

// passed goes on to the next check of the answer, and reports whether there is none of n checks left.
func (k *Checks) passed(n int) (all bool) {
	k.Proposal.Next++
	return k.Proposal.Next >= n
}

// judged counts a verdict.
func (k *Checks) judged() { k.Invocations++ }

// asked counts a verdict of a judge whose number of verdicts is bounded.
func (k *Checks) asked(index int) {
	k.AskedBy = append(k.AskedBy, make([]int, max(0, index+1-len(k.AskedBy)))...)
	k.AskedBy[index]++
}

// skipLater skips checks of the answer, by their bits.
func (k *Checks) skipLater(bits int) { k.Proposal.Skip |= bits }

// vetoed counts a veto, and reports whether it was one too many of all checks.
func (k *Checks) vetoed(most int) (capped bool) {
	k.Invocations, k.Vetoes, k.Proposal = k.Invocations+1, k.Vetoes+1, nil
	k.Capped = most > 0 && k.Vetoes >= most
	return k.Capped
}

// vetoedBy counts a veto of a check with a max of its own, and reports whether it was one too many.
func (k *Checks) vetoedBy(index int, c agent.Check) (capped bool) {
	k.VetoesBy = append(k.VetoesBy, make([]int, max(0, index+1-len(k.VetoesBy)))...)
	if k.VetoesBy[index]++; k.VetoesBy[index] >= c.Max {
		k.Capped, k.CappedBy = true, c.Name
	}
	return k.CappedBy != ""
}

// newTask forgets the counts: a daemon's next task has vetoes of its own.
func (k *Checks) newTask() { k.Invocations, k.Vetoes, k.VetoesBy, k.AskedBy = 0, 0, nil, nil }

// recount computes the size again, for an imported state.
func (k *Checks) recount() {
	k.Asked = fit(k.Asked, maxCheckedTask)
	if k.Proposal != nil {
		p := *k.Proposal
		p.Size = proposalJSONLen(p)
		k.Proposal = &p
	}
}

// proposalJSONLen returns the greatest length of a proposal in JSON.
func proposalJSONLen(p Proposal) int {
	return verbFrame + jsonLen(p.Call) + jsonLen(p.Text) + rawJSONLen(p.Output) + citationsJSONLen(p.Citations) + filesJSONLen(p.Files)
}

func citationsJSONLen(list []agent.Citation) (n int) {
	const frame = 128 // numbers, and the names of the fields
	for _, c := range list {
		n += frame + jsonLen(c.URL) + jsonLen(c.Title) + jsonLen(c.File) + jsonLen(c.Unit) + jsonLen(c.Text)
	}
	return n
}
