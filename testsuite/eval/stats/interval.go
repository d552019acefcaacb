package stats

import "math"

// z is the quantile of the normal distribution for an interval of 95 %.
const z = 1.959963984540054

// Interval is an interval of 95 % for a rate. The zero value is of no trials.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Wilson returns the score interval of Wilson (1927) for the rate behind c passes in n
// trials. Without trials nothing is known: it is 0 to 1.
func Wilson(c, n int) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	p, m := float64(c)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	low, high := max(0, mid-half), min(1, mid+half)
	// Exact at the ends, where rounding would leave 1e-17.
	if c == 0 {
		low = 0
	}
	if c == n {
		high = 1
	}
	return Interval{low, high}
}

// PassAtK returns the unbiased estimate of pass@k: how likely at least one of k trials
// passes, if c of n passed (Chen et al. 2021). It is NaN unless 1 <= k <= n.
func PassAtK(n, c, k int) float64 { return 1 - none(n, n-c, k) }

// PassHatK returns the unbiased estimate of pass^k: how likely all of k trials pass, if c
// of n passed (Yao et al. 2024). It is NaN unless 1 <= k <= n.
func PassHatK(n, c, k int) float64 { return none(n, c, k) }

// none returns C(c,k)/C(n,k): the part of the sets of k trials that lie wholly within c of
// the n. A product, because the coefficients themselves overflow.
func none(n, c, k int) float64 {
	if k < 1 || k > n || c < 0 || c > n {
		return math.NaN()
	}
	p := 1.0
	for i := range k {
		if c-i <= 0 {
			return 0
		}
		p *= float64(c-i) / float64(n-i)
	}
	return p
}

// AtK returns the interval of pass@k for a rate with this interval. Pass@k grows with the
// rate, so the ends of one interval are those of the other.
func (i Interval) AtK(k int) Interval {
	at := func(p float64) float64 { return 1 - math.Pow(1-p, float64(k)) }
	return Interval{at(i.Low), at(i.High)}
}

// HatK returns the interval of pass^k for a rate with this interval.
func (i Interval) HatK(k int) Interval {
	return Interval{math.Pow(i.Low, float64(k)), math.Pow(i.High, float64(k))}
}

// Estimate is a rate with its interval.
type Estimate struct {
	Rate float64 `json:"rate"`
	Interval
}

// Mean returns the mean of independent estimates, such as of a suite's cases. Its interval
// recovers each one's variance from its interval (MOVER: Zou and Donner 2008). The cases
// are taken as they are: the interval says how the trials scatter, not how other cases
// would do. The zero value is that of no estimates.
func Mean(list []Estimate) (m Estimate) {
	if len(list) == 0 {
		return m
	}
	n := float64(len(list))
	var low, high float64
	for _, e := range list {
		m.Rate += e.Rate / n
		low += math.Pow(max(0, e.Rate-e.Low), 2)
		high += math.Pow(max(0, e.High-e.Rate), 2)
	}
	m.Low, m.High = max(0, m.Rate-math.Sqrt(low)/n), min(1, m.Rate+math.Sqrt(high)/n)
	return m
}
