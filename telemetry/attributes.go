package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// The attributes that no convention has. Runs and suspensions have too many values for
// metrics, so they are only on spans.
const (
	runKey     = attribute.Key("fermata.run")
	turnKey    = attribute.Key("fermata.turn")
	attemptKey = attribute.Key("fermata.attempt")
	levelKey   = attribute.Key("fermata.reasoning") // how much the model is to think
	// outsideKey is what a tool is, if the run's workflow calls it: activity, workflow or nexus.
	outsideKey = attribute.Key("fermata.tool.temporal")
	// outcomeKey is how a segment or turn ended: suspended, the run's end, or ended for a
	// turn. For a call that neither succeeded nor failed it is given_up, rejected or
	// skipped.
	outcomeKey = attribute.Key("fermata.outcome")

	// suspensionKey and those up to expiresKey are only on the span of a suspension.
	suspensionKey = attribute.Key("fermata.suspension.id")
	kindKey       = attribute.Key("fermata.suspension.kind")
	initiatorKey  = attribute.Key("fermata.suspension.initiator")
	causeKey      = attribute.Key("fermata.suspension.cause")
	// conditionsKey is whether times or events can end the suspension.
	conditionsKey = attribute.Key("fermata.suspension.conditions")
	// waitsForKey is what the suspension waits for, in the words of listings. requestsKey
	// has the ids of its requests. What is asked, and whom, is only in the texts.
	waitsForKey = attribute.Key("fermata.suspension.waits_for")
	requestsKey = attribute.Key("fermata.suspension.requests")
	expiresKey  = attribute.Key("fermata.suspension.expires")

	// The texts of a suspension, see [Options.SuspensionTexts]. Those of requests have one
	// element for each request, in the order of requestsKey.
	reasonKey    = attribute.Key("fermata.suspension.reason")
	textsKey     = attribute.Key("fermata.suspension.texts")
	contextsKey  = attribute.Key("fermata.suspension.contexts")
	choicesKey   = attribute.Key("fermata.suspension.choices")
	stepsKey     = attribute.Key("fermata.suspension.steps")
	toolsKey     = attribute.Key("fermata.suspension.tools")
	argumentsKey = attribute.Key("fermata.suspension.arguments")
	approversKey = attribute.Key("fermata.suspension.approvers")
	matchesKey   = attribute.Key("fermata.suspension.matches")
	heldByKey    = attribute.Key("fermata.suspension.held_by")
	heldForKey   = attribute.Key("fermata.suspension.held_for")

	resumedKey      = attribute.Key("fermata.resumed.suspension")
	resumedCauseKey = attribute.Key("fermata.resumed.cause")
	resumedInputKey = attribute.Key("fermata.resumed.input")

	// linkKey is the kind of a link; ours are of the kind suspension.
	linkKey = attribute.Key("fermata.link.kind")
)

// Values of outcomeKey that are no status of a run or call.
const (
	turnEnded = "ended"
	givenUp   = "given_up"
)

// provider returns the provider in a model's full name, as an attribute.
func provider(model string) attribute.KeyValue {
	name, _, _ := strings.Cut(model, "/")
	return semconv.GenAIProviderNameKey.String(name)
}

// bare returns a model's full name without its provider.
func bare(model string) string {
	if _, name, ok := strings.Cut(model, "/"); ok {
		return name
	}
	return model
}
