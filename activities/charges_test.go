package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
)

// attempt runs something as an attempt of a step that finds what another has left.
func attempt(t *testing.T, left *Carryover, do func(ctx context.Context, tb *charges)) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	if left != nil {
		env.SetHeartbeatDetails(*left)
	}
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		tb := newCharges(ctx, nil)
		tb.measures(estimatorOf(&store.View{}, &agent.Spec{}))
		do(ctx, tb)
		return nil
	}, activity.RegisterOptions{Name: "step"})
	_, err := env.ExecuteActivity("step")
	require.NoError(t, err)
}

var question = []agent.Message{agent.TextMessage(agent.RoleUser, "0123456789")} // 46 tokens, about

// A question that broke off is charged with what it had: the request as counted, or as the
// provider told, and what had come of the reply.
func TestABrokenQuestionIsCharged(t *testing.T) {
	broke := model.Fault(agent.FaultTransient, 200, 0, "the stream broke off")
	attempt(t, nil, func(ctx context.Context, tb *charges) {
		tb.startCall("", question)
		tb.addReceived(30, agent.Usage{})
		tb.failed(broke, "", agent.Price{})
		tb.startCall("backup", question)
		tb.addReceived(30, agent.Usage{Input: 1000, Output: 50, CacheRead: 600, Searches: 2})
		tb.failed(broke, "backup", agent.Price{Input: agent.Dollar, Output: agent.Dollar, CacheRead: agent.Dollar})
		_, err := tb.settle(ctx, wire.Reply{}, broke)
		var e *agent.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, []agent.Charge{
			{Usage: agent.Usage{Input: 46, Output: 10}, Estimated: true},
			{Model: "backup", Usage: agent.Usage{Input: 1000, Output: 50, CacheRead: 600, Searches: 2}, Cost: 1050, Estimated: true},
		}, e.Charges)
	})
}

// What was refused, or did not reach the provider, costs nothing.
func TestARefusedQuestionIsFree(t *testing.T) {
	unsent := model.Fault(agent.FaultTransient, 0, 0, "no such host")
	unsent.Provider.Unsent = true
	for _, err := range []error{
		unsent, model.Fault(agent.FaultRateLimit, 429, 0, ""), model.Fault(agent.FaultTransient, 500, 0, ""), model.Fault(agent.FaultAuth, 0, 0, ""), errOpen,
	} {
		attempt(t, nil, func(ctx context.Context, tb *charges) {
			tb.startCall("", question)
			tb.failed(err, "", agent.Price{})
			reply, got := tb.settle(ctx, wire.Reply{Finish: agent.FinishStop}, nil)
			require.NoError(t, got)
			require.Empty(t, reply.Charges, "%v", err)
		})
	}
	attempt(t, nil, func(_ context.Context, tb *charges) {
		tb.startCall("", question)
		tb.addReceived(9, agent.Usage{})
		tb.failed(model.Fault(agent.FaultOverload, 529, 0, ""), "", agent.Price{})
		require.Len(t, tb.Charges, 1, "something had come")
	})
}

// An attempt takes over what the one before has left; one that left nothing is charged
// with the request.
func TestALostAttemptIsCharged(t *testing.T) {
	open := agent.Charge{Usage: agent.Usage{Input: 700, Output: 30}, Estimated: true}
	attempt(t, &Carryover{Attempt: 1, Open: &open}, func(ctx context.Context, tb *charges) {
		tb.startCall("", question)
		tb.endCall(&agent.Charge{Usage: agent.Usage{Input: 40, Output: 1}})
		reply, err := tb.settle(ctx, wire.Reply{Usage: agent.Usage{Input: 40, Output: 1}}, nil)
		require.NoError(t, err)
		require.Equal(t, []agent.Charge{open}, reply.Charges)
	})
	attempt(t, &Carryover{UnknownAttempts: 2}, func(_ context.Context, tb *charges) {
		tb.startCall("", question)
		require.Equal(t, []agent.Charge{{Usage: agent.Usage{Input: 2 * 46}, Estimated: true}}, tb.Charges)
	})
}

// A reply that came and was of no use is charged as the provider told.
func TestAUselessReplyIsCharged(t *testing.T) {
	attempt(t, nil, func(ctx context.Context, tb *charges) {
		tb.startCall("", question)
		tb.endCall(&agent.Charge{Usage: agent.Usage{Input: 40, Output: 9}})
		_, err := tb.settle(ctx, wire.Reply{}, agent.Errorf(agent.CodeBadOutput, "it is too long"))
		var e *agent.Error
		require.True(t, errors.As(err, &e))
		require.Equal(t, []agent.Charge{{Usage: agent.Usage{Input: 40, Output: 9}}}, e.Charges)
	})
}

// A call that is made by another activity, since its worker was lost or had no slot, takes
// along what was used; the last error says what no attempt could tell.
func TestWhatIsUsedIsCarriedOn(t *testing.T) {
	spent := []agent.Charge{{Usage: agent.Usage{Input: 5}, Estimated: true}}
	open := &agent.Charge{Usage: agent.Usage{Input: 700, Output: 30}, Estimated: true}
	in := ModelInput{}
	in.TakeOver(durable.FromTemporal(temporal.NewHeartbeatTimeoutError(Carryover{Attempt: 2, Charges: spent, Open: open})))
	require.Equal(t, &Carryover{Charges: spent, Open: open}, in.Carryover)
	in.TakeOver(durable.FromTemporal(temporal.NewHeartbeatTimeoutError()))
	in.TakeOver(agent.Errorf(agent.CodeTimeout, "%w", durable.NoSlot{Tried: 2}))
	require.Equal(t, 3, in.Carryover.UnknownAttempts)
	err := in.AddCharges(agent.Errorf(agent.CodeWorkerLost, "it was lost"))
	require.Equal(t, []agent.Charge{spent[0], *open, {Estimated: true}, {Estimated: true}, {Estimated: true}}, err.Charges)
	in.TakeOver(agent.Errorf(agent.CodeTimeout, "%w", durable.NoSlot{HeartbeatDetails: []byte(`{"charges":[{"usage":{"input_tokens":9}}]}`)}))
	require.Equal(t, []agent.Charge{{Usage: agent.Usage{Input: 9}}}, in.Carryover.Charges)
}
