package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A run says that it is suspended when that is stored, carries over once a suspension if it
// rests for long, and counts how long it rested.
func TestHowARunRests(t *testing.T) {
	at := time.Unix(100, 0)
	r := Rest{Since: at, Wait: &Wait{ID: "s-1"}}
	require.Equal(t, []bool{false, false}, []bool{r.resting(), r.saved()})
	require.Zero(t, r.carryAt())
	r.Wait.Resting, r.Wait.Saved = true, true
	require.Equal(t, at.Add(carryAfter), r.carryAt())
	r.markCarried()
	require.Zero(t, r.carryAt())
	require.Equal(t, time.Minute, r.close(at.Add(time.Minute)))
	require.Equal(t, []any{time.Minute, false}, []any{r.Parked, r.resting()})
	require.Zero(t, r.close(at.Add(time.Hour)))
	require.Equal(t, time.Minute, r.Parked)
}
