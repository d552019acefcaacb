package signals

import (
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// The search attributes that this build writes, typed (wire §8).
var (
	AttrAgent  = temporal.NewSearchAttributeKeyKeyword(agent.AttrAgent)
	AttrStatus = temporal.NewSearchAttributeKeyKeyword(agent.AttrStatus)
	AttrSince  = temporal.NewSearchAttributeKeyTime(agent.AttrSince)
)

// Attributes are what a listing finds a run by.
func Attributes(name string, status agent.Status, since time.Time) []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		AttrAgent.ValueSet(name), AttrStatus.ValueSet(string(status)), AttrSince.ValueSet(since),
	}
}
