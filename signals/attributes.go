package signals

import (
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// The search attributes that this build writes (docs/wire.md §8).
var (
	AttrAgent  = temporal.NewSearchAttributeKeyKeyword(agent.AttrAgent)
	AttrStatus = temporal.NewSearchAttributeKeyKeyword(agent.AttrStatus)
	AttrSince  = temporal.NewSearchAttributeKeyTime(agent.AttrSince)

	AttrWaitsFor = temporal.NewSearchAttributeKeyKeywordList(agent.AttrWaitsFor)
	AttrDeadline = temporal.NewSearchAttributeKeyTime(agent.AttrDeadline)
)

// Quote returns s as a string of Temporal's list filter language.
func Quote(s string) string { return "'" + quoted.Replace(s) + "'" }

// quoted has a backslash, too: the server's parser takes it for an escape.
var quoted = strings.NewReplacer(`\`, `\\`, "'", "''")

// Attributes returns the search attributes of a run.
func Attributes(name string, status agent.Status, since time.Time) []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		AttrAgent.ValueSet(name), AttrStatus.ValueSet(string(status)), AttrSince.ValueSet(since),
	}
}

// SuspendedAttributes returns the search attributes with what a run waits for, and until
// when. Those that do not apply are unset, so that listings no longer find the run by
// them.
func SuspendedAttributes(name string, status agent.Status, since time.Time, waitsFor []string, deadline time.Time) []temporal.SearchAttributeUpdate {
	list := Attributes(name, status, since)
	if len(waitsFor) > 0 {
		list = append(list, AttrWaitsFor.ValueSet(waitsFor))
	} else {
		list = append(list, AttrWaitsFor.ValueUnset())
	}
	if !deadline.IsZero() {
		return append(list, AttrDeadline.ValueSet(deadline))
	}
	return append(list, AttrDeadline.ValueUnset())
}

// ProbeAttributes returns a value for each search attribute. A workflow that is no run
// sets them to show that the namespace has all of them.
func ProbeAttributes(name string) temporal.SearchAttributes {
	none := time.Unix(0, 0).UTC()
	return temporal.NewSearchAttributes(AttrAgent.ValueSet(name), AttrStatus.ValueSet(name), AttrWaitsFor.ValueSet([]string{name}), AttrSince.ValueSet(none), AttrDeadline.ValueSet(none))
}
