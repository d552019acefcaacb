// Package agents runs agents from Temporal workflows of your own:
//
//	func Order(ctx workflow.Context, o Order) error {
//		review, err := agents.Execute[Review](ctx, "reviewer", o, nil)
//		if errors.Is(err, agent.CodeLimitCost) {
//			…
//		}
//		…
//	}
//
// A run is a child workflow, on a worker that has the agent (package worker). To people it is a
// run like any other: they list it, hold it and answer it by its session. [Operation] makes an
// agent a Nexus operation, for callers in other namespaces.
//
// A run may wait for a person for months. The future stays open for that time, over each
// continue-as-new of the run.
package agents
