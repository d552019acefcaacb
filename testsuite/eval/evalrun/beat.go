package evalrun

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
)

const (
	// heartbeatTime is how long a step may send no heartbeat. Then its worker counts as lost,
	// and another one makes the step: every step has it, since a resumed evaluation would
	// otherwise wait for the whole time of a step whose process was killed.
	heartbeatTime  = 10 * time.Second
	heartbeatEvery = 2 * time.Second
)

// beating makes a step send heartbeats while it works. A heartbeat also brings the
// cancellation of a trial that was stopped, which ends a judge's call.
func beating[In, Out any](do func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) { return beat(ctx, nil, do, in) }
}

// waiting is beating for a step that only waits. It ends as soon as its worker stops: a
// worker that has stopped reports nothing, and the next one would wait for the missing
// heartbeat. A step that does something has its worker's WorkerStopTimeout to end.
func waiting[In, Out any](do func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		return beat(ctx, activity.GetWorkerStopChannel(ctx), do, in)
	}
}

// beat does a step and sends its heartbeats. The step is cut off when stopped is closed.
func beat[In, Out any](ctx context.Context, stopped <-chan struct{}, do func(context.Context, In) (Out, error), in In) (Out, error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	go func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-stopped:
				cut()
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	out, err := do(ctx, in)
	if err != nil {
		err = soon(ctx, err)
	}
	return out, err
}

// soon makes an error of a step that was cut off one that is tried again: its worker stops,
// and another one continues. If the trial itself was stopped, nobody waits for it.
func soon(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return agent.Errorf(agent.CodeTimeout, "the step was cut off: %w", err)
	}
	return err
}
