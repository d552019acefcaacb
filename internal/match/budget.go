package match

import "errors"

// ErrTooLarge means that a schema and a value have too many parts to be compared with what
// is left of a budget.
var ErrTooLarge = errors.New("the schema and the value have too many parts to be compared")

// Looks is how many looks a workflow task has for all that is compared in it: some 5 ms of
// work. It is counted, and not timed: each build and machine comes to the same result.
const Looks = 100_000

// stepLooks is how many a step has for one comparison.
const stepLooks = 4 * Looks

// Costs in looks, each some 50 ns. See BenchmarkBudget, which measures what a whole budget
// takes.
const (
	textLook      = 16 // bytes of a text
	escapeLooks   = 1  // to read an escaped character
	valueLooks    = 8  // to read a value
	nameLooks     = 8  // to read a name, and to put it in order
	objectLooks   = 24 // to make an object
	compareLooks  = 8  // to compare fractions
	wholeLooks    = 4  // to make one of a whole number
	digitLook     = 8  // digits of numbers that are compared
	fractionLooks = 16 // to make a fraction of a number
	squareLook    = 24 // the same, of the square of its digits
)

// Budget counts looks. A look compares one part of a schema with one part of a value; long
// texts and numbers, names and lists take several. It is for one goroutine.
type Budget struct {
	left, spent int
	schemas     map[string]Schema
}

// NewBudget returns a budget of some looks.
func NewBudget(looks int) *Budget { return &Budget{left: looks, schemas: map[string]Schema{}} }

// Renew returns a budget of some looks that knows the schemas which b has read.
func (b *Budget) Renew(looks int) *Budget { return &Budget{left: looks, schemas: b.schemas} }

// maxKnown is how many schemas are known: more than a run waits for at once.
const maxKnown = 32

// Schema reads a schema once: it is read again by nobody who has the same budget, or one anew.
// That costs no looks, since another process may not know it. Nothing fits one that is wrong,
// which is refused where it is said.
func (b *Budget) Schema(raw []byte) Schema {
	if s, ok := b.schemas[string(raw)]; ok {
		return s
	}
	s, err := Read(raw)
	if err != nil {
		s = Schema{&node{never: true}}
	}
	if len(b.schemas) >= maxKnown {
		clear(b.schemas)
	}
	b.schemas[string(raw)] = s
	return s
}

// Spent is how many looks were taken.
func (b *Budget) Spent() int { return b.spent }

// Exceeded reports whether more looks were wanted than there are.
func (b *Budget) Exceeded() bool { return b.left < 0 }

// spend takes some looks, and reports whether there were as many.
func (b *Budget) spend(looks int) bool {
	if b.left < 0 {
		return false
	}
	b.left -= looks
	b.spent += looks
	return b.left >= 0
}
