// Package evalrun runs a suite as a Temporal workflow, with a workflow for each trial.
//
// [Register] registers both, and their activities, on a worker of any task queue. [Start]
// starts an evaluation there, and [Get] finds one. If the process of the worker is killed,
// the evaluation stands still until another worker polls the queue; no trial is lost, and
// none is made twice.
//
// An evaluator runs the commands of suites only in its own [Options.Dir], in a sandbox, and
// only if [Options.Sandbox] is set. With [Options.Suite] it runs only those of that suite;
// without, whoever may start a workflow names them.
package evalrun
