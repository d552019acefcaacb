package signals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/match"
	"github.com/fermata-agents/fermata/internal/schemacost"
)

// maxConditions limits what a run waits for at once: its search attribute has all of it.
const maxConditions = 8

// DecodeConditions decodes conditions strictly, from a start, a model's call or a person.
// No data gives conditions that only a resume meets. Errors are [agent.CodeInvalidInput]
// with the field's path.
func DecodeConditions(data []byte) (agent.Conditions, error) {
	var c agent.Conditions
	if err := durable.Decode(data, &c, 0); err != nil {
		return c, err
	}
	return completed(c)
}

// DecodeParkRequest decodes the arguments of await_resumption.
func DecodeParkRequest(arguments []byte) (reason string, c agent.Conditions, err *agent.Error) {
	var a struct {
		Reason     string            `json:"reason"`
		Conditions *agent.Conditions `json:"conditions,omitempty"`
	}
	bad := durable.Decode(arguments, &a, 0)
	if bad == nil && a.Reason == "" {
		bad = agent.Errorf(agent.CodeInvalidInput, "reason is missing; say why you wait").WithPath("reason")
	}
	if bad == nil && a.Conditions != nil {
		if c, bad = completed(*a.Conditions); bad == nil {
			bad = checkModels(c)
		}
		bad = within("conditions", bad)
	}
	return strings.TrimSpace(a.Reason), c, durable.Within("not parked", bad)
}

// checkModels refuses long schemas that a model wrote: a run matches each event against
// all of them.
func checkModels(c agent.Conditions) error {
	for i, one := range c.List() {
		if one.Event == nil || len(one.Event.Match) <= match.MaxModelSchema {
			continue
		}
		at := "event.match"
		if i < len(c.Any) {
			at = fmt.Sprintf("any[%d].event.match", i)
		}
		return agent.Errorf(agent.CodeInvalidInput, "%s has %d bytes; at most %d are taken. Ask for less, and look at the payload after the wait", at, len(one.Event.Match), match.MaxModelSchema).WithPath(at)
	}
	return nil
}

// completed checks conditions. It returns them with their defaults, and with trimmed
// topics.
func completed(c agent.Conditions) (agent.Conditions, error) {
	// A copy: the caller's list is not changed by what is trimmed below.
	c.Any = append([]agent.Condition(nil), c.Any...)
	if len(c.Any) > maxConditions {
		return c, agent.Errorf(agent.CodeInvalidInput, "any has %d conditions; at most %d are taken", len(c.Any), maxConditions).WithPath("any")
	}
	own := agent.Condition{At: c.At, After: c.After, Event: c.Event}
	if err := checkCondition(&own, ""); err != nil {
		return c, err
	}
	c.Event = own.Event
	for i := range c.Any {
		within := fmt.Sprintf("any[%d].", i)
		if c.Any[i].At.IsZero() && c.Any[i].After == 0 && c.Any[i].Event == nil {
			return c, agent.Errorf(agent.CodeInvalidInput, "%s: say at, after or event", within[:len(within)-1]).WithPath(within[:len(within)-1])
		}
		if err := checkCondition(&c.Any[i], within); err != nil {
			return c, err
		}
	}
	switch c.OnTimeout {
	case "", agent.OnTimeoutResumeWithSummary, agent.OnTimeoutFail, agent.OnTimeoutCancel:
		if c.Input != "" {
			return c, agent.Errorf(agent.CodeInvalidInput, "input is for on_timeout resume_with_input").WithPath("input")
		}
	case agent.OnTimeoutResumeWithInput:
		if c.Input == "" {
			return c, agent.Errorf(agent.CodeInvalidInput, "input is missing; on_timeout resume_with_input says it to the model").WithPath("input")
		}
	default:
		return c, agent.Errorf(agent.CodeInvalidInput, "on_timeout must be resume_with_summary, resume_with_input, fail or cancel, not %q", c.OnTimeout).WithPath("on_timeout")
	}
	if c.OnTimeout == "" {
		c.OnTimeout = agent.OnTimeoutResumeWithSummary
	}
	return c, nil
}

func checkCondition(c *agent.Condition, within string) error {
	if c.After < 0 {
		return agent.Errorf(agent.CodeInvalidInput, "%safter must be positive, not %s", within, c.After).WithPath(within + "after")
	}
	if !c.At.IsZero() && c.After != 0 {
		return agent.Errorf(agent.CodeInvalidInput, "%sat and after are two ways to say one thing; say one", within).WithPath(within + "after")
	}
	if c.Event == nil {
		return nil
	}
	event := *c.Event
	event.Topic = strings.TrimSpace(event.Topic)
	if err := agent.CheckTopic(event.Topic); err != nil {
		return err.WithPath(within + "event.topic")
	}
	if err := checkMatch(event.Match); err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "%sevent.match %w", within, err).WithPath(within + "event.match")
	}
	c.Event = &event
	return nil
}

// checkMatch refuses a schema that the machine cannot match events against.
func checkMatch(raw json.RawMessage) error {
	_, err := match.Read(raw)
	return err
}

// schemaOf parses a schema.
func schemaOf(raw json.RawMessage) (*jsonschema.Resolved, error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	read, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	// A schema that refers to itself without end would never be resolved.
	if why := schemacost.Cycle(read); why != "" {
		return nil, errors.New(why)
	}
	return schema.Resolve(nil)
}

// Matches reports whether a call's arguments match a rule's schema. An empty schema
// matches everything; empty arguments are null. An error means that the answer is
// unknown: the schema is invalid, or the arguments have too many parts, or a number that
// no float64 holds.
//
// Do not call it in workflows. For schemas that the runtime's own matcher does not
// support, the answer may change with the library.
func Matches(schemaOfRule, payload json.RawMessage) (bool, error) {
	if own, err := match.Read(schemaOfRule); err == nil {
		return own.FitsJSON(payload)
	}
	schema, err := schemaOf(schemaOfRule)
	if err != nil {
		return false, err
	}
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = json.RawMessage("null")
	}
	// The library decodes numbers as float64, and a rule must not judge a rounded amount.
	if err := match.Exact(payload); err != nil {
		return false, err
	}
	var value any
	if err := json.Unmarshal(payload, &value); err != nil {
		return false, err
	}
	return schema.Validate(value) == nil, nil
}
