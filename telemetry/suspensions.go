package telemetry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/observe"
)

// suspended exports the spans that end as a run suspends. OpenTelemetry has no status for
// that: like every instrumentation it leaves the status of what has not failed unset, and
// an attribute says how the span ended.
func (t *Telemetry) suspended(s observe.RunEvent, of metric.AddOption) {
	const outcome = string(agent.StatusSuspended)
	if v := s.Event.Suspension; v != nil {
		kind, by := kindKey.String(string(v.Kind)), initiatorKey.String(string(v.Initiator))
		t.meters.suspensions.Add(context.Background(), 1, of, metric.WithAttributes(kind, by))
		with := append(whose(s), outcomeKey.String(outcome), kind, by)
		if s.TraceSegment.Turn > 0 {
			with = append(with, turnKey.Int(s.TraceSegment.Turn))
		}
		// A span of its own: a hold from outside comes between two turns, and a turn that
		// parks the run may have ended.
		t.tell(span{
			own: s.TraceSegment.EventTraceparent(s.Run, s.Event.Seq), parent: s.TraceSegment.Traceparent(s.Run), agent: s.Agent,
			name: "suspend " + string(v.Kind), from: reasonCame(s), to: s.Event.Time, with: append(with, t.described(v)...),
		})
	}
	t.turn(s, outcome)
	t.segment(s, outcome, "")
}

// reasonCame returns when the first reason to suspend came, within the span above. Calls that
// were in flight then had to end before the run was suspended.
func reasonCame(s observe.RunEvent) time.Time {
	v, at := s.Event.Suspension, s.Event.Time
	for _, r := range v.Requests {
		if r.Opened.Before(at) {
			at = r.Opened
		}
	}
	for _, h := range v.Holds {
		if h.At.Before(at) {
			at = h.At
		}
	}
	above := s.TraceSegment.Began
	if s.TraceSegment.Turn > 0 {
		above = s.TraceSegment.TurnBegan
	}
	return latest(above, at)
}

// described returns the descriptor of a suspension: who is waited for, and by which ids
// that is answered.
func (t *Telemetry) described(v *agent.Suspension) []attribute.KeyValue {
	what, ids := waitsFor(v)
	with := []attribute.KeyValue{
		suspensionKey.String(v.ID), causeKey.String(v.Cause), conditionsKey.Bool(v.Conditions != nil), waitsForKey.StringSlice(what), requestsKey.StringSlice(ids),
	}
	if !v.Expires.IsZero() {
		with = append(with, expiresKey.String(v.Expires.UTC().Format(time.RFC3339)))
	}
	if t.texts {
		with = append(with, texts(v)...)
	}
	return with
}

// waitsFor returns what a suspension waits for, without duplicates, and the ids of its
// requests.
func waitsFor(v *agent.Suspension) (what, ids []string) {
	add := func(one string) {
		if !slices.Contains(what, one) {
			what = append(what, one)
		}
	}
	for _, r := range v.Requests {
		ids = append(ids, r.ID)
		add(string(r.Type))
	}
	for _, c := range conditions(v) {
		if c.Event != nil {
			add("topic:" + c.Event.Topic)
		} else {
			add("time")
		}
	}
	if len(v.Holds) > 0 {
		add("held")
	}
	return what, ids
}

// conditions returns every single condition of a suspension.
func conditions(v *agent.Suspension) []agent.Condition {
	if v.Conditions == nil {
		return nil
	}
	return v.Conditions.List()
}

// texts returns what a suspension says, and to whom. A text that nothing has is left out.
func texts(v *agent.Suspension) (with []attribute.KeyValue) {
	if v.Reason != "" {
		with = append(with, reasonKey.String(shortened(v.Reason)))
	}
	for _, a := range []attribute.KeyValue{
		each(textsKey, v.Requests, func(r agent.Request) string { return r.Text }),
		each(contextsKey, v.Requests, func(r agent.Request) string { return r.Context }),
		each(choicesKey, v.Requests, func(r agent.Request) string { return list(r.Choices) }),
		each(stepsKey, v.Requests, func(r agent.Request) string { return r.Step }),
		each(toolsKey, v.Requests, func(r agent.Request) string { return callOf(r).Tool }),
		each(argumentsKey, v.Requests, func(r agent.Request) string { return string(callOf(r).Arguments) }),
		each(approversKey, v.Requests, func(r agent.Request) string { return list(r.Approvers) }),
		each(matchesKey, conditions(v), func(c agent.Condition) string {
			if c.Event == nil {
				return ""
			}
			return string(c.Event.Match)
		}),
		each(heldByKey, v.Holds, func(h agent.Hold) string { return h.By }),
		each(heldForKey, v.Holds, func(h agent.Hold) string { return h.Reason }),
	} {
		if a.Key != "" {
			with = append(with, a)
		}
	}
	return with
}

// What a span has of the texts of a suspension: a backend refuses spans that are too
// large, and the whole batch with them.
const (
	mostTexts = 32   // of one kind
	mostText  = 1024 // bytes of one
)

// each returns the texts that a list has. If it has none, the attribute has no key.
func each[T any](key attribute.Key, all []T, text func(T) string) attribute.KeyValue {
	found := false
	out := make([]string, 0, min(len(all), mostTexts))
	for _, one := range all[:cap(out)] {
		said := shortened(text(one))
		found = found || said != ""
		out = append(out, said)
	}
	if !found {
		return attribute.KeyValue{}
	}
	return key.StringSlice(out)
}

// shortened returns a text without bytes that are no characters, and its beginning if it
// is too long.
func shortened(text string) string {
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// list returns a list as JSON; empty for an empty one.
func list(all []string) string {
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // a list of texts is always JSON
	return string(text)
}

// callOf returns the call that a request is about; the zero value if there is none.
func callOf(r agent.Request) agent.RequestCall {
	if r.Call == nil {
		return agent.RequestCall{}
	}
	return *r.Call
}
