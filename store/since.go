package store

import (
	"context"
	"slices"
)

// Since returns the chunks up to a digest that hold the event with a number and
// what came after it, the oldest first; all of them where the number is zero, and
// at least the last one. Only these are read: a reader that follows a log does
// not read it anew with each step. Its errors are those of [Log.View].
func (l *Log) Since(ctx context.Context, digest string, seq int64) ([]Chunk, error) {
	var chain []Chunk
	for at := digest; at != ""; {
		c, _, err := l.chunk(ctx, at)
		if err != nil {
			return nil, err
		}
		chain, at = append(chain, c), c.Prev
		if len(c.Events) > 0 && c.Events[0].Seq <= seq {
			break
		}
	}
	slices.Reverse(chain)
	return chain, nil
}
