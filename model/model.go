package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// Model is a language model, or all models of a provider. Its methods may be
// called from many goroutines at once.
type Model interface {
	// Info tells what is known of a model by the provider's name for it; fields
	// that are not known are zero.
	Info(name string) Info
	// Generate asks the model once and returns its whole reply. Pieces of it are
	// handed to emit as they come; emit is never nil and does not block for long.
	// A failure is a [Fault]; a cancelled context ends the call at once.
	Generate(ctx context.Context, req *Request, emit func(Delta)) (*Reply, error)
}

// Info is what is known of a model.
type Info struct {
	Price agent.Price
	// Window is how many tokens a request and its reply may have together.
	Window int
	// MaxOutput is the most tokens of one reply.
	MaxOutput int
	// Temperature says when the model takes one: else it is not sent.
	Temperature Temperature
}

// Request is one question to a model.
type Request struct {
	// Call tells for whom the question is asked. It is for middleware; adapters
	// send nothing of it but its CacheKey.
	Call CallInfo
	// Model is the provider's own name for it, "claude-sonnet-5".
	Model string
	// Instructions are the system prompt; empty if there is none.
	Instructions string
	Messages     []agent.Message
	Tools        []agent.ToolSpec
	// NoCalls says that the model may not call the tools now: they are sent as in the
	// requests before, which a provider has in its cache.
	NoCalls bool
	// Output is a JSON Schema for the answer; empty means free text. An adapter
	// whose provider can't hold a model to a schema leaves it to the runtime,
	// which checks every answer.
	Output          json.RawMessage
	MaxOutputTokens int      // zero: the model's own cap
	Temperature     *float64 // nil: the model's own
	// Reasoning is how much the model is to think; empty means that nothing is sent
	// of it. What a model does not have becomes the nearest that it has.
	Reasoning agent.Reasoning
}

// Reply is a model's whole answer.
type Reply struct {
	// Parts are text, thinking, tool_call and server_tool, in the model's order. Ids of calls
	// are the provider's, in ProviderID; the runtime gives its own.
	Parts  []agent.Part
	Finish Finish
	Usage  agent.Usage
	// ProviderModel is what the adapter calls the model that was asked, with the provider before
	// the slash: by it the adapter knows the model's thoughts again, whatever name an
	// agent has for the model. See [agent.Message.ModelName].
	ProviderModel string
}

// Finish is why a model stopped; see [agent.Finish].
type Finish = agent.Finish

// The reasons to stop.
const (
	FinishStop          = agent.FinishStop
	FinishToolCalls     = agent.FinishToolCalls
	FinishLength        = agent.FinishLength
	FinishContentFilter = agent.FinishContentFilter
	FinishPauseTurn     = agent.FinishPauseTurn
)

// Delta is a piece of a reply as it comes. All fields empty is a sign of life.
type Delta struct {
	Text     string
	Thinking string
	// Usage is what the provider has told so far of what the call uses: it is charged if
	// the reply breaks off.
	Usage agent.Usage
}

// Fault makes the error that Generate returns when a provider fails: kind
// decides whether the runtime tries again, after is how long the provider asked
// to wait (zero where it did not), status is the HTTP status (zero where no
// answer came). Secrets are cut out of the message.
func Fault(kind agent.FaultKind, status int, after time.Duration, message string, secrets ...string) *agent.Error {
	code := agent.CodeProviderError
	if kind == agent.FaultAuth {
		code = agent.CodeProviderAuth
	}
	return &agent.Error{
		Code: code, Message: shorten(hiding(secrets)(message)), Retryable: kind.Retryable(), RetryAfter: after,
		Provider: &agent.ProviderFault{Kind: kind, HTTP: status},
	}
}

// hiding cuts secrets out of messages.
func hiding(secrets []string) func(message string) string {
	return func(message string) string {
		for _, s := range secrets {
			message = redact(message, s)
		}
		return message
	}
}

// shortSecret is the length below which a secret may be a part of an ordinary word.
const shortSecret = 12

// redact replaces a secret by a mark; of a short one only where it is a word.
func redact(message, secret string) string {
	const mark = "[secret]"
	switch {
	case secret == "":
		return message
	case len(secret) >= shortSecret:
		return strings.ReplaceAll(message, secret, mark)
	}
	var b strings.Builder
	for rest, before := message, rune(0); ; {
		at := strings.Index(rest, secret)
		if at < 0 {
			b.WriteString(rest)
			return b.String()
		}
		end := at + len(secret)
		if at > 0 {
			before, _ = utf8.DecodeLastRuneInString(rest[:at])
		}
		after, _ := utf8.DecodeRuneInString(rest[end:])
		b.WriteString(rest[:at])
		if inWord(before) || end < len(rest) && inWord(after) {
			b.WriteString(secret)
		} else {
			b.WriteString(mark)
		}
		before, rest = rune(secret[len(secret)-1]), rest[end:]
	}
}

// inWord reports whether a character can be within a word, or a key.
func inWord(r rune) bool { return r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// maxMessage bounds what a provider's message adds to a history.
const maxMessage = 2000

func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + fmt.Sprintf(" … (%d bytes)", len(s))
}

// KindOf sorts an HTTP status (design fact: 408, 409, 429 and 5xx may pass, the
// other 4xx will not). Adapters look at the body first where it tells more.
func KindOf(status int) agent.FaultKind {
	switch {
	case status == 401 || status == 403:
		return agent.FaultAuth
	case status == 402:
		return agent.FaultQuota
	case status == 413:
		return agent.FaultContext
	case status == 429:
		return agent.FaultRateLimit
	case status == 503 || status == 529:
		return agent.FaultOverload
	case status == 408 || status == 409 || status >= 500:
		return agent.FaultTransient
	case status >= 400:
		return agent.FaultBadRequest
	}
	return agent.FaultTransient
}

// CallPart makes the part for a tool call from what a provider sent: arguments that
// are not a JSON object are kept as they came, for the model to be told.
func CallPart(providerID, tool, arguments string) agent.Part {
	c := &agent.ToolCall{ProviderID: providerID, Tool: tool}
	var object map[string]json.RawMessage
	switch text := strings.TrimSpace(arguments); {
	case text == "":
		c.Arguments = json.RawMessage("{}")
	case json.Unmarshal([]byte(text), &object) == nil && object != nil:
		c.Arguments = json.RawMessage(text)
	default:
		c.Malformed = arguments
	}
	return agent.Part{Type: agent.PartToolCall, Call: c}
}

// WithInfo is a model under one name of its provider's, and with what the caller
// knows better of it: fields of info that are not zero.
func WithInfo(m Model, name string, info Info) Model { return named{m, name, info} }

type named struct {
	Model
	name string
	info Info
}

func (n named) Info(string) Info {
	known := n.Model.Info(n.name)
	if n.info.Price != (agent.Price{}) {
		known.Price = n.info.Price
	}
	known.Window, known.MaxOutput = cmp.Or(n.info.Window, known.Window), cmp.Or(n.info.MaxOutput, known.MaxOutput)
	return known
}

func (n named) Generate(ctx context.Context, req *Request, emit func(Delta)) (*Reply, error) {
	whole := *req
	whole.Model = n.name
	return n.Model.Generate(ctx, &whole, emit)
}
