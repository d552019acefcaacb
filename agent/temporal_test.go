package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClientToolCallsNothingOfTemporal(t *testing.T) {
	d := Definition{Name: "a", Model: "m", ClientTools: []ToolSpec{{Name: "look"}}}
	require.NoError(t, d.Check())
	d.ClientTools[0].Temporal = &TemporalCall{Kind: TemporalActivity, Type: "Look", TaskQueue: "house"}
	require.ErrorContains(t, d.Check(), "client_tools[0]: the client carries a client tool out")
}

func TestWhatATemporalCallNeeds(t *testing.T) {
	call := TemporalCall{Kind: TemporalActivity, Type: "Pay", TaskQueue: "bank"}
	require.NoError(t, call.Check())
	require.Equal(t, "activity Pay on task queue bank", call.String())
	call.NonRetryable = make([]string, 17)
	require.ErrorContains(t, call.Check(), "17 error types are given, and at most 16 are taken")
	require.ErrorContains(t, TemporalCall{Kind: "cron"}.Check(), `"cron" is neither activity, workflow nor nexus`)
	call = TemporalCall{Kind: TemporalNexus, Type: "pay", Endpoint: "bank", Service: "cards"}
	require.NoError(t, call.Check())
	require.Equal(t, "operation pay of service cards at Nexus endpoint bank", call.String())
}
