package wire

import "github.com/fermata-agents/fermata/agent"

// maxUnheard is how many holds of a session somebody may have missed.
const maxUnheard = 1_000_000

// PlausibleHold reports whether a hold can be news to somebody who knows the session's holds up
// to a number. Any other hold was invented: to believe it would hide the true ones.
func PlausibleHold(h agent.HoldRef, known int) bool {
	return h.N > 0 && h.N-max(0, known) <= maxUnheard
}
