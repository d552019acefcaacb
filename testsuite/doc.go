// Package testsuite is for the tests of your agents. A [Script] is a model that answers the
// same every time, at no cost. An [Env] runs agents with their tools, people and timers,
// with or without a server. Package testsuite/conformance tests adapters of
// your own.
package testsuite
