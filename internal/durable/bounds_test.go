package durable

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// An error says no more than a line or two, whatever was sent: it is kept and shown.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<19)
	var s agent.Start
	for _, data := range []string{`{"` + long + `":1}`, `{"limits":{"wall_clock":"` + long + `"}}`, `{"input":{"data":{"` + long + `":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}}`} {
		err := Within("start refused", Decode([]byte(data), &s, agent.MaxPayload))
		require.Equal(t, agent.CodeInvalidInput, err.Code)
		require.Less(t, len(err.Path), 600)
		require.Less(t, len(err.Message), 5_000)
	}
	var app *temporal.ApplicationError
	require.ErrorAs(t, Failure(agent.Errorf(agent.CodeStale, "%s", long), nil), &app)
	require.Less(t, len(app.Message()), 5_000)
	var details agent.Error
	require.NoError(t, app.Details(&details))
	require.Equal(t, app.Message(), details.Message)
}

// A workflow's task has two seconds for all that it does: a path is not put together
// for each of the many values below a long name.
func TestDecodeIsQuick(t *testing.T) {
	data := []byte(`{"input":{"data":{"` + strings.Repeat("k", 1<<19) + `":[` + strings.Repeat("0,", 200_000) + `0]}}}`)
	var s agent.Start
	began := time.Now()
	require.NoError(t, Decode(data, &s, agent.MaxPayload))
	require.Less(t, time.Since(began), 5*time.Second)
}

// What the server says of sizes and numbers has codes.
func TestTheServersLimitsHaveCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want agent.Code
	}{
		{serviceerror.NewInvalidArgument("Blob data size exceeds limit."), agent.CodeTooLarge},
		{errors.New("grpc: received message larger than max (5242880 vs. 4194304)"), agent.CodeTooLarge},
		{serviceerror.NewInvalidArgument("exceeded workflow execution limit for signal events"), agent.CodeQueueFull},
		{serviceerror.NewFailedPrecondition("The limit on the total number of distinct updates in this workflow has been reached (2000)."), agent.CodeQueueFull},
		{serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, "limit on number of concurrent in-flight updates"), agent.CodeQueueFull},
		{serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded"), agent.CodeUnreachable},
		{serviceerror.NewFailedPrecondition("no poller"), agent.CodeNoWorker},
		{temporal.NewApplicationError("unknown update hush. KnownUpdates=[pause resume]", "wrapError"), agent.CodeInvalidInput},
		{serviceerror.NewInvalidArgument("what?"), agent.CodeInternal},
	} {
		require.Equal(t, c.want, agent.CodeOf(FromRPC(c.err)), "%v", c.err)
	}
}
