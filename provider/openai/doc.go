// Package openai lets agents use OpenAI's models, and the models of every server
// that speaks as OpenAI does (Ollama, vLLM, llama.cpp, LM Studio, OpenRouter,
// DeepSeek, Mistral and many more), by the official SDK. It translates data and
// sorts failures: it never asks twice, never waits and counts no cost, since the
// runtime does that once for all providers.
//
// A [Model] serves every model of one server; the runtime asks it for one by the
// server's own name. Replies are always streamed. A worker that uses several
// servers makes a Model for each, under names of their own:
//
//	openai.New(nil)
//	openai.New(&openai.Options{Name: "ollama", BaseURL: "http://localhost:11434/v1"})
//
// # Two forms
//
// Everybody speaks Chat Completions, and a Model speaks it with every server
// that is not OpenAI's own (or Azure's). With those it speaks Responses, since
// the models from GPT-5.6 on refuse tools in Chat Completions unless they do not
// reason, or altogether. [Options].API sets the form.
//
// # What servers do differently
//
// Other servers are asked with max_tokens, which all know; a call whose
// arguments were no JSON is sent back to them with none, since several read the
// arguments of every call and fail forever; and they are held to an output's
// schema only where there are no tools, since many hold the calls to it, too. In
// replies, calls may come without index or id, reasoning under two names, and
// the usage in any chunk. A reply without a reason to stop is cut off.
//
// # Prompt caching
//
// OpenAI caches by itself what requests have in common at their beginning. Its own
// servers are told a key, the same for all requests of a session, so that they meet
// one cache; see [model.CallInfo.CacheKey].
package openai
