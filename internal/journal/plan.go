package journal

import (
	"bytes"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// ForkPlan says which calls a fork at a checkpoint keeps, and which it may repeat.
func ForkPlan(v *store.View, p agent.Checkpoint) agent.ForkPlan {
	plan := agent.ForkPlan{Checkpoint: p, Kept: []agent.SideEffect{}, MayRepeat: []agent.SideEffect{}}
	kept := map[string]bool{}
	for _, e := range effects(store.KnownEvents(v.UpTo(p.Seq()).Events()), 0) {
		kept[agent.IdempotencyKey(e.Run, e.Call)] = true
		plan.Kept = append(plan.Kept, e)
	}
	for _, e := range effects(v.Events(), p.Seq()) {
		if !kept[agent.IdempotencyKey(e.Run, e.Call)] {
			plan.MayRepeat = append(plan.MayRepeat, e)
		}
	}
	return plan
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
			out = append(out, agent.SideEffect{Run: run.Run, Call: e.Call.Call, Tool: e.Call.Tool, Status: e.Call.Status, Time: e.Time})
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
	return !t.ReadOnly && t.Executor != agent.ExecutorRuntime
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
