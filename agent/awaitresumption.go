package agent

import "slices"

// offerAwaitResumption adds the tool await_resumption to the tools. It belongs to the
// defaults and not to the run, so a recorded Spec names the tool, and a replay decides
// nothing anew.
func (d *Definition) offerAwaitResumption() {
	offered := d.AwaitResumption != nil && *d.AwaitResumption || d.AwaitResumption == nil && d.loops()
	if offered && d.Model != FlowModel && !slices.Contains(d.Tools, AwaitResumptionTool) {
		d.Tools = append(slices.Clip(d.Tools), AwaitResumptionTool) // Clip: the array is the caller's
	}
}

// loops reports whether the agent works in a loop: its model has something to do between its first
// turn and its answer, or checks look at what it does. Any other agent answers, and is asked again only
// about the form of its answer. The limits must have their defaults.
func (d *Definition) loops() bool {
	if d.Limits.OwnTurns == 1 || d.Limits.Turns == 1 {
		return false
	}
	return len(d.Tools)+len(d.Skills)+len(d.ClientTools)+len(d.Agents) > 0 || d.Notebook != nil ||
		d.Completion == CompletionTool || d.DoneSentinel != "" || d.Daemon != nil || len(d.Checks()) > 0
}

// checkAwaitResumption refuses a definition that both names the tool and turns it off.
func (d Definition) checkAwaitResumption() error {
	if d.AwaitResumption != nil && !*d.AwaitResumption && slices.Contains(d.Tools, AwaitResumptionTool) {
		return Errorf(CodeInvalidInput, "agent %s: tools names await_resumption, and await_resumption: false turns it off; leave one of them out", d.Name).WithPath("await_resumption")
	}
	return nil
}
