package match

import "errors"

// ErrTooLarge means that the rest of a budget is too small to compare a schema with a
// value.
var ErrTooLarge = errors.New("the schema and the value have too many parts to be compared")

// Looks is the budget of a workflow task for all its comparisons: some 5 ms of work. It is
// counted, not timed, so each build and machine comes to the same result in a replay.
const Looks = 100_000

// stepLooks is the budget of an activity for one comparison.
const stepLooks = 4 * Looks

// Costs in looks, each some 50 ns. BenchmarkBudget measures what a whole budget takes.
const ( // bytes of a text
	textLook      = 16 // bytes of a text
	escapeLooks   = 1  // to read an escaped character
	valueLooks    = 8  // to read a value
	nameLooks     = 8  // to read a name, and to sort it
	objectLooks   = 24 // to make an object
	compareLooks  = 8  // to compare fractions
	wholeLooks    = 4  // to make a fraction of a whole number
	digitLook     = 8  // digits of numbers that are compared
	fractionLooks = 16 // to make a fraction of a number
	squareLook    = 24 // the same, per square of its digits
)

// Budget counts looks. A look compares one part of a schema with one part of a value;
// long texts and numbers, names and lists take several. It is for one goroutine.
type Budget struct {
	left, spent int
	schemas     map[string]Schema
}

// NewBudget returns a budget of so many looks.
func NewBudget(looks int) *Budget { return &Budget{left: looks, schemas: map[string]Schema{}} }

// Renew returns a budget of so many looks that knows the schemas that b has read.
func (b *Budget) Renew(looks int) *Budget { return &Budget{left: looks, schemas: b.schemas} }

// maxKnown is how many schemas are kept: more than a run waits for at once.
const maxKnown = 32

// Schema reads a schema, once for this budget and those that Renew makes of it. That
// costs no looks: another process may not know the schema, and must count the same.
// Nothing fits an invalid schema; verbs refuse it earlier.
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

// Spent returns how many looks were used.
func (b *Budget) Spent() int { return b.spent }

// Exceeded reports whether more looks were requested than there were.
func (b *Budget) Exceeded() bool { return b.left < 0 }

// spend uses some looks, and reports whether there were enough.
func (b *Budget) spend(looks int) bool {
	// Once exceeded, it stays exceeded: a cheaper look later must not succeed.
	if b.left < 0 {
		return false
	}
	b.left -= looks
	b.spent += looks
	return b.left >= 0
}
