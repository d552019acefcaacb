package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// A provider that asks for a day is waited for no longer than a call may take. Whoever
// follows the run and whoever looks at it is told, and the wait can be interrupted.
func TestAProviderThatAsksForADay(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "patient"}, []testsuite.Reply{
		{Text: "Here I am.", Fail: []testsuite.Failure{{Kind: agent.FaultRateLimit, HTTP: 429, Message: "slow down", RetryAfter: 24 * time.Hour}}},
	}}).works()
	run := s.begin("a", "patient", nil)
	d := s.sits("attach", run.Session)
	d.sees("the model is called again in 10m0s, at ")
	r := s.run("show", run.Session)
	require.Regexp(t, `delayed +until .*, in (10m0s|9m\d+s): \[provider_error\] .*slow down; it asked to wait 24h0m0s`, r.out)
	shown := lastLine[shown](t, s.run("show", run.Session, "--json").out)
	require.Len(t, shown.InFlight, 1)
	require.NotNil(t, shown.InFlight[0].Delay)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), shown.InFlight[0].Delay.Until, time.Minute)
	var told []agent.Delay
	for _, line := range lines(s.run("events", run.Session, "--json").out) {
		var e agent.WireEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Type == agent.EventModelDelayed {
			var delay agent.Delay
			require.NoError(t, json.Unmarshal(e.Data, &delay))
			told = append(told, delay)
		}
	}
	require.Len(t, told, 1)
	require.True(t, shown.InFlight[0].Delay.Until.Equal(told[0].Until))

	require.Zero(t, s.run("interrupt", run.Session, "--wait").exit)
	require.Zero(t, s.run("resume", run.Session).exit)
	require.Contains(t, d.ends(0).out, "Here I am.")
}
