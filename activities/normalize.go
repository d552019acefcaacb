package activities

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/model"
)

// maxProviderID limits a provider's call id, in bytes. People use it to find the call at
// the provider.
const maxProviderID = 256

// maxRaw limits what is kept of a reply as its provider wrote it, in bytes. Steps of the
// provider's own tools belong together, so all are kept or none.
const maxRaw = 256 << 10

// normalized returns a reply's parts in a form that can be recorded and sent again. A
// call whose name no provider accepts would fail every later turn of the session.
// Arguments that are not valid JSON would make its log unreadable.
func normalized(parts []agent.Part, spec *agent.Spec) []agent.Part {
	parts = model.FitCitations(slices.Clone(parts))
	raw := 0
	for _, p := range parts {
		raw += len(p.Raw)
	}
	for i, p := range parts {
		if raw > maxRaw || len(p.Raw) > 0 && !json.Valid(p.Raw) || !utf8.Valid(p.Raw) || rawjson.Depth(p.Raw) > rawjson.MaxWrittenDepth {
			parts[i].Raw = nil
		}
		if p.Type != agent.PartToolCall || p.Call == nil {
			continue
		}
		c := *p.Call
		c.Tool = validName(c.Tool, spec)
		if len(c.ProviderID) > maxProviderID {
			c.ProviderID = ""
		}
		if !utf8.Valid(c.Arguments) {
			c.Arguments = bytes.ToValidUTF8(c.Arguments, []byte("\uFFFD"))
		}
		// Kept as a malformed call: the log stays readable, and the model is told.
		if rawjson.Depth(c.Arguments) > rawjson.MaxWrittenDepth {
			c.Arguments, c.Malformed = nil, string(c.Arguments)
		}
		if rawjson.DuplicateKey(c.Arguments) != "" {
			c.Arguments = lastOfEachKey(c.Arguments)
		}
		parts[i].Call = &c
	}
	return parts
}

// lastOfEachKey removes all but the last value of a key, as the rules read it. With both,
// the tool could get a value that no rule and no approver has seen.
func lastOfEachKey(arguments json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return arguments
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return arguments
	}
	return plain
}

// validName replaces a name that no tool can have by one that every provider accepts and
// no tool of the agent has. The model is then told that there is no such tool.
func validName(name string, spec *agent.Spec) string {
	if _, known := spec.Tool(name); known || agent.CheckTool(name) == nil {
		return name
	}
	const most = 40 // of the name's own characters
	tidy := "unknown_" + strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || agent.CheckTool("a"+string(r)) != nil {
			return '_'
		}
		return r
	}, name[:min(len(name), most)])
	for _, known := spec.Tool(tidy); known; _, known = spec.Tool(tidy) {
		tidy += "_"
	}
	return tidy
}
