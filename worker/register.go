package worker

import (
	"log/slog"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap/exp/zapslog"

	"github.com/fermata-agents/fermata/workflows"
)

// Registry is where [Options.Register] registers: an environment of Temporal's
// test suite.
type Registry interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, o activity.RegisterOptions)
}

// Register registers all that a worker with these options runs, for a test without
// a server, and returns the interceptors that belong to it. Nothing can ask another
// run there: no tree and no terminated run is known. Errors are those of [New].
// [testsuite.New] uses it.
//
// [testsuite.New]: https://pkg.go.dev/github.com/fermata-agents/fermata/testsuite#New
func (o *Options) Register(r Registry) ([]interceptor.WorkerInterceptor, error) {
	deeds, err := o.resolve()
	if err != nil {
		return nil, err
	}
	deeds.Logger = slog.New(zapslog.NewHandler(o.logger().Core()))
	shell := &workflows.Shell{Tails: deeds.Tails, Flights: deeds.Flights, Keys: o.ApprovalKeys, Build: o.build()}
	deeds.Register(r)
	shell.Register(r)
	return interceptors(shell), nil
}
