package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// hush is a verb of a build that is newer than the run's worker.
type hush struct{ agent.PauseCommand }

func (hush) Verb() agent.Verb { return "hush" }

// A worker refuses a verb that only a newer build knows, and the code says that it is not the run's
// fault.
func TestAVerbThatTheWorkerDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Text: "done"}))
	run := s.begin(t, "go", &client.StartOptions{Park: &agent.Conditions{}})
	s.suspended(t, run)
	_, err := signals.Update(t.Context(), s.temporal, run.Session, hush{})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "older build")
	s.say(t, run, agent.ResumeCommand{})
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
}
