package model

import (
	"fmt"
	"maps"

	"github.com/fermata-agents/fermata/agent"
)

// CallIDs gives every tool call of a conversation a unique id that every provider
// accepts: "call00001", "call00002" and so on. Mistral accepts only nine letters or
// digits. Providers repeat and omit their own ids, and the runs of a session all count
// their turns from one. The returned function gives the id of a call in the i-th message,
// or of the call that a result in that message is for.
func CallIDs(messages []agent.Message) func(i int, call string) string {
	type key struct {
		turn int // the index of the message with the call
		call string
	}
	ids := map[key]string{}
	asked := make([]int, len(messages))
	last, n := 0, 0
	for i, m := range messages {
		if calls := m.ToolCalls(); len(calls) > 0 {
			last = i
			for _, c := range calls {
				n++
				ids[key{i, c.ID}] = fmt.Sprintf("call%05d", n)
			}
		}
		// A result belongs to the last message before it that has calls.
		asked[i] = last
	}
	return func(i int, call string) string { return ids[key{asked[i], call}] }
}

// ProviderIDs returns the provider's own ids of calls, by the ids of [CallIDs]. It looks
// only at messages for which which returns true. If one call of a message has an invalid
// id, or an id that occurred before, the whole message is left out, because ids must be
// unique in a conversation. It is for adapters whose provider needs its own ids.
func ProviderIDs(messages []agent.Message, which func(agent.Message) bool, sound func(id string) bool) map[string]string {
	id, theirs, seen := CallIDs(messages), map[string]string{}, map[string]bool{}
	for i, msg := range messages {
		if !which(msg) {
			continue
		}
		calls, given := msg.ToolCalls(), map[string]string{}
		for _, c := range calls {
			if sound(c.ProviderID) && !seen[c.ProviderID] {
				given[id(i, c.ID)] = c.ProviderID
			}
			seen[c.ProviderID] = true
		}
		if len(given) == len(calls) {
			maps.Copy(theirs, given)
		}
	}
	return theirs
}
