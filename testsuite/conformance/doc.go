// Package conformance tests implementations of Fermata's interfaces: [Model] tests an
// adapter to a provider, [Store] a store, [Tool] a tool and [Source] a source of tools.
// Each is one call in a test. It runs a subtest for each part of the contract, and a
// failure says what is wrong and why it matters.
package conformance
