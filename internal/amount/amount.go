package amount

// Max is the largest number of tokens, micro-dollars, calls or runs, and the largest sum.
// It leaves room in int64 for sums.
const Max = 1 << 52

// Clamp limits a number that a model or another run reports to 0 … [Max].
func Clamp[T ~int | ~int64](n T) T { return T(min(max(int64(n), 0), Max)) }

// Add returns the sum of two numbers. It limits each number, and the sum, to 0 … [Max].
func Add[T ~int | ~int64](a, b T) T { return Clamp(Clamp(a) + Clamp(b)) }
