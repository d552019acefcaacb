package journal

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Runs returns a log's runs in their order.
func Runs(events []agent.Event) (runs []agent.RunRecord) {
	for _, e := range events {
		if e.Started != nil {
			turns := 0
			if n := len(runs); n > 0 && e.Started.Imported != nil && !runs[n-1].Status.Ended() {
				was := &runs[n-1] // it continues as the imported run; its end is recorded where it was exported
				was.Status, was.Reason, was.Ended = agent.StatusCancelled, agent.ReasonExported, e.Time
				turns = was.Turns
			}
			runs = append(runs, agent.RunRecord{
				Turns: turns, Run: e.Started.Run, Agent: name(e.Started.Spec), By: e.Started.By, Carry: e.Started.Carry, Status: agent.StatusRunning, First: e.Seq, Started: e.Time,
			})
		}
		if len(runs) == 0 {
			continue
		}
		r := &runs[len(runs)-1]
		r.Last = e.Seq
		switch {
		case e.Forked != nil:
			r.Forked = e.Forked
		case e.Type == agent.EventTurnStarted:
			r.Turns++
		case e.Snapshot != nil:
			r.Usage, r.Cost = e.Snapshot.Usage, e.Snapshot.Cost
		case e.Type == agent.EventRunSuspended:
			r.Status = agent.StatusSuspended
		case e.Type == agent.EventRunResumed:
			r.Status = agent.StatusRunning
		case e.Outcome != nil:
			r.Status, r.Reason, r.Turns, r.Usage, r.Cost, r.Ended = e.Outcome.Status, e.Outcome.Reason, e.Outcome.Turns, e.Outcome.Usage, e.Outcome.Cost, e.Time
		}
	}
	return runs
}

// Run returns a run by its id, or by at least 8 first characters of it; the last run if
// said is empty.
func Run(events []agent.Event, said string) (agent.RunRecord, error) {
	runs := Runs(events)
	if len(runs) == 0 {
		return agent.RunRecord{}, agent.Errorf(agent.CodeNotFound, "no run of the session has begun, so its log is empty; start a new run of it").WithPath("run")
	}
	if said == "" {
		return runs[len(runs)-1], nil
	}
	for _, r := range runs {
		if wire.MatchesRunID(said, r.Run) {
			return r, nil
		}
	}
	return agent.RunRecord{}, agent.Errorf(agent.CodeNotFound, "the session's log has no run %s; see fermata runs", said).WithPath("run")
}
