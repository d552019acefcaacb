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
	r := Suspensions{Since: at, Open: &OpenSuspension{ID: "s-1"}}
	require.Equal(t, []bool{false, false}, []bool{r.atRest(), r.published()})
	require.Zero(t, r.continueAsNewAt())
	r.Open.AtRest, r.Open.Published = true, true
	require.Equal(t, at.Add(continueAsNewAfter), r.continueAsNewAt())
	r.markContinuedAsNew()
	require.Zero(t, r.continueAsNewAt())
	require.Equal(t, time.Minute, r.close(at.Add(time.Minute)))
	require.Equal(t, []any{time.Minute, false}, []any{r.SuspendedFor, r.atRest()})
	require.Zero(t, r.close(at.Add(time.Hour)))
	require.Equal(t, time.Minute, r.SuspendedFor)
}
