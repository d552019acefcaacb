package signals

import (
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// The search attributes that this build writes, typed (docs/wire.md §8).
var (
	AttrAgent  = temporal.NewSearchAttributeKeyKeyword(agent.AttrAgent)
	AttrStatus = temporal.NewSearchAttributeKeyKeyword(agent.AttrStatus)
	AttrSince  = temporal.NewSearchAttributeKeyTime(agent.AttrSince)

	AttrWaitsFor = temporal.NewSearchAttributeKeyKeywordList(agent.AttrWaitsFor)
	AttrDeadline = temporal.NewSearchAttributeKeyTime(agent.AttrDeadline)
)

// Quote writes a string in Temporal's list filter language.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Attributes are what a listing finds a run by.
func Attributes(name string, status agent.Status, since time.Time) []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		AttrAgent.ValueSet(name), AttrStatus.ValueSet(string(status)), AttrSince.ValueSet(since),
	}
}

// SuspendedAttributes are the attributes with what a run waits for, and until when; what it does
// not wait for is taken away.
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

// ProbeAttributes is a value for each search attribute, for a workflow that is no run and
// is to show that the namespace has all of them.
func ProbeAttributes(name string) temporal.SearchAttributes {
	none := time.Unix(0, 0).UTC()
	return temporal.NewSearchAttributes(AttrAgent.ValueSet(name), AttrStatus.ValueSet(name), AttrWaitsFor.ValueSet([]string{name}), AttrSince.ValueSet(none), AttrDeadline.ValueSet(none))
}
