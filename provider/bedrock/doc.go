// Package bedrock calls the models of Amazon Bedrock by its Converse API. It is an
// adapter for package model: it translates data and sorts failures. It never retries,
// waits or counts costs, because the runtime does that for all providers.
//
// Begin with [New], and put the [Model] into the worker's Models; the package example
// does that. One Model serves all models of one region. The runtime calls a model by
// Bedrock's id of a model or of an inference profile,
// "global.anthropic.claude-sonnet-5-5", or by an ARN. Replies are always streamed.
//
// Converse is one API for the models of all makers. Bedrock also offers Anthropic's own
// API for Claude; the adapter does not use it, because it covers only some of the models.
//
// Credentials, signatures and the frames of the stream come from the official SDK, but
// the adapter sends the requests itself. The SDK's client decodes arguments into Go maps,
// which changes large numbers and the order of keys. It also drops the headers that say
// how long to wait.
//
// # Credentials
//
// A Bedrock API key is sent if there is one, in [Options] or $AWS_BEARER_TOKEN_BEDROCK.
// Otherwise requests are signed with the credentials of AWS's default chain: variables,
// shared files, single sign-on, a web identity, the role of a container or a machine. The
// SDK renews them before they expire.
//
// # What is sent back to the model
//
// Tool calls get our own ids (see [model.CallIDs]). Thinking is sent back only to
// Bedrock, only with its signature, and only since the user's last text, as Claude
// requires. Bedrock refuses calls in a conversation without tools. So if there are no
// tools, the called ones are declared with a schema that accepts everything.
//
// # Prompt caching
//
// For Claude, the instructions and the user's last two messages are marked for the cache,
// for five minutes or an hour ([Options].CacheTTL). For Nova, the instructions are. Other
// models accept no marks.
package bedrock
