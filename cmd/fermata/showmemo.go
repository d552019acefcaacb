package main

import (
	"encoding/json"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
)

// statusFromMemo returns what Temporal itself knows of a run.
func statusFromMemo(run *fermata.Run, info *workflowpb.WorkflowExecutionInfo, memo agent.Memo) agent.RunStatus {
	fields := info.GetSearchAttributes().GetIndexedFields()
	s := agent.RunStatus{
		// A search attribute is JSON: the quotes are not part of the name.
		V: agent.Version, Session: run.Session, Run: run.ID, Agent: strings.Trim(string(fields[agent.AttrAgent].GetData()), `"`),
		Status: memo.Status, Reason: memo.Reason, Since: memo.Since, Turn: memo.Turn, Turns: memo.Turns, Cost: memo.Cost, Labels: memo.Labels, InFlight: []agent.InFlight{},
	}
	requests := memoRequests(run, s.Agent, memo)
	if memo.Status != agent.StatusSuspended {
		s.Requests = requests
		return s
	}
	// The memo has one reason; for a suspended run it belongs to the suspension.
	s.Reason, s.Suspension = "", &agent.Suspension{ID: memo.Suspension, Reason: memo.Reason, Turn: memo.Turn, Since: memo.Since, Requests: requests}
	var waits []string
	if json.Unmarshal(fields[agent.AttrWaitsFor].GetData(), &waits) == nil && len(waits) > 0 {
		s.Suspension.Kind = agent.SuspensionKind(waits[0])
	}
	return s
}

// memoRequests returns the open requests of a run, as far as Temporal knows them.
func memoRequests(run *fermata.Run, name string, memo agent.Memo) (all []agent.Request) {
	for _, q := range memo.Requests {
		all = append(all, agent.Request{
			ID: q.ID, Type: q.Type, Session: run.Session, Run: run.ID, Suspension: memo.Suspension, Agent: name, Step: q.Step, Text: q.Text,
			Choices: q.Choices, Digest: q.Digest, Approvers: q.Approvers, Opened: q.Opened, Deadline: q.Deadline, Default: q.Default,
		})
	}
	return all
}

// statusFromOutcome returns the status of an ended run. The outcome does not say which number its last turn
// has in the log; the memo does, while Temporal keeps it.
func statusFromOutcome(o *agent.Outcome, memo agent.Memo) agent.RunStatus {
	return agent.RunStatus{
		V: agent.Version, Session: o.Session, Run: o.Run, Agent: o.Agent, Status: o.Status, Reason: o.Reason, Since: o.Ended,
		Turn: max(o.Turns, memo.Turn), Turns: o.Turns, Usage: o.Usage, Cost: o.Cost, Tree: o.Tree, Seq: o.Seq, InFlight: []agent.InFlight{},
	}
}
