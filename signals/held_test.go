package signals

import (
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// held are the payloads of runs that are held, asked and stopped, one of each shape.
func held() map[string]any {
	return map[string]any{
		"ack": agent.Ack{V: 1, Session: "trip-42", Run: "01a1", Status: agent.StatusSuspending, Suspension: "s-14", Seq: 118, Effect: agent.EffectAccepted,
			Hold: &agent.AckHold{Kind: agent.SuspensionHeld, Initiator: agent.InitiatorOperator, Verb: agent.VerbPause, By: "ana@acme.com", Reason: "the bank is down", Since: at}},
		"suspension": suspension(),
		"status-suspended": agent.RunStatus{
			V: 1, Session: "trip-42/pay-1", Run: "01a2", Agent: "payer", Status: agent.StatusSuspended, Since: at, Turn: 4, InFlight: []agent.InFlight{},
			Suspension: suspension(), Children: agent.ChildCounts{Suspended: 2, Ended: 1}, Queued: 1, Kept: &agent.Kept{Messages: []agent.KeptMessage{{By: "ana@acme.com", Text: "Also look at trains."}}, Calls: []agent.KeptCall{{Call: "t4.2", Tool: "pay", Decided: true}}}, Usage: agent.Usage{Input: 10, Output: 5}, Cost: 412_300, Build: "v0.3.1", Seq: 118,
			Refused: []agent.RefusedVerb{{Verb: "interupt", How: "signal", At: at, Error: &agent.Error{Code: agent.CodeInvalidInput, Message: "interupt refused: no verb of that name is known; the verbs are …"}}},
		},
		"memo-requests": agent.Memo{
			V: 1, Run: "01a2", Task: "Pay invoice 118", Status: agent.StatusSuspended, Reason: "approval", Since: at, Turn: 4, Cost: 412_300, Suspension: "s-3",
			Requests: []agent.MemoRequest{
				{ID: "q-7", Type: agent.RequestApproval, Text: "Run pay?", Tool: "pay", Digest: "9f2c41aa03b1c2d4", Approvers: []string{"ana@acme.com"}, Opened: at, Deadline: at.Add(time.Hour), Default: agent.DefaultApprove, Reminded: true},
				{ID: "q-8", Type: agent.RequestQuestion, Text: "Where to?", Choices: []string{"Rome", "Oslo"}, Opened: at},
			},
		},
		"handoff": handoff(),
		"outcome-stopped": agent.Outcome{
			V: 1, Type: "outcome", Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.StatusStopped, Reason: "budget meeting", By: "ana@acme.com", Text: "Two flights found.", Handoff: handoff(),
			Turns: 12, Usage: agent.Usage{Input: 1200, Output: 300}, Cost: 412_300, Started: at, Ended: at.Add(72 * time.Hour), SuspendedFor: agent.Duration(71*time.Hour + 2*time.Minute), Seq: 140,
		},
	}
}

// suspension is that of a run which asks for an approval and is held besides.
func suspension() *agent.Suspension {
	return &agent.Suspension{
		ID: "s-3", Kind: agent.SuspensionInputRequired, Initiator: agent.InitiatorPolicy, Cause: "approval", Reason: "amount over 500", Turn: 4, Checkpoint: "cp-31-95279a", Since: at, Expires: at.Add(time.Hour),
		Requests: []agent.Request{approval()},
		Holds:    []agent.Hold{{ID: "h-3", From: agent.HoldInherited, Session: "trip-42", Initiator: agent.InitiatorParent, Verb: agent.VerbInterrupt, By: "ana@acme.com", Reason: "the client rings", At: at}},
	}
}

func approval() agent.Request {
	return agent.Request{
		ID: "q-7", Type: agent.RequestApproval, Session: "trip-42/pay-1", Run: "01a2", Suspension: "s-3", Agent: "payer", Text: "Run pay?", Context: "It is the second try.",
		Call: &agent.RequestCall{ID: "t4.1", Tool: "pay", Arguments: json.RawMessage(`{"amount_eur":800}`)}, Digest: "9f2c41aa03b1c2d4", Confirm: agent.ConfirmDigest,
		Approvers: []string{"ana@acme.com"}, Opened: at, Deadline: at.Add(time.Hour), RemindAt: at.Add(time.Minute), Default: agent.DefaultReject,
	}
}

func handoff() *agent.Handoff {
	return &agent.Handoff{
		V: 1, Session: "trip-42", Run: "01a1", Agent: "lead", Status: agent.StatusStopped, Task: "Plan a trip", Reason: "budget meeting", Summary: "Two flights found, none is booked.",
		Done: []agent.WorkItem{{What: "found flights", Ref: "flights.md", By: "trip-42/look-1"}}, InFlight: []agent.WorkItem{{What: "compare hotels"}},
		NotStarted: []agent.WorkItem{{What: "book"}}, Failed: []agent.WorkItem{{What: "rent a car", Ref: "t9.1"}}, OpenQuestions: []string{"Window or aisle?"}, Requests: []agent.Request{approval()},
		UnknownEffects: []agent.UnknownEffect{{Call: "t11.1", Tool: "pay", Key: "01a1/t11.1", Since: "2026-11-21T08:00:00Z"}},
		Evidence:       []agent.Evidence{{Kind: "file", Ref: "flights.md", Note: "prices of today"}}, Decisions: []string{"no night flights"},
		Usage: agent.Usage{Input: 1200, Output: 300}, Cost: 412_300, Remaining: agent.Remaining{Turns: 28, Tokens: 98_500, Cost: agent.Dollar}, Confidence: 0.8, ConfidenceBy: agent.SummarizedByModel, SummarizedBy: agent.SummarizedByModel,
		Children: []agent.Handoff{{
			V: 1, Session: "trip-42/look-1", Run: "01a3", Agent: "look", Status: agent.StatusCompleted, Task: "Find flights", Reason: agent.ReasonDone, Summary: "Two.", Confidence: 1, ConfidenceBy: agent.SummarizedByModel, SummarizedBy: agent.SummarizedByRule,
		}},
	}
}

func conditions() *agent.Conditions {
	return &agent.Conditions{
		Any:       []agent.Condition{{After: agent.Duration(168 * time.Hour)}, {At: at}, {Event: &agent.EventCondition{Topic: "orders.paid", Match: json.RawMessage(`{"required":["order"]}`)}}},
		OnTimeout: agent.OnTimeoutResumeWithInput, Input: "Nobody has paid.",
	}
}

// verbs are what one says to a live run, one of each, with every field.
func verbs() map[string]agent.Command {
	order := agent.CommandHeader{ID: "v-1", By: "ana@acme.com", Run: "01a1", Meta: json.RawMessage(`{"ticket":"T-9"}`)}
	proved := order
	proved.Token = "v1.k1.1763712000.AAAAAAAAAAA.YW5h.signature"
	choice := 0
	return map[string]agent.Command{
		"verb-pause":     agent.PauseCommand{CommandHeader: proved, Reason: "lunch"},
		"verb-interrupt": agent.InterruptCommand{CommandHeader: order, Reason: "the client rings", Grace: agent.Duration(2 * time.Second)},
		"verb-resume":    agent.ResumeCommand{CommandHeader: order, Suspension: "s-14", Message: "Go on with Rome.", FromSummary: true, Refresh: true},
		"verb-stop":      agent.StopCommand{CommandHeader: order, Reason: "budget meeting", Deadline: agent.Duration(30 * time.Second)},
		"verb-cancel":    agent.CancelCommand{CommandHeader: order, Reason: "wrong client"},
		"verb-send":      agent.SendCommand{CommandHeader: order, Text: "Also look at trains.", Parts: []agent.Part{{Type: agent.PartText, Text: "And at ships."}}, Mode: agent.SendQueue},
		"verb-answer":    agent.AnswerCommand{CommandHeader: proved, Request: "q-7", Data: json.RawMessage(`{"rows":[1,null,""]}`)},
		"verb-approve":   agent.ApproveCommand{CommandHeader: proved, Request: "q-7", Arguments: json.RawMessage(`{"amount_eur":500}`), Always: true, AlwaysInSession: true, Digest: "9f2c41aa03b1c2d4", Note: "no more than 500"},
		"verb-reject":    agent.RejectCommand{CommandHeader: proved, Request: "q-7", Reason: "too much"},
		"verb-answers": agent.AnswersCommand{CommandHeader: order, Answers: []agent.AnswerTo{
			{Request: "q-7", Approve: &agent.ApproveCommand{Request: "q-7"}}, {Request: "q-8", Answer: &agent.AnswerCommand{Request: "q-8", Choice: &choice}},
			{Request: "q-9", Reject: &agent.RejectCommand{Request: "q-9", Reason: "too much"}},
		}},
		"verb-emit": agent.EmitCommand{CommandHeader: order, Topic: "orders.paid", Payload: json.RawMessage(`{"order":42}`)},
	}
}
