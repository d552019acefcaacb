package activities

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
)

// maxProviderID is the length in bytes of a provider's id of a call. It is for
// people who look for the call at the provider; a longer one helps nobody.
const maxProviderID = 256

// maxRaw bounds what is kept of a reply as its provider wrote it, in bytes: steps of its own
// tools, which belong together, are given back all or none.
const maxRaw = 256 << 10

// normalized makes of what a model wrote what can be kept and said again: one call with
// a name that no provider takes back would end every later turn of the session, and
// arguments that no reader of JSON takes would make its log unreadable.
func normalized(parts []agent.Part, spec *agent.Spec) []agent.Part {
	parts = slices.Clone(parts)
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

// lastOfEachKey leaves of values under one name the last, as the rules read them: of both the
// tool would get something that no rule and no approver has seen.
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

// validName makes of a name that no tool can have one that every provider takes, and
// that none of the agent's tools has: the model is told that there is no such tool.
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
