// Package eval has the types of evaluations: a [Suite] of cases, as a YAML file has it, and
// the [Trial] that becomes of each. [Read] reads a suite, and [FromSession] makes a case of
// a recorded session.
//
// Package testsuite/eval/evalrun runs a suite as a Temporal workflow, grade decides about
// the trials, stats says how far the numbers can be trusted, and report writes them down.
package eval
