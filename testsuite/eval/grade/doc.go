// Package grade has the graders of evaluations. A [Spec] names exactly one. Those of
// [Spec.Pure] decide by what a trial did and nothing else. [Judge], [Command] and
// [Function] ask something outside: a model, a program, or Go code.
package grade
