// Package gemini lets agents use Google's Gemini models, by the Gemini API. It
// translates data and sorts failures: it never asks twice, never waits and counts
// no cost, since the runtime does that once for all providers.
//
// A [Model] serves every model of the provider; the runtime asks it for one by
// the provider's own name, "gemini-3.8-flash". Replies are always streamed, and
// with summaries of what the model thinks, so that a model which thinks for long
// is not taken for one that is gone.
//
// The wire's words are those of the official SDK, but the request is made here: the
// SDK's client follows a reply up with further requests, drops the headers that say
// how long to wait, and reads arguments into Go's maps, which change large numbers.
//
// # What is sent back to the model
//
// Gemini puts a signature of its thinking on the part that follows it, a text or
// the first call, and newer models refuse a call of theirs that comes back without
// it. A signature is kept as thinking before its part (see [agent.Part]), and goes
// back on that part, in every later request. Only the model that made it can read
// it: a call of another's is marked as such, as Google has it.
//
// # Prompt caching
//
// Gemini caches by itself what requests have in common at their beginning, and
// tells how much of it was read. There is nothing to mark.
package gemini
