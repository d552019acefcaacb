package agent

import "math/bits"

// MaxAmount is the most tokens, micro-dollars, calls or runs that a sum of them has. Sums
// stop there, so whatever models and other runs tell, none of them overflows or falls.
const MaxAmount = 1 << 52

// ClampAmount returns a number of tokens, micro-dollars, calls or runs that somebody tells,
// within 0 and [MaxAmount].
func ClampAmount[T ~int | ~int64](n T) T { return T(min(max(int64(n), 0), MaxAmount)) }

// AddAmounts returns the sum of two numbers, each and all of it within 0 and [MaxAmount].
func AddAmounts[T ~int | ~int64](a, b T) T { return ClampAmount(ClampAmount(a) + ClampAmount(b)) }

// perSearch is how many tokens one search counts as: a price is for a million tokens, or a
// thousand searches.
const perSearch = 1000

// Of is the cost of some tokens and searches, rounded up to a micro-dollar. It is at most [MaxAmount].
func (p Price) Of(u Usage) USD {
	u = u.Bounded()
	plain := max(0, u.Input-u.CacheRead-u.CacheWrite)
	var high, low uint64 // 128 bits
	for _, one := range []struct {
		price  USD
		tokens int64
	}{{p.Input, plain}, {p.CacheRead, u.CacheRead}, {p.CacheWrite, u.CacheWrite}, {p.Output, u.Output}, {p.Search, ClampAmount(u.Searches * perSearch)}} {
		h, l := bits.Mul64(uint64(ClampAmount(one.price)), uint64(one.tokens))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	low, carry := bits.Add64(low, 999_999, 0)
	if high += carry; high >= 1_000_000 {
		return MaxAmount
	}
	cost, _ := bits.Div64(high, low, 1_000_000)
	return USD(min(cost, MaxAmount))
}

// Bounded returns the usage with each number within 0 and [MaxAmount].
func (u Usage) Bounded() Usage { return u.Add(Usage{}) }

// Bounded returns the tally with each number within 0 and [MaxAmount].
func (t Tally) Bounded() Tally { return t.Add(Tally{}) }
