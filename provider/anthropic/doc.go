// Package anthropic calls Anthropic's models by the Messages API, with the official SDK.
// It is an adapter for package model: it translates data and sorts failures. It never
// retries, waits or counts costs, because the runtime does that for all providers.
//
// Begin with [New], and put the [Model] into the worker's Models; the package example
// does that. One Model serves all models of the provider. The runtime calls a model by
// the provider's own name, "claude-sonnet-5-5". Replies are always streamed.
//
// # What is sent back to the model
//
// Tool calls get our own ids (see [model.CallIDs]), since providers repeat and omit
// theirs. A thinking block depends on what came before it: Anthropic refuses a
// conversation in which that has changed. So thinking is sent back only to the provider
// that made it, and only since the user's last text. That part is the same in every
// request, even if an agent's instructions change between two runs of a session. The
// model does not need older thinking. If the model thinks between calls, these calls keep
// the provider's ids, if each has a unique one.
//
// # Prompt caching
//
// The instructions (or, without any, the tools) and the user's last two messages are
// marked for the cache, for five minutes or an hour. So a growing conversation is read
// from the cache.
package anthropic
