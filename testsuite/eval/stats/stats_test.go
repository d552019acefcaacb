package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The values are those of Newcombe (1998), table I, method 3, and of R's
// binom.confint(method = "wilson").
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		c, n      int
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
		{10, 10, 0.7225, 1},
		{0, 0, 0, 1},
	} {
		i := Wilson(tt.c, tt.n)
		require.InDelta(t, tt.low, i.Low, 5e-5, "%d of %d", tt.c, tt.n)
		require.InDelta(t, tt.high, i.High, 5e-5, "%d of %d", tt.c, tt.n)
	}
}

// pass@k is 1 - C(n-c,k)/C(n,k), and pass^k C(c,k)/C(n,k).
func TestPassAtK(t *testing.T) {
	for _, tt := range []struct {
		n, c, k int
		at, hat float64
	}{
		{5, 3, 1, 0.6, 0.6},
		{5, 3, 2, 0.9, 0.3}, // 1 - 1/10, and 3/10
		{5, 3, 3, 1, 0.1},   // no 3 of the 2 that failed; 1/10
		{10, 1, 10, 1, 0},
		{200, 10, 100, 0.999224, 0}, // 1 - C(190,100)/C(200,100)
		{4, 4, 4, 1, 1},
		{4, 0, 2, 0, 0},
	} {
		require.InDelta(t, tt.at, PassAtK(tt.n, tt.c, tt.k), 1e-4, "%+v", tt)
		require.InDelta(t, tt.hat, PassHatK(tt.n, tt.c, tt.k), 1e-6, "%+v", tt)
	}
	for _, k := range []int{0, 6} {
		require.True(t, math.IsNaN(PassAtK(5, 3, k)))
		require.True(t, math.IsNaN(PassHatK(5, 3, k)))
	}
	i := Interval{0.5, 0.9}
	require.InDelta(t, 0.75, i.AtK(2).Low, 1e-12)
	require.InDelta(t, 0.81, i.HatK(2).High, 1e-12)
}

// The p values are those of R: mcnemar.exact, fisher.test.
func TestExactTests(t *testing.T) {
	require.InDelta(t, 0.0309, McNemar(4, 14), 5e-5) // binom.test(4, 18)
	require.InDelta(t, 0.0625, McNemar(0, 5), 1e-12)
	require.InDelta(t, 1.0, McNemar(3, 3), 1e-12)
	require.InDelta(t, 1.0, McNemar(0, 0), 0)

	require.InDelta(t, 0.4857, Fisher(3, 4, 1, 4), 5e-5)      // the lady tasting tea
	require.InDelta(t, 0.002759, Fisher(1, 10, 11, 14), 5e-6) // Fisher's studies and men
	require.InDelta(t, 0.007937, Fisher(0, 5, 5, 5), 5e-6)
	require.InDelta(t, 1.0, Fisher(2, 5, 2, 5), 1e-9)
	require.InDelta(t, 1.0, Fisher(0, 0, 3, 5), 1e-9)
}

func TestSignFlip(t *testing.T) {
	p, how := SignFlip([]float64{1, 1, 1, 1, 1}, 1)
	require.Equal(t, MethodSignFlip, how)
	require.InDelta(t, 2.0/32, p, 1e-12)
	p, _ = SignFlip([]float64{0.2, -0.2, 0, 0}, 1)
	require.InDelta(t, 1.0, p, 1e-12)
	p, _ = SignFlip(nil, 1)
	require.InDelta(t, 1.0, p, 0)
	// Of one trial each it is McNemar's test, whatever the number.
	many := make([]float64, 0, 18)
	for i := range 18 {
		many = append(many, 1-2*float64(min(1, i/14)))
	}
	p, how = SignFlip(many, 7)
	require.Equal(t, MethodSignFlipSampled, how)
	require.InDelta(t, McNemar(4, 14), p, 3e-3)
	again, _ := SignFlip(many, 7)
	require.Equal(t, p, again, "the seed is fixed") //nolint:testifylint // the same number
}

func TestHolm(t *testing.T) {
	// R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
	require.InDeltaSlice(t, []float64{0.03, 0.06, 0.06, 0.02}, Holm([]float64{0.01, 0.04, 0.03, 0.005}), 1e-12)
	require.Empty(t, Holm(nil))
}

func TestMean(t *testing.T) {
	e := func(c, n int) Estimate { return Estimate{float64(c) / float64(n), Wilson(c, n)} }
	one := Mean([]Estimate{e(3, 5)})
	require.InDelta(t, e(3, 5).Low, one.Low, 1e-12)
	require.InDelta(t, e(3, 5).High, one.High, 1e-12)
	three := Mean([]Estimate{e(3, 5), e(3, 5), e(3, 5)})
	require.InDelta(t, 0.6, three.Rate, 1e-12)
	require.InDelta(t, (0.6-e(3, 5).Low)/math.Sqrt(3), 0.6-three.Low, 1e-12)
	require.Zero(t, Mean(nil))
}
