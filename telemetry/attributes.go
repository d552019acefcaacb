package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// The attributes that no convention has. Those of which there are many, runs and
// suspensions, are on spans alone.
const (
	runKey     = attribute.Key("fermata.run")
	turnKey    = attribute.Key("fermata.turn")
	attemptKey = attribute.Key("fermata.attempt")
	// outcomeKey is how a stint or a turn ended: suspended, a run's end, or ended for a
	// turn; of a call that is no failure and no success it is given_up, rejected, skipped.
	outcomeKey = attribute.Key("fermata.outcome")

	suspensionKey = attribute.Key("fermata.suspension")
	kindKey       = attribute.Key("fermata.suspension.kind")
	initiatorKey  = attribute.Key("fermata.suspension.initiator")
	causeKey      = attribute.Key("fermata.suspension.cause")
	// conditionsKey reports whether times or events can end it.
	conditionsKey = attribute.Key("fermata.suspension.conditions")
	// waitsForKey is what it waits for, in the words of listings, and requestsKey the ids by
	// which that is answered. What is asked, and of whom, is on no span.
	waitsForKey = attribute.Key("fermata.suspension.waits_for")
	requestsKey = attribute.Key("fermata.suspension.requests")

	resumedKey      = attribute.Key("fermata.resumed.suspension")
	resumedCauseKey = attribute.Key("fermata.resumed.cause")
	resumedInputKey = attribute.Key("fermata.resumed.input")

	// linkKey says what a link is for; ours are of the kind suspension.
	linkKey = attribute.Key("fermata.link.kind")
)

// Values of outcomeKey that are no status of a run or a call.
const (
	turnEnded = "ended"
	givenUp   = "given_up"
)

// provider is the provider in a model's full name.
func provider(model string) attribute.KeyValue {
	name, _, _ := strings.Cut(model, "/")
	return semconv.GenAIProviderNameKey.String(name)
}

// bare is a model's full name without its provider.
func bare(model string) string {
	if _, name, ok := strings.Cut(model, "/"); ok {
		return name
	}
	return model
}
