package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/internal/amount"
)

// USD is an amount of money in millionths of a US dollar. JSON has it as a number of
// dollars with at most six decimals. The zero value is no money, or no limit.
type USD int64

// Dollar is one US dollar.
const Dollar USD = 1_000_000

// String returns the amount with as many decimals as it needs, "0.4123".
func (u USD) String() string {
	s := strconv.FormatFloat(float64(u)/float64(Dollar), 'f', 6, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// MarshalJSON writes a number of dollars.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalJSON reads a number of dollars and rounds it to six decimals.
func (u *USD) UnmarshalJSON(b []byte) error {
	var dollars float64
	if err := json.Unmarshal(b, &dollars); err != nil {
		return fmt.Errorf("%s is not an amount in US dollars, such as 2.5", b)
	}
	micro := math.Round(dollars * float64(Dollar))
	if math.Abs(micro) > amount.Max {
		return fmt.Errorf("%s dollars are out of range", b)
	}
	*u = USD(micro)
	return nil
}

// Duration is a time.Duration that JSON has in Go's form, "90s".
type Duration time.Duration

// Units of a duration: 3 * [Hour].
const (
	Second = Duration(time.Second)
	Minute = 60 * Second
	Hour   = 60 * Minute
	Day    = 24 * Hour
)

// String returns the duration in Go's form, without trailing zero parts: "168h".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes Go's form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads Go's form, optionally after whole days: "7d", "1d12h".
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	v, err := time.Duration(0), error(nil)
	if whole, rest, found := strings.Cut(s, "d"); found {
		var n uint64
		n, err = strconv.ParseUint(whole, 10, 16)
		v, s = time.Duration(n)*24*time.Hour, cmp.Or(rest, "0s")
	}
	rest, wrong := time.ParseDuration(s)
	// v+rest < v means that the sum overflowed.
	if err != nil || wrong != nil || v > 0 && (rest < 0 || v+rest < v) {
		return fmt.Errorf("%q is not a duration such as \"90s\" or \"7d\"", b)
	}
	*d = Duration(v + rest)
	return nil
}
