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
// many as asked for where they fit into their shares of so many tokens. The newest
// is always kept: it is what the model is to answer.
func Split(entries []store.Entry, m TokenEstimator, limit int64, c agent.CompactionPolicy) (first, from int) {
	first, from = min(c.KeepFirst, len(entries)), len(entries)-max(c.KeepLast, 0)
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

// answers reports whether a message holds results, which stay with their calls.
func answers(e store.Entry) bool { return e.Role == agent.RoleTool }

// newest is the index of the last message, with the call where it is a result.
func newest(entries []store.Entry) int {
	i := max(0, len(entries)-1)
	for i > 0 && answers(entries[i]) {
		i--
	}
	return i
}

// next is the next index at which messages can be parted.
func next(entries []store.Entry, i int) int {
	for i++; i < len(entries) && answers(entries[i]); i++ {
	}
	return i
}

func share(limit int64, s float64) int64 { return int64(float64(limit) * s) }
