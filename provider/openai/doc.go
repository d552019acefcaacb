// Package openai calls OpenAI's models with the official SDK. It also calls any server
// with the same API: Ollama, vLLM, llama.cpp, LM Studio, OpenRouter, DeepSeek, Mistral
// and many more. It is an adapter for package model: it translates data and sorts
// failures. It never retries, waits or counts costs, because the runtime does that for
// all providers.
//
// Begin with [New], and put the [Model] into the worker's Models; the package example
// does that. One Model serves all models of one server. The runtime calls a model by the
// server's own name for it. Replies are always streamed. For several servers, make one
// Model each, with its own name:
//
//	openai.New(nil)
//	openai.New(&openai.Options{Name: "ollama", BaseURL: "http://localhost:11434/v1"})
//
// # Two APIs
//
// All servers know Chat Completions, and a Model uses it for every server but OpenAI's
// and Azure's. For those it uses Responses. From GPT-5.6 on, their models refuse tools in
// Chat Completions, at least while they reason. [Options].API chooses the API.
//
// # Differences between servers
//
// Other servers than OpenAI's get max_tokens, which all of them know. If a call's
// arguments were no JSON, they get the call back without arguments: several servers parse
// the arguments of every call and would fail for ever. They get an output schema only if
// there are no tools, because many would also enforce it on the calls. In replies, calls
// may come without index or id, reasoning under two names, and usage in any chunk. A
// reply without a finish reason counts as cut off.
//
// # Prompt caching
//
// OpenAI caches the common beginning of requests by itself. Its own servers also get a
// key that is the same for all requests of a session, so that these use one cache; see
// [model.CallInfo.CacheKey].
package openai
