package conformance

import (
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Provider plays the provider that an adapter asks. Most adapters speak HTTP and need
// only [HTTPProvider].
type Provider interface {
	// Open starts a stand-in for the provider, for one test, and returns an adapter
	// that asks it with the key. For each request the stand-in calls play, and does
	// what play returns. It calls play from many goroutines.
	Open(t testing.TB, key string, play func(ProviderRequest) ProviderResponse) model.Model
}

// ProviderResponse is what a provider does with one request: it replies or fails. The
// zero value is a whole reply without a word.
type ProviderResponse struct {
	// Blocks are the reply, in the model's order.
	Blocks []Block
	// Finish is why the model stopped; empty only if the provider fails.
	Finish model.Finish
	// Usage counts as the runtime does: Input includes what was read from and written
	// to a cache, Output includes Reasoning. Write it as the provider counts, and as
	// often as the provider sends it in a stream.
	Usage agent.Usage

	// Fail is the kind of the provider's failure; empty if it replies.
	Fail agent.FaultKind
	// FailMessage is what the provider says of its failure.
	FailMessage string
	// FailMidway means that the failure comes in the middle of a reply that began well.
	FailMidway bool
	// RetryAfter is how long the provider asks to wait; zero if it does not ask.
	RetryAfter time.Duration
	// GatewayStatus is the HTTP status with which a gateway answers in place of the
	// provider; zero if the provider answers. A gateway knows nothing of Fail.
	GatewayStatus int
	// Cut is the share of the reply's bytes after which the connection ends. Zero
	// means a whole reply, and 1 a reply that never begins.
	Cut float64
	// Reset means that the connection breaks there, and is not closed properly.
	Reset bool

	// Ping means that a sign of life comes before the first block.
	Ping bool
	// Silent means that nothing at all comes before Wait is closed.
	Silent bool
	// Wait holds the reply until it is closed: before the last piece, after the Ping if
	// there is one, or before everything if Silent is set. Nil holds nothing.
	Wait <-chan struct{}
	// OnDisconnect is called if the adapter disconnects meanwhile; nil calls nothing.
	OnDisconnect func()
}

// Block is a part of a reply.
type Block struct {
	// Type is text, thinking or tool_call.
	Type agent.PartType
	// Pieces are the text, the thinking, or the call's arguments as the model wrote
	// them, as they are streamed. Without streaming they come joined.
	Pieces []string
	// Signature is the provider's mark on thinking; empty if there is none.
	Signature string
	// ID is the provider's id of a call. It may be empty or repeat another call's.
	ID string
	// Tool is the name of the tool that is called.
	Tool string
}

// ProviderRequest is what a provider reads in one request, in the words of
// [model.Request].
type ProviderRequest struct {
	Model        string
	Instructions string
	// Messages are the conversation. The role of tool results may be user or tool, as
	// the protocol has it. Call.ID of a call and Result.Call of its result are what
	// connects them in the protocol; empty if it has nothing for that. Result.Status is
	// "ok", or anything else if the result is marked as failed.
	Messages []agent.Message
	// Tools need only name, description and schema.
	Tools           []agent.ToolSpec
	MaxOutputTokens int      // zero: none was sent
	Temperature     *float64 // nil: none was sent
	// Key is the key that came with the request.
	Key string
	// Raw is all that was sent. [HTTPProvider] sets it.
	Raw string
}

// Unsupported says what a provider's protocol can't express. [Model] does not check
// these things. Begin with the zero value, which means that everything is checked.
type Unsupported struct {
	Keys          bool // there is no key
	Streaming     bool // replies come all at once
	Pings         bool // a stream's only signs of life are the reply
	Thinking      bool // the model's thinking is not shown
	Signatures    bool // thinking is not sent back
	CallIDs       bool // calls have no ids
	BrokenJSON    bool // arguments are JSON values, which are never malformed
	FailedResults bool // results are not marked as failed
	Temperature   bool
	OutputCap     bool // the length of a reply can't be limited
	CacheRead     bool // usage lacks the tokens read from a cache
	CacheWrite    bool // usage lacks the tokens written to a cache
	Reasoning     bool // usage lacks the tokens of thinking
	Refusals      bool // no reply says that the model, or a filter, refused
	Midway        bool // no failure is reported after a reply has begun
	// Kinds are the kinds of failures that the provider does not distinguish.
	Kinds []agent.FaultKind
}

// ModelOptions says what [Model] needs to know of an adapter and its provider.
type ModelOptions struct {
	// Provider is the adapter's name for its provider: the part before the slash in
	// full names of models. Thinking goes back only to the provider that made it.
	// Required unless Unsupported.Signatures is set.
	Provider string
	// Model is the provider's name for the model to ask; empty means "test-1".
	Model string
	// Unsupported is what the protocol can't express.
	Unsupported Unsupported
}
