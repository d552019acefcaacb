package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Method names a test.
type Method string

// The tests.
const (
	// MethodMcNemar is McNemar's exact test, of pairs of one trial each.
	MethodMcNemar Method = "mcnemar_exact"
	// MethodSignFlip is the exact permutation test of paired differences: each may as well
	// have the other sign.
	MethodSignFlip Method = "permutation_exact"
	// MethodSignFlipSampled is the same, over 100,000 permutations drawn with a fixed seed.
	MethodSignFlipSampled Method = "permutation_sampled"
	// MethodFisher is Fisher's exact test of two independent samples.
	MethodFisher Method = "fisher_exact"
)

// McNemar returns the two-sided p value of McNemar's exact test. b pairs passed only
// before, and c only after. Without such pairs it is 1.
func McNemar(b, c int) float64 {
	n := b + c
	if n == 0 {
		return 1
	}
	p := 0.0
	for i := range min(b, c) + 1 {
		p += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}

// Fisher returns the two-sided p value of Fisher's exact test: c1 of n1 trials passed in
// one sample, and c2 of n2 in the other. It sums the tables that are at most as likely as
// the observed one.
func Fisher(c1, n1, c2, n2 int) float64 {
	c, n := c1+c2, n1+n2
	at := func(i int) float64 { return logChoose(n1, i) + logChoose(n2, c-i) - logChoose(n, c) }
	// A little room: equally likely tables differ by rounding.
	seen, p := at(c1)+1e-9, 0.0
	for i := max(0, c-n2); i <= min(n1, c); i++ {
		if l := at(i); l <= seen {
			p += math.Exp(l)
		}
	}
	return min(1, p)
}

func logChoose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return lg(n) - lg(k) - lg(n-k)
}

const (
	mostExact = 16      // differences of which all signs are tried
	samples   = 100_000 // permutations that are drawn otherwise
)

// SignFlip returns the two-sided p value of the permutation test of paired differences. Up
// to 16 that are not zero it is exact. Beyond it draws permutations with the seed, and
// counts the observed one too, so the p value is never zero.
func SignFlip(diffs []float64, seed uint64) (p float64, how Method) {
	diffs = slices.DeleteFunc(slices.Clone(diffs), func(d float64) bool { return d == 0 })
	seen := 0.0
	for _, d := range diffs {
		seen += d
	}
	// Sums of the same numbers in another order differ by rounding.
	extreme := func(sum float64) bool { return math.Abs(sum) >= math.Abs(seen)-1e-9 }
	if len(diffs) <= mostExact {
		hits, all := 0, 1<<len(diffs)
		for signs := range all {
			sum := 0.0
			for i, d := range diffs {
				if signs>>i&1 == 1 {
					d = -d
				}
				sum += d
			}
			if extreme(sum) {
				hits++
			}
		}
		return float64(hits) / float64(all), MethodSignFlip
	}
	draw, hits := rand.New(rand.NewPCG(seed, seed)), 1
	for range samples {
		sum := 0.0
		for _, d := range diffs {
			if draw.Uint64()&1 == 1 {
				d = -d
			}
			sum += d
		}
		if extreme(sum) {
			hits++
		}
	}
	return float64(hits) / (samples + 1), MethodSignFlipSampled
}

// Holm returns the p values of several tests, adjusted for their number by Holm's method,
// in the order given.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	adjusted, worst := make([]float64, len(ps)), 0.0
	for rank, i := range order {
		// A later one may not become more significant than an earlier one.
		worst = max(worst, min(1, ps[i]*float64(len(ps)-rank)))
		adjusted[i] = worst
	}
	return adjusted
}
