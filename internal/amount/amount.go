package amount

// Max is the most tokens, micro-dollars, calls or runs that a number or a sum can have. Sums
// stop there.
const Max = 1 << 52

// Clamp returns a number that a model or another run reports, within 0 and [Max].
func Clamp[T ~int | ~int64](n T) T { return T(min(max(int64(n), 0), Max)) }

// Add returns the sum of two numbers. Each number, and the sum, is taken within 0 and [Max].
func Add[T ~int | ~int64](a, b T) T { return Clamp(Clamp(a) + Clamp(b)) }
