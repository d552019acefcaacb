// Package conformance tests your own implementations of Fermata's interfaces. Call one
// function in a test: [Model] for an adapter to a provider, [Store] for a store, [Tool]
// for a tool, or [Source] for a source of tools. The [Model] and [Store] examples are
// complete.
//
// Each function runs a subtest for each part of the contract. A failure says what is
// wrong and why it matters.
package conformance
