package callback

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
)

// mute is a server whose task queue has no worker.
type mute struct{ *fake }

func (mute) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, serviceerror.NewFailedPrecondition("no poller")
}

// No callback is answered with 410, which makes a Standard Webhooks sender disable the address for good.
// Where the session's next run may take the event, the sender is asked to come again.
func TestCallbacksToAnEndedRun(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		daemon     bool
		alone      bool // no worker answers
		again      bool
	}{
		{name: "a run", path: "/callback/trip-42?topic=a"},
		{name: "a run, no topic", path: "/callback/trip-42"},
		{name: "a daemon", path: "/callback/trip-42?topic=a", daemon: true, again: true},
		{name: "a daemon, no topic", path: "/callback/trip-42", daemon: true, again: true},
		{name: "this run of a daemon", path: "/callback/trip-42?topic=a&run=r-1", daemon: true},
		{name: "nobody says what it was", path: "/callback/trip-42?topic=a", alone: true, again: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := parked(agent.Conditions{})
			f.status.Status, f.status.Suspension = agent.StatusCancelled, nil
			f.refuse = serviceerror.NewNotFound("workflow execution already completed")
			if tt.daemon {
				f.status.QueuedEvents = &agent.Used[int]{Max: 256}
			}
			d := opened(t, f, bearer(t))
			if tt.alone {
				d.h.client = client.New(mute{f}, nil)
			}
			a := d.post(tt.path, "{}", with("Idempotency-Key", "paid-118"))
			require.Equal(t, []any{http.StatusConflict, agent.CodeClosed, tt.again}, []any{a.status, a.Code, a.Retryable}, a.text)
			require.Equal(t, tt.again, a.header.Get("Retry-After") != "")
			if tt.again {
				require.Contains(t, a.Detail, "Send it again, with the same id")
			} else {
				require.Contains(t, a.Detail, "too late")
			}
		})
	}
}

// Whatever the code, no answer is 410.
func TestNoAnswerIsGone(t *testing.T) {
	for _, code := range agent.Codes() {
		require.NotEqual(t, http.StatusGone, statusOf(code), code)
	}
}
