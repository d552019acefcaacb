// Package flow is for agents whose next steps a Go function decides, in place of a model. It
// composes agents, tools and people:
//
//	func review(c flow.Context, in Change) (Report, error) {
//		found, err := flow.Map(c, "file", in.Files, func(c flow.Context, file string) (Finding, error) {
//			return flow.Agent[Finding](c, "reviewer", file, nil)
//		}, &flow.MapOptions{Width: 5})
//		if err != nil {
//			return Report{}, err
//		}
//		merge, err := flow.Ask[bool](c, "Merge it?", nil)
//		…
//	}
//
//	var Review = flow.New("review", review, &flow.Options{Agents: []agent.SubAgent{{Agent: "reviewer"}}})
//
// A worker gets it in worker.Options.Flows. To whoever starts, holds, asks, stops, reads or forks
// it, a flow is an agent; it can be a sub-agent, and other agents and flows can be its sub-agents.
// The language's for, if and switch are its edges: there is nothing to draw and to compile.
//
// # How it runs
//
// The function runs in no workflow. The run asks it for its next steps, as it would ask a model,
// and records its answer. So after a pause, a restart or a deploy, a step that has its result never runs again: where the
// function is gone from memory (another worker, another build, a suspension, a fork), it runs again
// from its beginning, and every step that has its result returns it at once.
//
// Therefore what the function does besides asking for steps must be the same each time: take
// the time from [Now], put what touches the world into [Do], range over no map, and use [Map] and
// [Parallel] instead of go statements. testsuite.Rehearse finds what is not.
//
// # Files
//
// A type [WithFiles] as the In or Out of a flow, or as the Out of a step, has files besides its value:
// those of the start, those that a tool has shown, or those that an agent gives back.
//
// # Paths
//
// A step has a path: the scopes around it and its name, such as "file.3/reviewer"; the second
// step of a name in a scope is "reviewer#2". A result is found by its path. A new build of the
// function may add steps, remove steps and change what is between them, also for runs in
// progress. A step that has another path there is another step and is done anew: keep the names
// of steps that have effects.
package flow
