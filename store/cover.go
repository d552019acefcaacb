package store

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
)

// Cover finds in a chain the oldest chunk that has an event, and the number of
// the chunk's last: where another session begins that shares the chain up to there.
func (l *Log) Cover(ctx context.Context, digest string, seq int64) (covers string, last int64, err error) {
	for at := digest; at != ""; {
		c, _, err := l.chunk(ctx, at)
		if err != nil {
			return "", 0, err
		}
		n := len(c.Events)
		if n == 0 || c.Events[n-1].Seq < seq {
			break
		}
		covers, last, at = at, c.Events[n-1].Seq, c.Prev
	}
	if covers == "" && seq > 0 {
		return "", 0, agent.Errorf(agent.NotFound, "the log ends before event %d", seq)
	}
	return covers, last, nil
}
