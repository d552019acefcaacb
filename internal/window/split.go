package window

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Shares of a request that what stays as it was may take.
const (
	firstShare = 0.2
	lastShare  = 0.5
)

// Split says which messages stay as they were: the first ones up to one index, and
// the last ones from another on. What is between is to be summed up. They are as
// many as asked for where they fit into their shares of so many tokens.
func Split(entries []store.Entry, m Meter, limit int64, c agent.Compacting) (first, from int) {
	first, from = min(c.KeepFirst, len(entries)), len(entries)-max(c.KeepLast, 0)
	for first < len(entries) && answers(entries[first]) {
		first++
	}
	if m.Part(entries[:first]) > share(limit, firstShare) {
		first = 0
	}
	for from = max(from, first); from > first && from < len(entries) && answers(entries[from]); {
		from-- // the call that it answers stays with it
	}
	for from < len(entries) && m.Part(entries[from:]) > share(limit, lastShare) {
		if from = next(entries, from); from == len(entries) {
			break
		}
	}
	return first, from
}

// answers tells whether a message holds results, which stay with their calls.
func answers(e store.Entry) bool { return e.Role == agent.RoleTool }

// next is the next index at which messages can be parted.
func next(entries []store.Entry, i int) int {
	for i++; i < len(entries) && answers(entries[i]); i++ {
	}
	return i
}

func share(limit int64, s float64) int64 { return int64(float64(limit) * s) }
