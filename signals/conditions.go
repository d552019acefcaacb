package signals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// maxConditions bounds what a run waits for at once: listings find it by all of it.
const maxConditions = 8

// DecodeConditions reads conditions strictly, wherever they come from: a start,
// a model's call, a person (catalogue HA-139). No data at all are conditions that
// only a resume meets. Errors are [agent.InvalidInput] with the field's path.
func DecodeConditions(data []byte) (agent.Conditions, error) {
	var c agent.Conditions
	if err := durable.Decode(data, &c, 0); err != nil {
		return c, err
	}
	return TidyConditions(c)
}

// DecodeParking reads what a model says to await_resumption.
func DecodeParking(arguments []byte) (reason string, c agent.Conditions, err *agent.Error) {
	var a struct {
		Reason     string            `json:"reason"`
		Conditions *agent.Conditions `json:"conditions,omitempty"`
	}
	bad := durable.Decode(arguments, &a, 0)
	if bad == nil && a.Reason == "" {
		bad = agent.Errorf(agent.InvalidInput, "reason is missing; say why you wait").At("reason")
	}
	if bad == nil && a.Conditions != nil {
		c, bad = TidyConditions(*a.Conditions)
		bad = within("conditions", bad)
	}
	return strings.TrimSpace(a.Reason), c, durable.Within("not parked", bad)
}

// TidyConditions checks conditions and returns them with their defaults, and
// topics without the blanks around them.
func TidyConditions(c agent.Conditions) (agent.Conditions, error) {
	c.Any = append([]agent.Condition(nil), c.Any...)
	if len(c.Any) > maxConditions {
		return c, agent.Errorf(agent.InvalidInput, "any has %d conditions; at most %d are taken", len(c.Any), maxConditions).At("any")
	}
	own := agent.Condition{At: c.At, After: c.After, Event: c.Event}
	if err := tidy(&own, ""); err != nil {
		return c, err
	}
	c.Event = own.Event
	for i := range c.Any {
		within := fmt.Sprintf("any[%d].", i)
		if c.Any[i].At.IsZero() && c.Any[i].After == 0 && c.Any[i].Event == nil {
			return c, agent.Errorf(agent.InvalidInput, "%s: say at, after or event", within[:len(within)-1]).At(within[:len(within)-1])
		}
		if err := tidy(&c.Any[i], within); err != nil {
			return c, err
		}
	}
	switch c.OnTimeout {
	case "", agent.ResumeWithSummary, agent.TimeoutFails, agent.TimeoutCancels:
		if c.Input != "" {
			return c, agent.Errorf(agent.InvalidInput, "input is for on_timeout resume_with_input").At("input")
		}
	case agent.ResumeWithInput:
		if c.Input == "" {
			return c, agent.Errorf(agent.InvalidInput, "input is missing; on_timeout resume_with_input says it to the model").At("input")
		}
	default:
		return c, agent.Errorf(agent.InvalidInput, "on_timeout must be resume_with_summary, resume_with_input, fail or cancel, not %q", c.OnTimeout).At("on_timeout")
	}
	if c.OnTimeout == "" {
		c.OnTimeout = agent.ResumeWithSummary
	}
	return c, nil
}

func tidy(c *agent.Condition, within string) error {
	if c.After < 0 {
		return agent.Errorf(agent.InvalidInput, "%safter must be positive, not %s", within, c.After).At(within + "after")
	}
	if !c.At.IsZero() && c.After != 0 {
		return agent.Errorf(agent.InvalidInput, "%sat and after are two ways to say one thing; say one", within).At(within + "after")
	}
	if c.Event == nil {
		return nil
	}
	event := *c.Event
	event.Topic = strings.TrimSpace(event.Topic)
	if err := agent.CheckTopic(event.Topic); err != nil {
		return err.At(within + "event.topic")
	}
	if err := checkMatch(event.Match); err != nil {
		return agent.Errorf(agent.InvalidInput, "%sevent.match %w", within, err).At(within + "event.match")
	}
	c.Event = &event
	return nil
}

// checkMatch refuses a schema that can't be used, or that refers to another.
func checkMatch(raw json.RawMessage) error {
	_, read, err := schemaOf(raw)
	switch {
	case refers(read):
		return errors.New("has a $ref, which is not taken here: write out what it stands for")
	case err != nil:
		return fmt.Errorf("is not a JSON Schema: %w", err)
	}
	return nil
}

// schemaOf makes a schema ready for use. read is how it was understood, and there
// where it could be read at all: of {"$Ref":"#"} a reader makes a $ref as well.
func schemaOf(raw json.RawMessage) (resolved *jsonschema.Resolved, read []byte, err error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, nil, err
	}
	if read, err = json.Marshal(schema); err != nil {
		return nil, nil, err
	}
	if why := agent.Endless(read); why != "" {
		return nil, read, errors.New(why)
	}
	resolved, err = schema.Resolve(nil) //workflowcheck:ignore a schema means the same wherever it is read
	return resolved, read, err
}

// refers tells whether a schema refers to another, or to itself: conditions are
// mostly a model's, and to follow a schema that goes round in a circle ends the
// whole process.
func refers(schema json.RawMessage) bool {
	var list []json.RawMessage
	if json.Unmarshal(schema, &list) == nil {
		return slices.ContainsFunc(list, refers)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil {
		return false
	}
	keys := slices.Collect(maps.Keys(object)) //workflowcheck:ignore whether there is one does not depend on the order
	return slices.ContainsFunc(keys, func(key string) bool {
		return key == "$ref" || key == "$dynamicRef" || refers(object[key])
	})
}

// Matches tells whether an event's payload fits a schema; no schema fits every
// payload, and no payload is null.
func Matches(match, payload json.RawMessage) (bool, error) {
	schema, _, err := schemaOf(match)
	if err != nil {
		return false, err
	}
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = json.RawMessage("null")
	}
	var value any
	if err := json.Unmarshal(payload, &value); err != nil {
		return false, err
	}
	fits := schema.Validate(value) == nil //workflowcheck:ignore only whether it fits is looked at
	return fits, nil
}
