package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
)

// exactMeta is the field of a result's _meta that keeps its structured content as the
// server wrote it. The SDK reads every number as a float64 and loses the last digits of
// long ones.
const exactMeta = "com.github.fermata-agents/structured"

var longNumber = regexp.MustCompile(`[0-9]{16}`)

// exact adds to a result the text of its structured content, if that has numbers that
// would lose digits. All else stays as it is.
func exact(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"structuredContent"`)) || !longNumber.Match(message) {
		return message
	}
	var whole, result, meta map[string]json.RawMessage
	if json.Unmarshal(message, &whole) != nil || json.Unmarshal(whole["result"], &result) != nil || result["structuredContent"] == nil {
		return message
	}
	if raw := result["_meta"]; raw != nil && json.Unmarshal(raw, &meta) != nil {
		return message
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	var err error
	put := func(into map[string]json.RawMessage, name string, value any) {
		var raw json.RawMessage
		if raw, err = json.Marshal(value); err == nil {
			into[name] = raw
		}
	}
	// Each level is encoded again only if the one below it was.
	if put(meta, exactMeta, string(result["structuredContent"])); err == nil {
		put(result, "_meta", meta)
	}
	if err == nil {
		put(whole, "result", result)
	}
	if err != nil {
		return message
	}
	out, err := json.Marshal(whole)
	if err != nil {
		return message
	}
	return out
}

// crowded reports whether a message has more than [maxValues] values. It may count text
// that is not JSON wrongly, since nobody reads that.
func crowded(message []byte) bool {
	// Each value takes a byte at least, so a shorter message can't have too many.
	if len(message) < maxValues {
		return false
	}
	values, quoted := 0, false
	for i := 0; i < len(message); i++ {
		switch c := message[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',', (c == '{' || c == '[') && i+1 < len(message) && message[i+1] != c+2: // their ends are two on
			values++
		}
	}
	return values > maxValues
}

// exactEvents is a stream of events whose messages go through [exact]. Each message
// stands on one line, as all servers write it.
type exactEvents struct {
	io.Closer
	lines   *bufio.Reader
	attempt *attempt
	rest    []byte
	err     error
}

func exactStream(body io.ReadCloser, t *attempt) io.ReadCloser {
	return &exactEvents{Closer: body, lines: bufio.NewReaderSize(body, 64<<10), attempt: t}
}

// Read implements [io.Reader].
func (e *exactEvents) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.rest, e.err = e.next()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// next returns a line, or a piece of a line that is longer than a message may be.
func (e *exactEvents) next() (line []byte, err error) {
	for {
		piece, err := e.lines.ReadSlice('\n')
		line = append(line, piece...)
		if errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxMessage {
			continue
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return line, nil
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && err == nil {
			if message := bytes.TrimSpace(data); crowded(message) {
				// This ends the call at once: the SDK would resume a stream that broke off.
				e.attempt.fail(errTooMany)
				return nil, errTooMany
			} else if len(message) > 0 {
				if full := exact(message); len(full) != len(message) {
					line = append(append([]byte("data: "), full...), '\n')
				}
			}
		}
		return line, err
	}
}

// alike reports whether two decoded values are equal. Numbers may be written differently,
// unless they are too long to compare as float64.
func alike(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b || longNumber.MatchString(a.String()) || longNumber.MatchString(b.String()) {
			return ok && a == b
		}
		x, xErr := a.Float64()
		y, yErr := b.Float64()
		return xErr == nil && yErr == nil && x == y
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, alike)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, alike)
	}
	return a == b
}
