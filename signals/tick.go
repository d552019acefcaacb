package signals

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// TickType is the type of the workflow that a schedule starts to send to a session.
const TickType = "fermata.tick"

// DecodeTick decodes the input of that workflow strictly. Its errors are
// [agent.CodeInvalidInput], [agent.CodeTooLarge] and [agent.CodeIncompatible], with the
// path of the field.
func DecodeTick(data []byte) (agent.Tick, *agent.Error) {
	var t agent.Tick
	err := durable.Decode(data, &t, agent.MaxPayload)
	if err == nil {
		err = CheckTick(t)
	}
	return t, durable.Within("tick refused", err)
}

// CheckTick refuses an invalid tick, and one whose message or event no run would take: it
// must be valid for its verb.
func CheckTick(t agent.Tick) error {
	if t.V > agent.Version {
		return agent.Errorf(agent.CodeIncompatible, "v is %d; this build reads up to %d", t.V, agent.Version).WithPath("v")
	}
	if err := agent.CheckSession(t.Session); err != nil {
		return err
	}
	if err := agent.CheckName(t.Agent); err != nil {
		return err
	}
	switch {
	case len(t.By) > maxBy:
		return agent.Errorf(agent.CodeInvalidInput, "by has %d characters; at most %d are taken", len(t.By), maxBy).WithPath("by")
	case (t.Text == "") == (t.Topic == ""):
		return agent.Errorf(agent.CodeInvalidInput, "set exactly one of text and topic").WithPath("text")
	case t.Topic == "" && len(t.Payload) > 0:
		return agent.Errorf(agent.CodeInvalidInput, "payload is an event's; say its topic").WithPath("payload")
	}
	// With the longest id, so that the command fits with any.
	order := TickCommand(t, strings.Repeat("i", agent.MaxIDLength))
	raw, err := json.Marshal(order)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "payload is not JSON: %w", err).WithPath("payload")
	}
	_, err = reader{math.MaxInt}.decode(order.Verb(), raw)
	return err
}

// TickCommand returns the command that a tick sends to its session.
func TickCommand(t agent.Tick, id string) agent.Command {
	o := agent.CommandHeader{ID: id, By: t.By}
	if t.Topic == "" {
		return agent.SendCommand{CommandHeader: o, Text: t.Text}
	}
	return agent.EmitCommand{CommandHeader: o, Topic: t.Topic, Payload: t.Payload}
}

// StartOptions returns the options of every start of a run, whoever starts it.
func StartOptions(session, taskQueue string, start agent.Start, now time.Time) client.StartWorkflowOptions {
	// All runs of a session have one workflow id, however the last one ended.
	return client.StartWorkflowOptions{
		ID: session, TaskQueue: taskQueue, StaticSummary: start.Agent, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(Attributes(start.Agent, agent.StatusPending, now)...),
		Memo:                  map[string]any{agent.MemoKey: agent.Memo{V: agent.Version, Task: start.Input.Task(), Status: agent.StatusPending, Since: now.UTC(), Labels: start.Labels}},
	}
}
