// Package anthropic lets agents use Anthropic's models, by the Messages API and
// its official SDK. It translates data and sorts failures: it never asks twice,
// never waits and counts no cost, since the runtime does that once for all
// providers.
//
// A [Model] serves every model of the provider; the runtime asks it for one by
// the provider's own name, "claude-sonnet-5-5". Replies are always streamed.
//
// # What is sent back to the model
//
// Calls of tools carry ids of ours (see [model.CallIDs]), since providers repeat
// and omit theirs. A thinking block is bound to what stood before it: Anthropic
// refuses a conversation in which that has changed. So thinking goes back only
// to the provider that made it, and only since the last text of a user: that much
// is the same in every request, whatever becomes of an agent's instructions between
// two runs of a session. Older thinking the model does not need. Where the model
// thinks between calls, the calls keep the provider's ids, if it gave each its own.
//
// # Prompt caching
//
// The instructions (or the tools, where there are none) and the last two
// messages of the user's side are marked for the cache, for five minutes or
// an hour, so that a growing conversation is read from it.
package anthropic
