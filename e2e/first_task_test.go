package e2e

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/testsuite"
)

// A run that rests in its first task, whose worker is lost before the server hears of it,
// begins anew as if nothing had been: it has stored nothing that it would take for another's.
func TestAFirstTaskThatIsLost(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		def  agent.Definition
		text string
		o    *client.StartOptions
	}{
		"a run that begins parked": {text: "go", o: &client.StartOptions{Park: &agent.Conditions{After: agent.Duration(time.Hour)}}},
		"a daemon without a task":  {def: agent.Definition{Daemon: &agent.Daemon{Topics: []string{"x"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := on(t, shared(t))
			plain, lost := s.temporal, atomic.Bool{}
			s.temporal = dialHearing(t, shared(t), func(_ string, in any) error {
				if r, ok := in.(*workflowservice.RespondWorkflowTaskCompletedRequest); ok && len(r.GetCommands()) >= 5 && !lost.Swap(true) {
					return status.Error(codes.NotFound, "the worker is gone")
				}
				return nil
			})
			s.work(t, c.def, testsuite.NewScript(), echo(nil))
			s.temporal = plain
			run := s.begin(t, c.text, c.o)
			require.Equal(t, agent.StatusSuspended, s.rest(t, run).Status)
			require.True(t, lost.Load())
		})
	}
}
