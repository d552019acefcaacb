// Package model is the interface to language models: [Request] is what a model gets, and
// [Reply] is what it returns. To use a model, take an adapter of provider/…: each is a Go
// module of its own. To write one, implement [Model]; the [Model] example is a complete
// one. [Wrap] puts middleware around a model.
//
// Adapters translate data and sort failures. They never retry, wait or count costs,
// because the runtime does that for all of them.
//
// The package also has what adapters share: faults ([Fault], [KindOf]), tool calls
// ([CallPart], [CallIDs]), schemas ([PlainTool], [InputSchema], [Subset],
// [OutputInWords]) and the known models of a provider ([Table]). Adapters for HTTP use
// [Endpoint], [HTTPClient], [Body] and [Events].
package model
