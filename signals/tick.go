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

// TickType is the type of the workflow by which a schedule speaks to a session.
const TickType = "fermata.tick"

// DecodeTick reads that workflow's input strictly. Its errors are
// [agent.InvalidInput], [agent.TooLarge] and [agent.Incompatible], with the path of
// the field.
func DecodeTick(data []byte) (agent.Tick, *agent.Error) {
	var t agent.Tick
	err := durable.Decode(data, &t, agent.MaxPayload)
	if err == nil {
		err = CheckTick(t)
	}
	return t, durable.Within("tick refused", err)
}

// CheckTick refuses a tick that can't be meant, or that no run would take: what it
// says is held to the bounds of the verb that says it.
func CheckTick(t agent.Tick) error {
	if t.V > agent.Version {
		return agent.Errorf(agent.Incompatible, "v is %d; this build reads up to %d", t.V, agent.Version).At("v")
	}
	if err := agent.CheckSession(t.Session); err != nil {
		return err
	}
	if err := agent.CheckName(t.Agent); err != nil {
		return err
	}
	switch {
	case len(t.By) > maxBy:
		return agent.Errorf(agent.InvalidInput, "by has %d characters; at most %d are taken", len(t.By), maxBy).At("by")
	case (t.Text == "") == (t.Topic == ""):
		return agent.Errorf(agent.InvalidInput, "one of text and topic is wanted").At("text")
	case t.Topic == "" && len(t.Payload) > 0:
		return agent.Errorf(agent.InvalidInput, "payload is an event's; say its topic").At("payload")
	}
	order := TickOrder(t, strings.Repeat("i", agent.MaxIDLength))
	raw, err := json.Marshal(order)
	if err != nil {
		return agent.Errorf(agent.InvalidInput, "payload is not JSON: %w", err).At("payload")
	}
	_, err = reader{math.MaxInt}.decode(order.Verb(), raw)
	return err
}

// TickOrder is what a tick says to its session, under an id.
func TickOrder(t agent.Tick, id string) agent.Command {
	o := agent.Order{ID: id, By: t.By}
	if t.Topic == "" {
		return agent.SendOrder{Order: o, Text: t.Text}
	}
	return agent.EmitOrder{Order: o, Topic: t.Topic, Payload: t.Payload}
}

// StartOptions are those of every start of a run, from wherever it is started.
func StartOptions(session, taskQueue string, start agent.Start, now time.Time) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: session, TaskQueue: taskQueue, StaticSummary: start.Agent, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: temporal.NewSearchAttributes(Attributes(start.Agent, agent.Pending, now)...),
		Memo:                  map[string]any{agent.MemoKey: agent.Memo{V: agent.Version, Task: start.Input.Task(), Status: agent.Pending, Since: now.UTC(), Labels: start.Labels}},
	}
}
