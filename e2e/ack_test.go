package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// The answer to an interrupt of a run whose sub-agents work says that the run is suspended: nobody has to
// ask again, behind the tasks of a whole tree. One whose call ignores its context is answered all the same.
func TestTheAnswerToAnInterruptSaysThatATreeIsSuspended(t *testing.T) {
	t.Parallel()
	const helpers = 20
	for name, stubborn := range map[string]bool{"calls that end": false, "a call that does not end": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := on(t, shared(t))
			atWork, free := make(chan struct{}, helpers+1), make(chan struct{})
			s.startWorker(t, func(ctx context.Context, req *model.Request) *model.Reply {
				lead := req.Messages[0].Text() == "lead"
				if lead && len(req.Messages) == 1 {
					reply := asksFor()
					for i := range helpers {
						reply.Parts = append(reply.Parts, model.CallPart("", "subagent__helper", fmt.Sprintf(`{"task":"%d","background":true}`, i)))
					}
					return reply
				}
				atWork <- struct{}{}
				if lead && stubborn {
					<-free
				}
				<-ctx.Done()
				return nil
			}, []tool.Tool{}, agent.Definition{Name: "tester", Agents: []agent.SubAgent{{Agent: "helper"}}, Lifecycle: true}, agent.Definition{Name: "helper"})
			run := s.begin(t, "lead", nil)
			for range helpers + 1 {
				<-atWork
			}
			ack, err := run.Interrupt(t.Context(), "lunch", nil)
			require.NoError(t, err)
			require.Equal(t, agent.EffectAccepted, ack.Effect)
			require.Equal(t, "lunch", ack.Hold.Reason)
			if stubborn {
				require.Equal(t, agent.StatusSuspending, ack.Status)
				close(free)
			} else {
				require.Equal(t, agent.StatusSuspended, ack.Status)
			}
			require.Equal(t, agent.SuspensionHeld, s.suspended(t, run).Kind)
			_, err = run.Cancel(t.Context(), "", &client.CancelOptions{})
			require.NoError(t, err)
			require.Equal(t, agent.StatusCancelled, s.rest(t, run).Status)
		})
	}
}
