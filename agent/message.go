package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/internal/amount"
)

// Role is who wrote a Message.
type Role string

// The roles. Instructions are no message: they are in the Spec.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation. The history and the store each record it once,
// and it never changes.
type Message struct {
	ID    string `json:"id,omitempty"`
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	// Model is the model that wrote an assistant's message, as the Spec names it.
	Model string `json:"model,omitempty"`
	// ProviderModel is the adapter's own name of that model, "azure/gpt-6-sol", if Model
	// is another name for it. Thinking goes back only to the model that wrote it.
	ProviderModel string `json:"provider_model,omitempty"`
	// By says who sent a user's message. It is not authenticated.
	By string `json:"by,omitempty"`
	// Note says why the runtime wrote a user's message; empty if a person wrote it.
	Note Note `json:"note,omitempty"`
	// Partial means that an assistant's message was cut off by an interrupt.
	Partial bool `json:"partial,omitempty"`
}

// Note says why the runtime wrote a message to the model.
type Note string

// The notes of the runtime.
const (
	NoteNudge  Note = "nudge"  // the reply may not end the run, or has another form than the agent's
	NoteRepair Note = "repair" // the output does not fit its schema
	NoteRetry  Note = "retry"  // the reply was cut off
	// NoteRecovery follows a failure, as the agent's recovery says.
	NoteRecovery Note = "recovery"
	// NoteLessons lists what has failed. It ends each request, and is not stored.
	NoteLessons Note = "lessons"
	// NoteReminders lists the agent's reminders. It ends each request, and is not stored.
	NoteReminders Note = "reminders"
	// NoteResumed says that a held run continues. It is sent once, and not stored.
	NoteResumed Note = "resumed"
	// NoteLateAnswer says which answers came after their deadlines. It is sent once, and not stored.
	NoteLateAnswer Note = "late_answer"
	NoteSummary    Note = "summary" // a summary, which replaces earlier messages; a model reads only the handles of its files
	// NoteNotebook shows the model its notebook. It is sent with every request, and not stored.
	NoteNotebook  Note = "notebook"
	NoteEvent     Note = "event"      // an event that the run waited for
	NotePauseTurn Note = "pause_turn" // the provider paused the reply; the model continues it
	NoteVerify    Note = "verify"     // a check has vetoed what would have completed the run
	NoteHook      Note = "hook"       // a tool of hooks.after_turn says something to the model
	NoteTimeout   Note = "timeout"    // what the model itself wrote for when the time of its park has come
	NoteWake      Note = "wake"       // an idle daemon was woken, by its interval or by a resume without a message
)

// PartType says which fields of a Part are set.
type PartType string

// The types of parts.
const (
	PartText       PartType = "text"
	PartThinking   PartType = "thinking"
	PartToolCall   PartType = "tool_call"
	PartToolResult PartType = "tool_result"
	// PartServerTool is a step of a tool that the provider itself runs, such as a search:
	// a call, or its result. Raw has the step, and Text describes it for people.
	PartServerTool PartType = "server_tool"
	// PartFile is an image, a document or other data in the store. File has it, and Text
	// describes it for models that can't take it, and for people.
	PartFile PartType = "file"
)

// Part is a piece of a message.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"` // of text, thinking, server_tool and file
	// Raw is the provider's own JSON: a step of its own tools, or the sources of a text that
	// it demands back. Only that provider gets it. A step without Raw was too long to store.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Signature and Redacted are a provider's marks on its thinking. Only that provider
	// gets them back.
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
	// Phase is a provider's word for what a text is for. It is sent back to that
	// provider.
	Phase string `json:"phase,omitempty"`
	// ProviderID is a provider's id of its thinking, sent back with Signature, or of the
	// text that cites the sources in Raw.
	ProviderID string      `json:"provider_id,omitempty"`
	Call       *ToolCall   `json:"call,omitempty"`
	Result     *ToolResult `json:"result,omitempty"`
	File       *File       `json:"file,omitempty"`
	// Citations are the sources that pieces of a model's text cite, at most [MaxCitations] in a
	// message. Uncited counts those that were left out: they were too many, or not valid.
	Citations []Citation `json:"citations,omitempty"`
	Uncited   int        `json:"uncited,omitempty"`
}

// ToolCall is what the model asked for.
type ToolCall struct {
	ID         string `json:"id"`                    // ours, "t12.2"
	ProviderID string `json:"provider_id,omitempty"` // theirs: may be empty or repeated
	Tool       string `json:"tool"`
	// Arguments is a JSON value; empty if the model wrote no valid JSON.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Malformed is what the model wrote instead of valid JSON.
	Malformed string `json:"malformed,omitempty"`
}

// CallStatus says how a tool call ended. The set is closed.
type CallStatus string

// The results of a call. Every call of the model gets one, because providers refuse a
// conversation in which a call has no result.
const (
	CallOK       CallStatus = "ok"
	CallFailed   CallStatus = "failed"   // it ran and reported a failure
	CallRejected CallStatus = "rejected" // it did not run: unknown tool, wrong arguments, policy
	CallUnknown  CallStatus = "unknown"  // it began, and nobody knows how it ended
	CallSkipped  CallStatus = "skipped"  // it never began, because the run stopped first
)

// ToolResult is a call's result as the model sees it.
type ToolResult struct {
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Status CallStatus `json:"status"`
	Text   string     `json:"text"`
	// Size is the length in bytes of the whole text if only its beginning was kept; else
	// zero.
	Size int `json:"size,omitempty"`
	// Partial means that the tool was interrupted, and that Text is what it had by then.
	Partial bool `json:"partial,omitempty"`
	// Code is the code of the [Error] that the tool, or code of a flow's own, has returned; empty for
	// other errors.
	Code Code `json:"code,omitempty"`
	// Dropped means that a flow did not wait for the result any more when it came.
	Dropped bool `json:"dropped,omitempty"`
	// Files are what the model is shown with Text: parts of type file, at most [MaxFiles].
	Files []Part `json:"files,omitempty"`
	// LeftFiles counts further files of a flow's step, for which the run had no room. A model reads
	// that in Text.
	LeftFiles int `json:"left_files,omitempty"`
	// Tools are the names of tools that a call of tool_search has found. The model is offered them
	// as long as this result is in its conversation.
	Tools []string `json:"tools,omitempty"`
}

// Text returns the text parts of a message, joined. Thinking is left out.
func (m Message) Text() string {
	var texts []string
	for i, p := range m.Parts {
		switch {
		case p.Type != PartText:
		case texts == nil && !slices.ContainsFunc(m.Parts[i+1:], func(p Part) bool { return p.Type == PartText }):
			return p.Text // as most have it: a text, which may be long, is not copied
		default:
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "")
}

// Words returns what the author of a message has said in it: its texts, and what they have said of each
// file, in order and one below another.
func (m Message) Words() string {
	var words []string
	if text := m.Text(); text != "" {
		words = append(words, text)
	}
	for _, p := range m.Parts {
		if p.Type == PartFile && strings.TrimSpace(p.Text) != "" {
			words = append(words, p.Text)
		}
	}
	return strings.Join(words, "\n\n")
}

// ModelName returns the adapter's name of the model that wrote an assistant's message.
func (m Message) ModelName() string { return cmp.Or(m.ProviderModel, m.Model) }

// ToolCalls returns the calls of a message, in the model's order.
func (m Message) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if p.Type == PartToolCall && p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

// Files returns the files of a message, in order, also those of its results.
func (m Message) Files() (files []*File) {
	for _, p := range m.FileParts() {
		files = append(files, p.File)
	}
	return files
}

// FileParts returns the parts of a message that are files, in order, also those of its results.
// Their Text is what was said of them.
func (m Message) FileParts() (parts []Part) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.File != nil {
			parts = append(parts, *p)
		}
		if p.Result != nil && len(p.Result.Files) > 0 {
			parts = append(parts, Message{Parts: p.Result.Files}.FileParts()...)
		}
	}
	return parts
}

// Size returns the length of the message's content in bytes, without the JSON around it.
// A file counts as about as much text as a model is charged for it. Those of a summary are only
// named.
func (m Message) Size() int {
	n := len(m.ID) + len(m.Model) + len(m.ProviderModel) + len(m.By)
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Raw) + len(p.Signature) + len(p.Redacted) + len(p.Phase) + len(p.ProviderID) + CitationsSize(p.Citations)
		if p.Call != nil {
			n += len(p.Call.Tool) + len(p.Call.Arguments) + len(p.Call.Malformed)
		}
		if p.Result != nil {
			n += len(p.Result.Tool) + len(p.Result.Text) + Message{Parts: p.Result.Files}.Size()
		}
		if p.File != nil {
			n += len(p.File.Name) + m.weightOf(p.File)
		}
	}
	return n
}

func (m Message) weightOf(f *File) int {
	if m.Note == NoteSummary {
		return handleWeight
	}
	return f.Weight()
}

// TextMessage returns a message with one text part.
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
	// Searches counts web searches that the provider made itself. They are no tokens, and
	// have their own price.
	Searches int64 `json:"web_searches,omitempty"`
}

// Add returns the sum. Each number stays within 0 and 2^52.
func (u Usage) Add(v Usage) Usage {
	return Usage{amount.Add(u.Input, v.Input), amount.Add(u.Output, v.Output), amount.Add(u.CacheRead, v.CacheRead), amount.Add(u.CacheWrite, v.CacheWrite), amount.Add(u.Reasoning, v.Reasoning), amount.Add(u.Searches, v.Searches)}
}

// Total returns input plus output tokens, which is what limits count.
func (u Usage) Total() int64 { return u.Input + u.Output }

// HoldRef names a hold for activities: the session that was held, and how many holds it
// has had over its life.
type HoldRef struct {
	Session string `json:"session"`
	N       int    `json:"n"`
	Verb    Verb   `json:"verb,omitempty"`
	// Grace is how long calls that the hold cancels may still take; zero means 5 seconds.
	Grace Duration `json:"grace,omitempty"`
	// By is who ordered a cancel; empty if nobody said, or if the hold came from another process.
	By string `json:"by,omitempty" since:"2"`
}

// Finish says why a model stopped. The set is closed.
type Finish string

// The reasons to stop, in the terms of OpenTelemetry GenAI.
const (
	FinishStop          Finish = "stop"           // the reply is complete
	FinishToolCalls     Finish = "tool_calls"     // the model waits for the results of tools
	FinishLength        Finish = "length"         // the reply was cut off at its output limit
	FinishContentFilter Finish = "content_filter" // the model or a filter refused
	FinishPauseTurn     Finish = "pause_turn"     // the provider paused a long reply; the model continues it when it is called again
)
