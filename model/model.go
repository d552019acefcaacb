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

// Model is a language model, or all models of a provider. Its methods must be safe for
// concurrent use.
type Model interface {
	// Info returns what is known of a model, by the provider's name for it. Unknown
	// fields are zero.
	Info(name string) Info
	// Generate calls the model once and returns its whole reply. It passes pieces of the
	// reply to emit as they arrive. emit is never nil and does not block for long. A
	// failure is a [Fault]. A cancelled context ends the call at once.
	Generate(ctx context.Context, req *Request, emit func(Delta)) (*Reply, error)
}

// Info is what is known of a model. Unknown fields are zero.
type Info struct {
	Price agent.Price
	// Window is how many tokens a request and its reply may have together.
	Window int
	// MaxOutput is the most tokens of one reply.
	MaxOutput int
	// Temperature says when the model accepts a temperature. Otherwise none is sent.
	Temperature Temperature
	// Reasoning are the levels at which the model can think; empty if it does not think, or if
	// that is not known.
	Reasoning []agent.Reasoning
	// Files are the media types of the files that the model takes in a user's message, each
	// with the most bytes of one file. Other images are sent as a copy that fits, and other
	// files as a text which describes them.
	Files map[string]int
	// ResultFiles are those media types of Files that the model also takes within a tool's
	// result. Others are sent after the results, as if the user had shown them.
	ResultFiles []string
	// MaxImageSide is the longest side of an image in pixels that the model takes; zero if
	// none is known. A larger image is sent as a smaller copy.
	MaxImageSide int
}

// IsZero reports whether nothing is known of the model.
func (i Info) IsZero() bool {
	return i.Price == (agent.Price{}) && i.Window == 0 && i.MaxOutput == 0 && i.Temperature == "" && i.Reasoning == nil && i.Files == nil && i.ResultFiles == nil && i.MaxImageSide == 0
}

// Request is one call to a model.
type Request struct {
	// Call says which run makes the call. It is for middleware: adapters send only its
	// CacheKey.
	Call CallInfo
	// Model is the provider's own name of the model, "claude-sonnet-5".
	Model string
	// Instructions are the system prompt; empty if there is none.
	Instructions string
	Messages     []agent.Message
	// Files are the bytes of all files in Messages, by [agent.File.Digest]. The model takes
	// each of them, by [Info.Files], and those within a result by [Info.ResultFiles]. In a
	// message of tools, other parts than results follow these.
	Files map[string][]byte
	Tools []agent.ToolSpec
	// NoCalls means that the model may not call tools now. Tools are still sent, because
	// the provider has the earlier requests with them in its cache.
	NoCalls bool
	// DeniedServerTools are tools of the provider that the request may not use, whatever the adapter was
	// set up with: they are beyond the agent's ceiling. See [Request.Serves].
	DeniedServerTools []ServerTool
	// Output is a JSON Schema for the answer; empty means free text. An adapter whose
	// provider can't enforce a schema may ignore it: the runtime checks every answer.
	Output          json.RawMessage
	MaxOutputTokens int      // zero means the model's own limit
	Temperature     *float64 // nil means the model's default
	// Reasoning is how much the model should think; empty means that nothing is sent. A
	// level that the model lacks becomes its nearest one.
	Reasoning agent.Reasoning
}

// Reply is a model's whole answer.
type Reply struct {
	// Parts are text, thinking, tool_call and server_tool, in the model's order. The
	// provider's ids of calls are in ProviderID; the runtime assigns its own.
	Parts  []agent.Part
	Finish Finish
	Usage  agent.Usage
	// ProviderModel is the adapter's name of the model, with the provider before the
	// slash. By it the adapter recognises the model's own thinking, whatever name an
	// agent uses for the model. See [agent.Message.ModelName].
	ProviderModel string
}

// Finish is why a model stopped; see [agent.Finish].
type Finish = agent.Finish

// The reasons to stop, as in package agent.
const (
	FinishStop          = agent.FinishStop
	FinishToolCalls     = agent.FinishToolCalls
	FinishLength        = agent.FinishLength
	FinishContentFilter = agent.FinishContentFilter
	FinishPauseTurn     = agent.FinishPauseTurn
)

// Delta is a piece of a reply. With all fields empty it is a sign of life.
type Delta struct {
	Text     string
	Thinking string
	// Usage is what the provider has reported so far. It is charged if the reply breaks
	// off.
	Usage agent.Usage
}

// Fault returns the error for Generate when a provider fails. kind decides whether the
// runtime retries. status is the HTTP status; zero if there was no answer. after is how
// long the provider asked to wait; zero if it did not ask. Secrets are removed from the
// message.
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

// hiding returns a function that removes secrets from messages.
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

// redact replaces a secret by a mark; a short one only if it is a whole word.
func redact(message, secret string) string {
	const mark = "[secret]"
	switch {
	case secret == "":
		return message
	case len(secret) >= shortSecret:
		return strings.ReplaceAll(message, secret, mark)
	}
	// Part of a longer word is probably not the secret, and hiding it makes messages unreadable.
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

// inWord reports whether a character can be part of a word or a key.
func inWord(r rune) bool { return r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// maxMessage limits what a provider's message adds to a history, in bytes.
const maxMessage = 2000

func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + fmt.Sprintf(" … (%d bytes)", len(s))
}

// KindOf returns the kind of fault of an HTTP status. 408, 409, 429 and 5xx may succeed
// later, other 4xx will not. Adapters look at the body first if it says more.
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

// CallPart returns the part for a tool call that a provider sent. Arguments that are no
// JSON object are kept as Malformed, so that the model can be shown its mistake.
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

// WithInfo returns a model that always uses one name of its provider's, with the info
// that the caller knows better: all fields of info that are not zero.
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
	if n.info.Files != nil {
		known.Files = n.info.Files
	}
	if n.info.ResultFiles != nil {
		known.ResultFiles = n.info.ResultFiles
	}
	if n.info.Reasoning != nil {
		known.Reasoning = n.info.Reasoning
	}
	known.Temperature = cmp.Or(n.info.Temperature, known.Temperature)
	known.Window, known.MaxOutput = cmp.Or(n.info.Window, known.Window), cmp.Or(n.info.MaxOutput, known.MaxOutput)
	known.MaxImageSide = cmp.Or(n.info.MaxImageSide, known.MaxImageSide)
	return known
}

func (n named) Generate(ctx context.Context, req *Request, emit func(Delta)) (*Reply, error) {
	whole := *req
	whole.Model = n.name
	return n.Model.Generate(ctx, &whole, emit)
}
