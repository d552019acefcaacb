// Package report says what came of an evaluation: the cases with their rates ([Of]), two
// evaluations side by side ([Compare]), and both for people and for CI ([Report.JUnit],
// [Report.HTML]). What models and tools wrote is hostile here: every writer escapes it.
package report
