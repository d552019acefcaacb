package signals

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// server keeps the first outcome of an update under its id, as Temporal does, and
// asks the run for one where it has none.
type server struct {
	client.Client // nil: panics
	run           func() error
	kept          map[string]error
}

func (s *server) update(o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if _, ok := s.kept[o.UpdateID]; !ok {
		s.kept[o.UpdateID] = s.run()
	}
	return outcome{err: s.kept[o.UpdateID]}, nil
}

func (s *server) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return s.update(o)
}

func (s *server) NewWithStartWorkflowOperation(client.StartWorkflowOptions, any, ...any) client.WithStartWorkflowOperation {
	return nil
}

func (s *server) UpdateWithStartWorkflow(_ context.Context, o client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return s.update(o.UpdateOptions)
}

type outcome struct {
	client.WorkflowUpdateHandle
	err error
}

func (o outcome) Get(context.Context, any) error { return o.err }

// What was refused is weighed anew when it is said again with the same id; what was
// taken is answered as the first time, for as long as the server knows (HA-95).
func TestARefusalIsNotForEver(t *testing.T) {
	event := agent.EmitCommand{CommandHeader: agent.CommandHeader{ID: "paid-118"}, Topic: "orders.paid"}
	for name, say := range map[string]func(*server) error{
		"update": func(s *server) error { _, err := Update(t.Context(), s, "desk", event); return err },
		"start": func(s *server) error {
			_, err := UpdateWithStart(t.Context(), s, client.StartWorkflowOptions{ID: "desk"}, agent.Start{}, event)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			full := true
			s := &server{kept: map[string]error{}, run: func() error {
				if full {
					return durable.Failure(agent.Errorf(agent.CodeQueueFull, "no"), nil)
				}
				return nil
			}}
			require.ErrorIs(t, say(s), agent.CodeQueueFull)
			full = false
			require.NoError(t, say(s))
		})
	}
	asked := 0
	s := &server{kept: map[string]error{}, run: func() error { asked++; return nil }}
	for range 2 {
		_, err := Update(t.Context(), s, "desk", event)
		require.NoError(t, err)
	}
	require.Equal(t, 1, asked)
	other := agent.EmitCommand{CommandHeader: event.CommandHeader, Topic: "orders.lost"}
	_, err := Update(t.Context(), s, "desk", other)
	require.NoError(t, err)
	require.Equal(t, 2, asked, "what else is said under the id, the run itself decides")
}

// A resume that hooks refuse is said once, so that they are asked once. Said again, it is asked about anew.
func TestARefusedResumeIsSaidOnce(t *testing.T) {
	asked := 0
	s := &server{kept: map[string]error{}, run: func() error {
		asked++
		return durable.Failure(agent.Errorf(agent.CodeDenied, "resume refused: the hook gate did not allow it"), nil)
	}}
	for i := range 2 {
		_, err := Update(t.Context(), s, "desk", agent.ResumeCommand{CommandHeader: agent.CommandHeader{ID: "r-1"}})
		require.ErrorIs(t, err, agent.CodeDenied)
		require.Equal(t, i+1, asked)
	}
}

// A rejection is no older outcome: it is not said again, so that an audit has it once.
func TestARejectionIsSaidOnce(t *testing.T) {
	asked := 0
	s := &server{kept: map[string]error{}, run: func() error {
		asked++
		return durable.Rejection(agent.Errorf(agent.CodeDenied, "no"))
	}}
	_, err := Update(t.Context(), s, "desk", agent.PauseCommand{CommandHeader: agent.CommandHeader{ID: "v-1"}})
	require.ErrorIs(t, err, agent.CodeDenied)
	require.Equal(t, 1, asked)
}
