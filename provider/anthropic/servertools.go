package anthropic

import (
	"cmp"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// serverTool returns the provider's tool, in a version that all its models have.
func serverTool(t model.ServerTool) sdk.ToolUnionParam {
	if t == model.CodeExecution {
		return sdk.ToolUnionParam{OfCodeExecutionTool20250825: &sdk.CodeExecutionTool20250825Param{}}
	}
	return sdk.ToolUnionParam{OfWebSearchTool20250305: &sdk.WebSearchTool20250305Param{}}
}

// step is what is read of a step: the call of a server tool, or its result.
type step struct {
	ID        string `json:"id"`
	ToolUseID string `json:"tool_use_id"`
}

// steps says which steps of server tools are sent back: none if the model has no such
// tools now. The provider accepts no result without its call. It accepts a call without
// its result only if the model should continue it.
type steps struct {
	m             *Model
	asked         int // the user's last message with words
	calls, closed map[string]bool
}

func (m *Model) steps(in []agent.Message, asked int) steps {
	s := steps{m: m, asked: asked, calls: map[string]bool{}, closed: map[string]bool{}}
	for _, msg := range in {
		if !s.backs(msg) {
			continue
		}
		for _, p := range msg.Parts {
			// A result names its call; both must be there to be sent back.
			if at, ok := stepOf(p); ok {
				s.calls[at.ID], s.closed[at.ToolUseID] = true, true
			}
		}
	}
	return s
}

// stepOf decodes a part; false if it is no step, or was too long to store.
func stepOf(p agent.Part) (at step, ok bool) {
	ok = p.Type == agent.PartServerTool && json.Unmarshal(p.Raw, &at) == nil && at != step{}
	return at, ok
}

// backs reports whether the provider's own form of a message is sent back.
func (s steps) backs(msg agent.Message) bool { return len(s.m.serves) > 0 && s.m.made(msg) }

// given reports whether a part of the i-th message is sent back as the provider wrote it.
func (s steps) given(i int, msg agent.Message, p agent.Part) bool {
	at, ok := stepOf(p)
	switch {
	case !s.backs(msg) || !ok:
		return p.Type == agent.PartText && s.backs(msg)
	case at.ToolUseID != "":
		return s.calls[at.ToolUseID]
	}
	// An unfinished call may continue only in the turn that it belongs to.
	return s.closed[at.ID] || i > s.asked
}

// whole reports whether all steps of the i-th message are sent back, if it has any.
func (s steps) whole(i int, msg agent.Message) bool {
	for _, p := range msg.Parts {
		if p.Type == agent.PartServerTool && !s.given(i, msg, p) {
			return false
		}
	}
	return true
}

// continues reports whether the i-th message only asks the model to continue a paused reply.
// It does so anyway when its reply is sent back.
func (s steps) continues(i int, in []agent.Message) bool {
	return in[i].Note == agent.NotePauseTurn && i > 0 && s.backs(in[i-1]) && s.whole(i-1, in[i-1])
}

// made reports whether a model of this provider wrote a message.
func (m *Model) made(msg agent.Message) bool { return model.ProviderOf(msg.ModelName()) == m.name }

// stepBlock returns a step as the provider wrote it.
func stepBlock(p agent.Part) sdk.ContentBlockParamUnion {
	raw := param.Override[sdk.ServerToolUseBlockParam](p.Raw)
	return sdk.ContentBlockParamUnion{OfServerToolUse: &raw}
}

// textBlock returns a text, with the sources that it cites if they are sent back.
func textBlock(p agent.Part, cites bool) sdk.ContentBlockParamUnion {
	b := sdk.NewTextBlock(p.Text)
	var sources []json.RawMessage
	if !cites || json.Unmarshal(p.Raw, &sources) != nil {
		return b
	}
	for _, raw := range sources {
		source := param.Override[sdk.CitationWebSearchResultLocationParam](raw)
		b.OfText.Citations = append(b.OfText.Citations, sdk.TextCitationParamUnion{OfWebSearchResultLocation: &source})
	}
	return b
}

// isStep reports whether a block is a step of a server tool.
func isStep(kind string) bool {
	return kind == "server_tool_use" || strings.HasSuffix(kind, "_tool_result")
}

// step returns the part of a server tool's block, with the input that came in pieces.
func (b *block) step(input string) agent.Part {
	raw, what := json.RawMessage(b.raw), cmp.Or(b.tool, b.kind)
	var fields map[string]json.RawMessage
	// The stored block has an empty input until the pieces are added.
	if json.Valid([]byte(input)) && json.Unmarshal(raw, &fields) == nil && fields != nil {
		fields["input"] = json.RawMessage(input)
		raw, _ = json.Marshal(fields) // all was JSON before
	}
	if input = cmp.Or(input, b.whole); b.tool != "" {
		what += " " + input
	}
	return model.ServerToolPart(what, raw)
}

// sources returns a text's citations as a list.
func (b *block) sources() json.RawMessage {
	if len(b.citations) == 0 {
		return nil
	}
	return json.RawMessage("[" + strings.Join(b.citations, ",") + "]")
}
