package loop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/wire"
)

// callDigest returns a digest that is equal for calls that ask for the same, however their
// JSON is written.
func callDigest(c agent.ToolCall) string {
	return digestOf(c.Tool, string(canonical(c.Arguments))+c.Malformed)
}

// digestOf returns a digest of a tool's name and a text.
func digestOf(tool, text string) string {
	sum := sha256.Sum256([]byte(tool + "\x00" + text))
	return hex.EncodeToString(sum[:8])
}

// shortArguments bounds the arguments of a reply's calls whose digests the workflow
// computes, in bytes: that takes some milliseconds. For more, the model's activity computes
// them.
const shortArguments = 8 << 10

// Digests returns the digests of a reply's calls; nil if all arguments are short. The
// activity that asked the model calls it.
func Digests(calls []agent.ToolCall, spec *agent.Spec) (list []wire.CallDigests) {
	size := 0
	for _, c := range calls {
		size += len(c.Arguments) + len(c.Malformed)
	}
	if size <= shortArguments {
		return nil
	}
	for _, c := range calls {
		shown := c.Arguments
		// A client has to know all arguments (see request), so its digest is of all.
		if tool, _ := spec.Tool(c.Tool); tool.Executor != agent.ExecutorClient {
			shown = redactedArguments(shown, tool)
		}
		list = append(list, wire.CallDigests{Same: callDigest(c), Shown: Digest(shown)})
	}
	return list
}

// sameOf returns the digest that is equal for equal calls. shownOf returns the digest that
// people compare.
func sameOf(r wire.Reply, i int, c agent.ToolCall) string {
	if i < len(r.Digests) {
		return r.Digests[i].Same
	}
	return callDigest(c)
}

func shownOf(r wire.Reply, i int, arguments json.RawMessage) string {
	if i < len(r.Digests) {
		return r.Digests[i].Shown
	}
	return Digest(arguments)
}

// Digest returns the first 16 hex digits of the SHA-256 of canonical arguments. People
// compare it to be sure which arguments they decide about (docs/wire.md §4).
func Digest(arguments json.RawMessage) string {
	sum := sha256.Sum256(canonical(arguments))
	return hex.EncodeToString(sum[:8])
}

// canonical rewrites JSON with sorted keys, without white space, and without the escapes
// that only Go writes. So other languages compute the same digest.
func canonical(raw json.RawMessage) []byte {
	if plain, ok := sorted(raw); ok {
		return plain
	}
	return sortedAnyway(raw)
}

func sortedAnyway(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a float64 would change long numbers
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return rawjson.UnescapeHTML(b)
}

// sorted returns what [canonical] does, in a fraction of the time, for arguments as most models
// write them: in ASCII, without a backslash, each key once.
func sorted(raw json.RawMessage) (_ []byte, ok bool) {
	if bytes.ContainsFunc(raw, func(r rune) bool { return r >= 0x7f || r == '\\' }) {
		return nil, false
	}
	v := jsontext.Value(bytes.Clone(raw))
	// Numbers stay as they are written.
	err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return v, err == nil
}
