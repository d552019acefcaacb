package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/client"
)

// followed is how many stories there are to each one whose events are read as they come.
const followed = 4

// reader reads a session's events during the disturbances. When it is cut off, it
// continues at its cursor.
type reader struct {
	session string
	cursor  string
	last    int64
	lines   map[int64]string // by number, as they were read
}

// follow starts the readers.
func (c *operators) follow(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	for i, s := range c.plan.Stories {
		if i%followed > 0 {
			continue
		}
		r := &reader{session: s.Session, lines: map[int64]string{}}
		c.readers = append(c.readers, r)
		c.reading.Go(func() {
			for ctx.Err() == nil {
				c.read(ctx, r, true)
				pause(ctx, 200*time.Millisecond)
			}
		})
	}
}

// read reads from the cursor on. An error only ends the reading.
func (c *operators) read(ctx context.Context, r *reader, follow bool) error {
	for e, err := range c.Events(ctx, r.session, &client.EventsOptions{After: r.cursor, Follow: follow}) {
		if err != nil {
			return err
		}
		if e.Seq != r.last+1 && r.last > 0 {
			c.report.find(lost, r.session, e.Run, "a reader was told event %d after event %d", e.Seq, r.last)
		}
		r.lines[e.Seq], r.cursor, r.last = line(e), e.Cursor(), e.Seq
	}
	return nil
}

// unfollow reads the remaining events, and ends the readers.
func (c *operators) unfollow(ctx context.Context) {
	c.stop()
	c.reading.Wait()
	for _, r := range c.readers {
		if err := c.read(ctx, r, false); err != nil {
			c.report.find(lost, r.session, "", "its events can't be read on after %q: %v", r.cursor, err)
		}
	}
}

func line(e client.Event) string {
	b, err := json.Marshal(e)
	if err != nil {
		return err.Error() // it differs from all others
	}
	return string(b)
}
