package loop

import "fmt"

// callID returns our id of a tool call: the index-th call (from 1) of a turn. Providers repeat
// and omit their own ids, so those only stand beside ours (docs/wire.md §2).
func callID(turn, index int) string { return fmt.Sprintf("t%d.%d", turn, index) }

// suspensionID returns the name of a session's n-th suspension.
func suspensionID(n int) string { return fmt.Sprintf("s-%d", n) }

// requestID returns the name of a session's n-th request.
func requestID(n int) string { return fmt.Sprintf("q-%d", n) }

// holdID returns the name of a session's n-th hold.
func holdID(n int) string { return fmt.Sprintf("h-%d", n) }
