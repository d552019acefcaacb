package await

import (
	"context"
	"time"
)

// Pause waits for a time, and reports whether all of it went by before the context ended.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
