// Package testsuite tests your agents. Begin with [New], which makes an [Env]: it runs
// agents with their tools, people and timers, with or without a Temporal server. The
// [New] example is a complete test.
//
// A [Script] is a model that always answers the same, at no cost. A [Person] answers what
// runs ask. [EveryCrash] kills the worker at every step, and [Replay] checks recorded
// histories against this build. [NewCall] makes the call for a unit test of one tool and the files
// that it shows, and [NewArtifactCall] for the artifacts that it saves. Package
// testsuite/conformance tests your own adapters.
package testsuite
