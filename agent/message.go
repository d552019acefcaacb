package agent

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/internal/amount"
)

// Role is who speaks in a Message.
type Role string

// The roles. Instructions are no message: they stand in the Spec.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation. It enters the history once and the
// store once, and is never changed after.
type Message struct {
	ID    string `json:"id,omitempty"`
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	// Model names who wrote an assistant's message, as the Spec names it.
	Model string `json:"model,omitempty"`
	// ProviderModel is the adapter's own name for that model, "azure/gpt-6-sol", where Model is
	// another name for it. Only the model that made a thought can be given it back.
	ProviderModel string `json:"provider_model,omitempty"`
	// By is who says to have sent a user's message: a claim.
	By string `json:"by,omitempty"`
	// Note tells why the runtime, and not a person, wrote a user's message.
	Note Note `json:"note,omitempty"`
	// Partial means that an assistant's message was cut off by an interrupt.
	Partial bool `json:"partial,omitempty"`
}

// Note is why the runtime spoke to the model.
type Note string

// The notes of the runtime.
const (
	NoteNudge  Note = "nudge"  // the model only talked, under completion "tool"
	NoteRepair Note = "repair" // the output does not fit its schema
	NoteLoop   Note = "loop"   // the model repeats one call
	NoteRetry  Note = "retry"  // the reply was cut off
	// NoteResumed says that the run was held and goes on. It is given once and not stored.
	NoteResumed   Note = "resumed"
	NoteSummary   Note = "summary"    // of what was said before, in its place
	NoteEvent     Note = "event"      // an event that the run waited for
	NotePauseTurn Note = "pause_turn" // the provider paused the reply, and the model goes on with it
	NoteWake      Note = "wake"       // an idle daemon was woken, by its interval or by a resume that said nothing
)

// PartType says which fields of a Part count.
type PartType string

// The types of parts.
const (
	PartText       PartType = "text"
	PartThinking   PartType = "thinking"
	PartToolCall   PartType = "tool_call"
	PartToolResult PartType = "tool_result"
	// PartServerTool is a step of a tool that the provider carries out itself, such as a search:
	// its call, or what came of it. Raw has it, and Text names it for people.
	PartServerTool PartType = "server_tool"
)

// Part is a piece of a message.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"` // of text, thinking and server_tool
	// Raw is what a provider wrote, as JSON: a whole step of its own tools, or the sources
	// that a text cites. Only the provider that wrote it is given it back. A step without
	// Raw was too long to keep.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Signature and Redacted are a provider's own marks on its thinking. Only
	// the provider that made them is given them back.
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
	// Phase is a provider's own word for what a text is for, given back to it.
	Phase string `json:"phase,omitempty"`
	// ProviderID is a provider's own name for its thinking, given back with Signature, or
	// for the text that cites the sources in Raw.
	ProviderID string      `json:"provider_id,omitempty"`
	Call       *ToolCall   `json:"call,omitempty"`
	Result     *ToolResult `json:"result,omitempty"`
}

// ToolCall is what the model asked for.
type ToolCall struct {
	ID         string `json:"id"`                    // ours, "t12.2"
	ProviderID string `json:"provider_id,omitempty"` // theirs: may be empty or repeated
	Tool       string `json:"tool"`
	// Arguments is a JSON value; empty if the model wrote none that is JSON.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Malformed is what the model wrote instead of JSON.
	Malformed string `json:"malformed,omitempty"`
}

// CallStatus is what became of a tool call; the set is closed.
type CallStatus string

// What can become of a call. Every call of the model gets one of these, so that
// no call is ever left without a result.
const (
	CallOK       CallStatus = "ok"
	CallFailed   CallStatus = "failed"   // it ran and reported a failure
	CallRejected CallStatus = "rejected" // it did not run: unknown tool, wrong arguments, policy
	CallUnknown  CallStatus = "unknown"  // it was begun and nobody knows how it ended
	CallSkipped  CallStatus = "skipped"  // it was not begun, since the run stopped before
)

// ToolResult is what the model is told of a call.
type ToolResult struct {
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Status CallStatus `json:"status"`
	Text   string     `json:"text"`
	// Size is the length in bytes of the whole text where only its beginning was kept.
	Size int `json:"size,omitempty"`
	// Partial means that the tool was interrupted and this is what it had.
	Partial bool `json:"partial,omitempty"`
}

// Text joins the text parts of a message, thinking left out.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// ModelName is who wrote an assistant's message, as the adapter calls the model.
func (m Message) ModelName() string { return cmp.Or(m.ProviderModel, m.Model) }

// ToolCalls lists the calls of a message, in the model's order.
func (m Message) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if p.Type == PartToolCall && p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

// Size is the length of what a message says, in bytes, without its JSON frame.
func (m Message) Size() int {
	n := len(m.ID) + len(m.Model) + len(m.ProviderModel) + len(m.By)
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Raw) + len(p.Signature) + len(p.Redacted) + len(p.Phase) + len(p.ProviderID)
		if p.Call != nil {
			n += len(p.Call.Tool) + len(p.Call.Arguments) + len(p.Call.Malformed)
		}
		if p.Result != nil {
			n += len(p.Result.Tool) + len(p.Result.Text)
		}
	}
	return n
}

// TextMessage is a message of one text.
func TextMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Type: PartText, Text: text}}}
}

// Usage counts a model's tokens, in the terms of OpenTelemetry GenAI. Input
// tokens include those that were read from or written to a cache; output tokens
// include reasoning.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
	// Searches are searches of the web that the provider made itself. They are no tokens,
	// and have a price of their own.
	Searches int64 `json:"web_searches,omitempty"`
}

// Add returns the sum. Each number of it stays within 0 and 2^52.
func (u Usage) Add(v Usage) Usage {
	return Usage{amount.Add(u.Input, v.Input), amount.Add(u.Output, v.Output), amount.Add(u.CacheRead, v.CacheRead), amount.Add(u.CacheWrite, v.CacheWrite), amount.Add(u.Reasoning, v.Reasoning), amount.Add(u.Searches, v.Searches)}
}

// Total is what limits count: input and output.
func (u Usage) Total() int64 { return u.Input + u.Output }

// HoldRef is a hold as steps know it: the session that was held, and how often it
// has been held over its life.
type HoldRef struct {
	Session string `json:"session"`
	N       int    `json:"n"`
	Verb    Verb   `json:"verb,omitempty"`
}

// Finish is why a model stopped; the set is closed.
type Finish string

// The reasons to stop, in the terms of OpenTelemetry GenAI.
const (
	FinishStop          Finish = "stop"           // it was done
	FinishToolCalls     Finish = "tool_calls"     // it needs tools to be called
	FinishLength        Finish = "length"         // it was cut off at its output limit
	FinishContentFilter Finish = "content_filter" // it, or a filter, refused
	FinishPauseTurn     Finish = "pause_turn"     // the provider paused a long reply; asked again, the model goes on
)
