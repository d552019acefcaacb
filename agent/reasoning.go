package agent

import "slices"

// Reasoning is how much a model is to think before it answers.
// Each provider has words of its own for it, and a model that lacks a level gets
// the nearest that it has: see docs/models.md. Its zero value says nothing, and
// leaves it to the provider's default for the model.
type Reasoning string

// The levels. Auto lets the model think as much as it finds right, also where the
// provider's default is not to think; the others are in the order of their effort.
const (
	ReasoningAuto    Reasoning = "auto"
	ReasoningOff     Reasoning = "off"
	ReasoningMinimal Reasoning = "minimal"
	ReasoningLow     Reasoning = "low"
	ReasoningMedium  Reasoning = "medium"
	ReasoningHigh    Reasoning = "high"
	ReasoningXHigh   Reasoning = "xhigh"
	ReasoningMax     Reasoning = "max"
)

var efforts = []Reasoning{ReasoningOff, ReasoningMinimal, ReasoningLow, ReasoningMedium, ReasoningHigh, ReasoningXHigh, ReasoningMax}

// Check returns a [CodeInvalidInput] error if r is no level.
func (r Reasoning) Check() error {
	if r == "" || r == ReasoningAuto || slices.Contains(efforts, r) {
		return nil
	}
	return Errorf(CodeInvalidInput, "reasoning must be one of auto, off, minimal, low, medium, high, xhigh, max, not %q", string(r)).WithPath("reasoning")
}

// Nearest returns the level in has that is nearest to r; of two equally near ones the
// harder. It is empty if has is empty, or if r is auto or the zero value. It returns Max
// only if r is Max, because Max has no limit. Adapters of providers call it.
func (r Reasoning) Nearest(has []Reasoning) Reasoning {
	want, best := slices.Index(efforts, r), Reasoning("")
	if want < 0 {
		return best
	}
	distance := func(l Reasoning) int {
		d := slices.Index(efforts, l) - want
		return max(d, -d)
	}
	for _, l := range has {
		if l == ReasoningMax && r != l {
			continue
		}
		if best == "" || distance(l) < distance(best) || distance(l) == distance(best) && slices.Index(efforts, l) > slices.Index(efforts, best) {
			best = l
		}
	}
	return best
}
