package journal

import (
	"bytes"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// PlanOf says what beginning anew from a point means for what was done.
func PlanOf(v *store.View, p agent.Point) agent.Plan {
	plan := agent.Plan{Point: p, Kept: []agent.Effected{}, Again: []agent.Effected{}}
	kept := map[string]bool{}
	for _, e := range effects(store.Lineage(v.UpTo(p.Seq()).Events()), 0) {
		kept[agent.IdempotencyKey(e.Run, e.Call)] = true
		plan.Kept = append(plan.Kept, e)
	}
	for _, e := range effects(v.Events(), p.Seq()) {
		if !kept[agent.IdempotencyKey(e.Run, e.Call)] {
			plan.Again = append(plan.Again, e)
		}
	}
	return plan
}

// effects lists the calls after an event that may have changed something.
func effects(events []agent.Event, after int64) (out []agent.Effected) {
	var run agent.Started
	for _, e := range events {
		switch {
		case e.Started != nil:
			run = *e.Started
		case e.Seq <= after:
		case e.Call != nil && (e.Type == agent.CallDone || e.Type == agent.CallLost) && changes(run.Spec, *e.Call):
			out = append(out, agent.Effected{Run: run.Run, Call: e.Call.Call, Tool: e.Call.Tool, Status: e.Call.Status, Time: e.Time})
		}
	}
	return out
}

// changes reports whether a call may have changed something outside of the run. A
// tool that the Spec does not know might.
func changes(spec *agent.Spec, c agent.CallNote) bool {
	if c.Status == agent.CallRejected || c.Status == agent.CallSkipped {
		return false
	}
	if spec == nil {
		return true
	}
	t, _ := spec.Tool(c.Tool)
	return !t.ReadOnly && t.By != agent.ByRuntime
}

// Diff says what lies between two points.
func Diff(v *store.View, from, to agent.Point) agent.Difference {
	a, b := v.UpTo(from.Seq()), v.UpTo(to.Seq())
	d := agent.Difference{From: from, To: to, Gone: []agent.Message{}, Came: []agent.Message{}}
	old, now := a.Entries(), b.Entries()
	for d.Common < min(len(old), len(now)) && old[d.Common].Seq == now[d.Common].Seq {
		d.Common++
	}
	for _, e := range old[d.Common:] {
		d.Gone = append(d.Gone, e.Message)
	}
	for _, e := range now[d.Common:] {
		d.Came = append(d.Came, e.Message)
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
