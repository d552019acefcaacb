package journal

import (
	"bytes"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// ForkPlan says which calls a fork at a checkpoint keeps, and which it may repeat. f says what the
// fork forgets of a flow, and to is its agent.
func ForkPlan(v *store.View, p agent.Checkpoint, f agent.Forked, to string) agent.ForkPlan {
	plan := agent.ForkPlan{Checkpoint: p, Kept: []agent.SideEffect{}, MayRepeat: []agent.SideEffect{}}
	known, again := map[string]bool{}, map[string]bool{}
	at := v.UpTo(p.Seq())
	for _, s := range Steps(at) {
		one := agent.StepPlan{Path: s.Path, Tool: s.Tool, Call: s.Call, Run: s.Run, Status: s.Status, Dropped: s.Dropped, Again: whyAgain(s, f)}
		if at.Spec().Name != to { // its results are another agent's word
			one.Again = agent.AgainAgent
		}
		plan.Steps = append(plan.Steps, one)
		again[agent.IdempotencyKey(s.Run, s.Call)] = one.Again != ""
	}
	for _, e := range effects(store.KnownEvents(at.Events()), 0) {
		key := agent.IdempotencyKey(e.Run, e.Call)
		if known[key] = true; again[key] {
			plan.MayRepeat = append(plan.MayRepeat, e)
			continue
		}
		plan.Kept = append(plan.Kept, e)
	}
	for _, e := range effects(v.Events(), p.Seq()) {
		if !known[agent.IdempotencyKey(e.Run, e.Call)] {
			plan.MayRepeat = append(plan.MayRepeat, e)
		}
	}
	return plan
}

// whyAgain returns why a fork makes a step again; empty if it does not. [agent.Forked.Keeps] decides.
func whyAgain(s agent.StepRecord, f agent.Forked) agent.AgainReason {
	switch {
	case !noResult(s) && f.Keeps(s.Path, s.Tool, s.Status, s.Dropped):
		if f.ReplaceInput { // any step may have other arguments
			return agent.AgainInput
		}
		return ""
	case f.Redoes(s.Path):
		return agent.AgainRedo
	case noResult(s):
		return agent.AgainOpen
	case s.Dropped && s.Status != agent.CallOK:
		return agent.AgainDropped
	case s.Status != agent.CallOK:
		return agent.AgainFailed
	}
	return agent.AgainApproval
}

// effects returns the calls after an event that may have changed something.
func effects(events []agent.Event, after int64) (out []agent.SideEffect) {
	var run agent.Started
	for _, e := range events {
		switch {
		case e.Started != nil:
			run = *e.Started
		case e.Seq <= after:
		case e.Call != nil && (e.Type == agent.EventCallDone || e.Type == agent.EventCallUnknown) && changes(run.Spec, *e.Call):
			out = append(out, agent.SideEffect{Run: run.Run, Call: e.Call.Call, Tool: e.Call.Tool, Step: e.Call.Step, Status: e.Call.Status, Time: e.Time})
		}
	}
	return out
}

// changes reports whether a call may have changed something outside of the run. An
// unknown tool might.
func changes(spec *agent.Spec, c agent.CallUpdate) bool {
	if c.Status == agent.CallRejected || c.Status == agent.CallSkipped {
		return false
	}
	if spec == nil {
		return true
	}
	t, _ := spec.Tool(c.Tool)
	return !t.ReadOnly && (t.Executor != agent.ExecutorRuntime || t.Name == agent.DoTool || t.Name == agent.TemporalTool)
}

// Diff returns the difference between two checkpoints.
func Diff(v *store.View, from, to agent.Checkpoint) agent.CheckpointDiff {
	a, b := v.UpTo(from.Seq()), v.UpTo(to.Seq())
	d := agent.CheckpointDiff{From: from, To: to, Removed: []agent.Message{}, Added: []agent.Message{}}
	old, now := a.Entries(), b.Entries()
	for d.Common < min(len(old), len(now)) && old[d.Common].Seq == now[d.Common].Seq {
		d.Common++
	}
	for _, e := range old[d.Common:] {
		d.Removed = append(d.Removed, e.Message)
	}
	for _, e := range now[d.Common:] {
		d.Added = append(d.Added, e.Message)
	}
	d.State = changed(a.State(), b.State())
	return d
}

func changed(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, v := range b {
		if !bytes.Equal(a[k], v) {
			out[k] = v
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			out[k] = json.RawMessage("null")
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
