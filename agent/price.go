package agent

import (
	"math/bits"

	"github.com/fermata-agents/fermata/internal/amount"
)

// Price is what a model costs, in US dollars. Zero prices are unknown or free.
type Price struct {
	// Input is the price of 1,000,000 input tokens.
	Input USD `json:"input,omitempty"`
	// Output is the price of 1,000,000 output tokens.
	Output USD `json:"output,omitempty"`
	// CacheRead is the price of 1,000,000 input tokens that the provider had cached.
	CacheRead USD `json:"cache_read,omitempty"`
	// CacheWrite is the price of 1,000,000 input tokens that the provider caches.
	CacheWrite USD `json:"cache_write,omitempty"`
	// Search is the price of 1,000 web searches that the provider makes itself.
	Search USD `json:"search,omitempty"`
}

// ModelPrice is a model's full name and its price, which is zero if it is unknown.
type ModelPrice struct {
	Model string `json:"model"`
	Price Price  `json:"price,omitzero"`
}

// perSearch is how many tokens one search counts as. Prices are for a million tokens, or
// for a thousand searches.
const perSearch = 1000

// Of returns the cost of some tokens and searches, rounded up to a micro-dollar. The
// result is at most 2^52 micro-dollars.
func (p Price) Of(u Usage) USD {
	u = u.Bounded()
	plain := max(0, u.Input-u.CacheRead-u.CacheWrite)
	// Two numbers of 2^52 each do not fit into 64 bits, so the sum has 128.
	var high, low uint64 // 128 bits
	for _, one := range []struct {
		price  USD
		tokens int64
	}{{p.Input, plain}, {p.CacheRead, u.CacheRead}, {p.CacheWrite, u.CacheWrite}, {p.Output, u.Output}, {p.Search, amount.Clamp(u.Searches * perSearch)}} {
		h, l := bits.Mul64(uint64(amount.Clamp(one.price)), uint64(one.tokens))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	// Rounds up, so that many cheap calls can't cost nothing.
	low, carry := bits.Add64(low, 999_999, 0)
	if high += carry; high >= 1_000_000 {
		return amount.Max
	}
	cost, _ := bits.Div64(high, low, 1_000_000)
	return USD(min(cost, amount.Max))
}

// Bounded returns the usage with each number within 0 and 2^52.
func (u Usage) Bounded() Usage { return u.Add(Usage{}) }

// Bounded returns the tally with each number within 0 and 2^52.
func (t Tally) Bounded() Tally { return t.Add(Tally{}) }
