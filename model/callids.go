package model

import (
	"fmt"
	"maps"

	"github.com/fermata-agents/fermata/agent"
)

// CallIDs gives every tool call of a conversation an id that is unique in it and
// that every provider accepts ("call00001", "call00002" …: Mistral takes nine letters
// or digits and nothing else), since providers repeat and omit theirs and runs of one session count their turns from one. The function
// returned names a call of the i-th message, or the call that a result in it is for.
func CallIDs(messages []agent.Message) func(i int, call string) string {
	type key struct {
		turn int // the message that asked
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
		asked[i] = last
	}
	return func(i int, call string) string { return ids[key{asked[i], call}] }
}

// ProviderIDs returns the ids that a provider gave the calls of the messages that which names,
// by those of [CallIDs]. A message of which a call has no sound id, or one that was there
// before, has none: every id is unique in a conversation. It is for adapters whose provider
// has a use for its own ids.
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
