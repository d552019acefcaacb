package window

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Shares of a request for the messages that stay.
const (
	firstShare = 0.2
	lastShare  = 0.5
)

// Split chooses the messages that stay: those before first, and those from from on. The
// ones in between are summarized. c says how many stay at most, and their shares of limit
// tokens bound them. The newest message always stays: the model is to answer it.
func Split(entries []store.Entry, m TokenEstimator, limit int64, c agent.CompactionPolicy) (first, from int) {
	first, from = min(c.KeepFirst, len(entries)), len(entries)-max(c.KeepLast, 0)
	// A call must not lose its result to the summary, nor a result its call: providers
	// refuse both.
	for first < len(entries) && answers(entries[first]) {
		first++
	}
	if m.PartTokens(entries[:first]) > share(limit, firstShare) {
		first = 0
	}
	for from = max(from, first); from > first && from < len(entries) && answers(entries[from]); {
		from-- // the call that it answers stays with it
	}
	from = min(from, newest(entries))
	for at := next(entries, from); at < len(entries) && m.PartTokens(entries[from:]) > share(limit, lastShare); at = next(entries, from) {
		from = at
	}
	return min(first, from), from
}

// answers reports whether a message has results, which stay with their calls.
func answers(e store.Entry) bool { return e.Role == agent.RoleTool }

// newest returns the index of the last message, or of its call if it is a result.
func newest(entries []store.Entry) int {
	i := max(0, len(entries)-1)
	for i > 0 && answers(entries[i]) {
		i--
	}
	return i
}

// next returns the next index at which messages can be separated.
func next(entries []store.Entry, i int) int {
	for i++; i < len(entries) && answers(entries[i]); i++ {
	}
	return i
}

func share(limit int64, s float64) int64 { return int64(float64(limit) * s) }
