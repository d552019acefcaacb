package activities

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/schemacost"
)

// schemas caches the tools' schemas, which seldom change. The zero value is empty. It is
// safe for concurrent use.
type schemas struct {
	mu   sync.Mutex
	read map[string]*toolSchema // by the schema's text
	size int                    // bytes of JSON that were read
}

// known is the cache of this process.
var known schemas

// toolSchema is a parsed schema. resolved is nil if it cannot be used.
type toolSchema struct {
	plain    []byte // as the schema package writes it
	resolved *jsonschema.Resolved
	names    []string // of the top-level arguments
	open     bool     // the schema itself says what other arguments may be
	// shallow are the steps of a check by the depth of the arguments, for the usual depths.
	shallow [4]int
}

const (
	// maxSchemas is how many bytes of schemas are cached; in memory they take up to 300
	// times that. Beyond it the cache is emptied.
	maxSchemas = 2 << 20
	// maxSteps limits the work of checking one call: some seconds.
	maxSteps = 40_000_000
	// maxFault limits what the model is told about a fault, in bytes.
	maxFault = 800
)

// faults says for each call of a reply how its arguments violate the tool's schema; nil
// if all are valid. It runs before rules are matched: a rule does not see a misspelled
// name that the tool accepts.
func faults(spec *agent.Spec, parts []agent.Part) []string {
	calls := (agent.Message{Parts: parts}).ToolCalls()
	all, some := make([]string, len(calls)), false
	for i, c := range calls {
		if t, has := spec.Tool(c.Tool); has && c.Malformed == "" {
			all[i] = fault(t, c.Arguments)
			some = some || all[i] != ""
		}
	}
	if !some {
		return nil
	}
	return all
}

// fault says how arguments violate a tool's schema; empty if they do not. The runtime
// checks the arguments of its own tools itself.
func fault(t agent.ToolSpec, arguments json.RawMessage) string {
	if t.Executor != "" && t.Executor != agent.ExecutorClient || len(t.Input) == 0 {
		return ""
	}
	s := known.of(t.Input)
	if s.resolved == nil {
		return ""
	}
	if fault := s.fault(arguments); fault != "" {
		return "the arguments do not fit the tool's schema: " + excerpt.Of(fault, maxFault, len(fault))
	}
	return ""
}

// hasReadableSchema reports whether a tool's arguments can be checked. A rule about
// arguments cannot judge a call otherwise.
func hasReadableSchema(t agent.ToolSpec) bool {
	return len(t.Input) == 0 || known.of(t.Input).resolved != nil
}

// steps returns how many steps it takes at most to check one part of arguments.
func (s *toolSchema) steps(depth int) int {
	if depth < len(s.shallow) {
		return s.shallow[depth]
	}
	return schemacost.Steps(s.plain, depth)
}

func (s *toolSchema) fault(arguments json.RawMessage) string {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	var object map[string]any
	switch err := json.Unmarshal(arguments, &object); {
	case err != nil && json.Valid(arguments) && !bytes.HasPrefix(bytes.TrimSpace(arguments), []byte("{")), err == nil && object == nil:
		return "they are not a JSON object"
	case err != nil:
		return err.Error() // a number that no float holds
	}
	// Before Validate, whose work can grow exponentially with the depth.
	if depth := rawjson.Depth(arguments); s.steps(depth) > maxSteps/parts(object) {
		return "they have too many parts to be checked; make them shorter, or less nested"
	}
	if name, meant := s.misspelled(object); name != "" {
		return fmt.Sprintf("there is no argument %q; %s is meant, as it is written here", name, meant)
	}
	err := s.resolved.Validate(object)
	if err == nil {
		return ""
	}
	text := strings.TrimPrefix(err.Error(), "validating root: ")
	if strings.Contains(text, "additional") && len(s.names) > 0 {
		text += ". The arguments are: " + strings.Join(s.names, ", ")
	}
	return text
}

// alike reports whether two names differ only in the case of letters and the signs
// between them, as amount_eur and amountEUR do. A program may take one for the other.
func alike(a, b string) bool { return strings.EqualFold(lettersOf(a), lettersOf(b)) }

// lettersOf returns the letters and digits of a name; the name itself if it has none.
func lettersOf(name string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
	return cmp.Or(letters, name)
}

// misspelled returns an argument that is not in the schema but differs from one of its
// names only in case and signs. It finds none if the schema allows other arguments.
func (s *toolSchema) misspelled(object map[string]any) (name, meant string) {
	if s.open {
		return "", ""
	}
	// Sorted, so that every attempt says the same.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(s.names, name) {
			continue
		}
		if i := slices.IndexFunc(s.names, func(known string) bool { return alike(known, name) }); i >= 0 {
			return name, s.names[i]
		}
	}
	return "", ""
}

// parts returns how many parts of a value a schema looks at. A long text counts by its
// length.
func parts(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 8
	case []any:
		for _, one := range v {
			n += parts(one)
		}
	case map[string]any:
		for name, one := range v {
			n += parts(name) + parts(one)
		}
	}
	return n
}

// of returns a parsed schema, from the cache or newly read.
func (s *schemas) of(raw json.RawMessage) *toolSchema {
	s.mu.Lock()
	read, ok := s.read[string(raw)]
	s.mu.Unlock()
	if ok {
		return read
	}
	// Not under the lock: reading may take long. Two goroutines may read the same one.
	read = readSchema(raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size += len(raw); s.read == nil || s.size > maxSchemas {
		s.read, s.size = map[string]*toolSchema{}, len(raw)
	}
	s.read[string(raw)] = read
	return read
}

// readSchema parses a schema. If it cannot be used, resolved is nil.
func readSchema(raw json.RawMessage) *toolSchema {
	s := &toolSchema{}
	resolved, plain, err := resolveSchema(raw)
	if err != nil {
		return s
	}
	var top struct {
		Properties map[string]any `json:"properties"`
		Additional any            `json:"additionalProperties"`
	}
	_ = json.Unmarshal(plain, &top) // our own encoding, which decodes
	// The schema package writes false as {"not": {}}.
	no, closed := top.Additional.(map[string]any)
	closed = closed && len(no) == 1 && no["not"] != nil
	s.plain, s.resolved, s.names = plain, resolved, slices.Sorted(maps.Keys(top.Properties))
	s.open = top.Additional != nil && top.Additional != false && !closed
	for depth := range s.shallow {
		s.shallow[depth] = schemacost.Steps(plain, depth)
	}
	return s
}

func resolveSchema(raw json.RawMessage) (*jsonschema.Resolved, []byte, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, nil, err
	}
	plain, err := json.Marshal(schema)
	if err != nil {
		return nil, nil, err
	}
	// A cycle would never end, and a heavy pattern may take minutes.
	if why := schemacost.Cycle(plain); why != "" {
		return nil, nil, errors.New(why)
	}
	if why := schemacost.HeavyPatterns(plain); why != "" {
		return nil, nil, errors.New(why)
	}
	resolved, err := schema.Resolve(nil)
	return resolved, plain, err
}
