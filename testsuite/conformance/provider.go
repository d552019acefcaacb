package conformance

import (
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
)

// Provider is how [Model] plays the provider that an adapter is for. [HTTP] is
// the one for adapters that speak HTTP, which are all but a few.
type Provider interface {
	// Open makes an adapter that asks a stand-in with a key, for one test. The
	// stand-in tells play of every request that it gets, also those that are tried
	// again, and does what the scene says. It calls play from many goroutines.
	Open(t testing.TB, key string, play func(ProviderRequest) ProviderResponse) model.Model
}

// ProviderResponse is what a provider does with one request: it replies or fails. the zero ProviderResponse is a whole reply of no words.
type ProviderResponse struct {
	// Blocks are the reply, in the model's order.
	Blocks []Block
	// Finish is why the model stopped; empty only where it fails.
	Finish model.Finish
	// Usage is in our terms: input includes what was read from and written to a
	// cache, output includes reasoning. Write it as the provider counts, and as
	// often as it does over a stream.
	Usage agent.Usage

	// Fail is set where the provider fails. A Kind that is empty is that of a
	// gateway before it, which knows no more than the status HTTP.
	Fail *testsuite.Failure
	// FailMidway means that it fails in the midst of a reply that began well.
	FailMidway bool
	// Cut is the share of the reply, in bytes, after which the connection ends;
	// zero for a reply that comes whole. It is 1 for one that never begins.
	Cut float64
	// Reset means that the connection is broken there, and not closed well.
	Reset bool

	// Ping means that there is a sign of life before the first block.
	Ping bool
	// Silent means that nothing at all comes until Wait is over.
	Silent bool
	// Wait holds the reply: before its last piece, after the Ping where there is
	// one, or before everything where it is Silent. Nil holds nothing.
	Wait <-chan struct{}
	// OnDisconnect is called when the asker goes away meanwhile; nil if nobody cares.
	OnDisconnect func()
}

// Block is a part of a reply.
type Block struct {
	// Type is text, thinking or tool_call.
	Type agent.PartType
	// Pieces are the text, the thinking, or what the model wrote for the call's
	// arguments, in the pieces in which they are streamed; joined, where it is not.
	Pieces []string
	// Signature is the provider's mark on thinking; empty if there is none.
	Signature string
	// ID is the provider's id of a call: it may be empty or repeat another's.
	ID string
	// Tool is what a call is of.
	Tool string
}

// ProviderRequest is one request in the words of the port: what a provider reads in it.
type ProviderRequest struct {
	Model        string
	Instructions string
	// Messages are the conversation. Results of tools may be the user's or of the
	// role tool, as the protocol has it. ID of a call and Call of a result are what
	// the protocol connects them by; empty if it has nothing for it. Status of a
	// result is "ok", or any other where it is marked as failed.
	Messages []agent.Message
	// Tools need only what was sent: name, description and schema.
	Tools           []agent.ToolSpec
	MaxOutputTokens int      // zero: none was sent
	Temperature     *float64 // nil: none was sent
	// Key is the key that came with it.
	Key string
	// Raw is all that was sent; [HTTP] fills it in.
	Raw string
}

// Unsupported says what a provider's protocol can't say, and so is not asked for. The
// zero Unsupported, which asks for everything, is the one to begin with.
type Unsupported struct {
	Keys          bool // nobody needs a key
	Streaming     bool // replies come all at once
	Pings         bool // streams have no signs of life but the reply
	Thinking      bool // what a model thinks is not shown
	Signatures    bool // thinking is not taken back
	CallIDs       bool // calls have no ids
	BrokenJSON    bool // arguments come as JSON values, which are never malformed
	FailedResults bool // results are not marked as failed
	Temperature   bool
	OutputCap     bool // the length of a reply can't be bounded
	CacheRead     bool // usage does not tell what was read from a cache
	CacheWrite    bool // usage does not tell what was written to a cache
	Reasoning     bool // usage does not tell the tokens of thinking
	Refusals      bool // no reply says that the model, or a filter, refused
	Midway        bool // once a reply has begun, no failure is told
	// Kinds are the kinds of failures that the provider does not tell apart.
	Kinds []agent.FaultKind
}

// ModelOptions says what [Model] is to know of an adapter.
type ModelOptions struct {
	// Provider is what the adapter calls its provider: the part before the slash
	// in full names of models. Thinking goes back only to the provider that has it.
	// Empty if thinking is not taken back.
	Provider string
	// Model is the provider's name for the model that is asked; empty means "test-1".
	Model string
	// Unsupported is what the protocol can't say.
	Unsupported Unsupported
}
