package wire

import "github.com/fermata-agents/fermata/agent"

// maxUnheard is how many holds of a session a run may have missed.
const maxUnheard = 1_000_000

// MaxMet is half of the numbers that a hold may have in a parent's order. Whoever forges holds, one after
// the other, comes no further with large steps. After it, a run may have missed maxUnheardLate holds only, so
// that real ones are still believed, and after maxMetLate none is: only orders count then. So no forged number
// makes a child refuse its parent's real orders.
const (
	MaxMet         = 1 << 29
	maxMetLate     = 3 << 28
	maxUnheardLate = 1_000
)

// PlausibleHold reports whether a session can have this hold, if its last known hold has the
// number known. A much higher number is forged. A run that believed it would take the session's
// next real holds for old ones.
func PlausibleHold(h agent.HoldRef, known int) bool {
	// max: with a negative number, the difference could overflow and pass.
	unheard := h.N - max(0, known)
	return h.N > 0 && unheard <= maxUnheard && (h.N <= MaxMet || h.N <= maxMetLate && unheard <= maxUnheardLate)
}
