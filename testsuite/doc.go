// Package testsuite is for the tests of those who use fermata: a model that
// answers from a script, at no cost and the same every time; a [Env] to play
// agents on; and suites that tell whether a thing of their own keeps the contract
// of its port: [Model] for adapters to providers, [Tool] and [Source] for tools,
// [Store] for stores.
package testsuite
