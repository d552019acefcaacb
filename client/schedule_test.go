package client

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A schedule whose ticks no run would take is refused before it is made.
func TestSchedulesThatCantBeMeant(t *testing.T) {
	c := New(&fake{}, nil) // which makes none
	for name, s := range map[string]struct {
		spec ScheduleSpec
		code agent.Code
	}{
		"blank":   {ScheduleSpec{Text: " \n"}, agent.CodeInvalidInput},
		"payload": {ScheduleSpec{Topic: "t", Payload: strings.Repeat("x", 64<<10)}, agent.CodeTooLarge},
		"text":    {ScheduleSpec{Text: strings.Repeat("x", agent.MaxPayload)}, agent.CodeTooLarge},
		"topic":   {ScheduleSpec{Topic: "a b"}, agent.CodeInvalidInput},
	} {
		s.spec.Every, s.spec.Session, s.spec.Agent = time.Hour, "desk", "watcher"
		err := c.CreateSchedule(t.Context(), "hourly", s.spec)
		require.ErrorIs(t, err, s.code, name)
		require.ErrorContains(t, err, "schedule refused: ", name)
	}
}
