// Package gemini calls Google's Gemini models by the Gemini API. It is an adapter for
// package model: it translates data and sorts failures. It never retries, waits or counts
// costs, because the runtime does that for all providers.
//
// Begin with [New], and put the [Model] into the worker's Models; the package example
// does that. One Model serves all models of the provider. The runtime calls a model by
// the provider's own name, "gemini-3.8-flash". Replies are always streamed, with
// summaries of the model's thinking. So a model that thinks for long does not look dead.
//
// The types are those of the official SDK, but the adapter sends the requests itself. The
// SDK's client follows up a reply with further requests. It drops the headers that say
// how long to wait, and decodes arguments into Go maps, which changes large numbers.
//
// # What is sent back to the model
//
// Gemini signs its thinking on the part that follows it, a text or the first call. Newer
// models refuse one of their calls without its signature. A signature is stored as
// thinking before its part (see [agent.Part]), and is sent back on that part in every
// later request. Only the model that made a signature can read it. A call of another
// model gets the mark that Google documents for this case.
//
// # Prompt caching
//
// Gemini caches the common beginning of requests by itself, and reports how much it has
// read from the cache. Nothing has to be marked.
package gemini
