package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A time is read in Go's form, with days before it, and written in Go's form.
func TestDurationOfDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0d5m": 5 * time.Minute, "-5m": -5 * time.Minute,
	} {
		var d Duration
		require.NoError(t, d.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, time.Duration(d), text)
	}
	require.Equal(t, "168h", Duration(7*24*time.Hour).String())
	for _, text := range []string{"", "d", "soon", "7", "1.5d", "-1d", "1d-5h", "1d1d", "65536d", "65535d2562047h"} {
		d := Duration(5)
		require.ErrorContains(t, d.UnmarshalText([]byte(text)), `is not a duration such as "90s" or "7d"`, text)
		require.EqualValues(t, 5, d, text)
	}
}
