package workflows_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// beating notes when activities send heartbeats, before the SDK holds any back.
type beating struct {
	interceptor.WorkerInterceptorBase
	at []time.Time
}

func (b *beating) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &beatingIn{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, to: b}
}

type beatingIn struct {
	interceptor.ActivityInboundInterceptorBase
	to *beating
}

func (b *beatingIn) Init(out interceptor.ActivityOutboundInterceptor) error {
	return b.Next.Init(&beatingOut{ActivityOutboundInterceptorBase: interceptor.ActivityOutboundInterceptorBase{Next: out}, to: b.to})
}

type beatingOut struct {
	interceptor.ActivityOutboundInterceptorBase
	to *beating
}

func (b *beatingOut) RecordHeartbeat(ctx context.Context, details ...any) {
	b.to.at = append(b.to.at, time.Now())
	b.Next.RecordHeartbeat(ctx, details...)
}

// A heartbeat is a write at the server, and an action that is billed. A call of a minute sends one every
// 12 seconds until its end, and not only the first one late.
func TestACallOfAMinuteSendsFourHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool.New("slow", "", func(ctx context.Context, _ *tool.Call, _ none) (string, error) {
			<-time.After(59 * time.Second) // of the bubble's clock
			return "done", nil
		}, nil)
		b := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Calls: calls("slow")}, testsuite.Reply{Text: "done"}), slow)
		beats := &beating{}
		b.between = beats
		b.fresh()
		b.SetTestTimeout(time.Hour)
		begun := time.Now()
		require.Equal(t, agent.StatusCompleted, b.run(t, "go").Status)
		var after []time.Duration
		for _, at := range beats.at {
			after = append(after, at.Sub(begun))
		}
		require.Equal(t, []time.Duration{12 * time.Second, 24 * time.Second, 36 * time.Second, 48 * time.Second}, after)
	})
}
