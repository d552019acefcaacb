// Package bedrock lets agents use the models of Amazon Bedrock, by its Converse API. It
// translates data and sorts failures: it never asks twice, never waits and counts no
// cost, since the runtime does that once for all providers.
//
// A [Model] serves every model of one region; the runtime asks it for one by Bedrock's
// id of a model or of an inference profile, "global.anthropic.claude-sonnet-5-5", or by
// an ARN. Replies are always streamed.
//
// Converse has one form for the models of all makers. Bedrock also serves Claude alone
// in the form of Anthropic; that would be a second form for a part of the models.
//
// The credentials, the signature and the frames of the stream are those of the official
// SDK, but the request is made here: the SDK's client reads arguments into Go's maps,
// which change large numbers and the order of keys, and drops the headers that say how
// long to wait.
//
// # Credentials
//
// A Bedrock API key is sent if there is one, in [Options] or $AWS_BEARER_TOKEN_BEDROCK.
// Otherwise requests are signed with what AWS's default chain finds: variables, shared
// files, single sign-on, a web identity, the role of a container or a machine. The SDK
// renews what expires.
//
// # What is sent back to the model
//
// Calls carry ids of ours (see [model.CallIDs]). Thinking goes back only to Bedrock, only
// with its signature, and only since the last text of a user, as Claude demands. Bedrock
// refuses calls in a conversation without tools: if there are none, those that were
// called are declared with a schema that takes everything.
//
// # Prompt caching
//
// For Claude the instructions and the last two messages of the user's side are marked for
// the cache, for five minutes; for Nova the instructions. Other models take no marks.
package bedrock
