package loop

import (
	"fmt"
	"strconv"
	"strings"
)

// callID returns the id of a turn's index-th tool call (from 1). Providers repeat and omit their own
// ids, so the runtime makes these and keeps the provider's as a second one (docs/wire.md §2).
func callID(turn, index int) string { return fmt.Sprintf("t%d.%d", turn, index) }

// suspensionID returns the name of a session's n-th suspension.
func suspensionID(n int) string { return fmt.Sprintf("s-%d", n) }

// requestID returns the name of a session's n-th request.
func requestID(n int) string { return fmt.Sprintf("q-%d", n) }

// requestNumber returns the number in a request's id; zero if it is no such id.
func requestNumber(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "q-"))
	if err != nil || n < 0 || requestID(n) != id {
		return 0
	}
	return n
}

// holdID returns the name of a session's n-th hold.
func holdID(n int) string { return fmt.Sprintf("h-%d", n) }
