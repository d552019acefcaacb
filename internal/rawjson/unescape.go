package rawjson

import (
	"bytes"
	"encoding/json"
)

// UnescapeHTML writes <, >, & and Unicode's two line separators as themselves in JSON that
// encoding/json wrote. encoding/json escapes them for HTML, in raw values too. Without the
// escapes a person who approves `a && b` reads it so, and a model reads what it wrote. It
// never changes raw, and returns raw itself if there is nothing to do.
func UnescapeHTML(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	out := make(json.RawMessage, 0, len(raw))
	for len(raw) > 0 {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 || at+1 == len(raw) {
			break
		}
		out, raw = append(out, raw[:at]...), raw[at:]
		// Other escapes are copied with the character behind the backslash. Else \\u003c,
		// a backslash and five letters, would be read as an escape.
		n := 2 // bytes
		if c, ok := escapedForHTML(raw); ok {
			out, n = append(out, c...), len(`\u003c`)
		} else {
			out = append(out, raw[:n]...)
		}
		raw = raw[n:]
	}
	return append(out, raw...)
}

// escapedForHTML returns the character that raw begins with, if encoding/json escapes it
// and JSON need not.
func escapedForHTML(raw []byte) (c string, ok bool) {
	if len(raw) < len(`\u003c`) {
		return "", false
	}
	switch string(bytes.ToLower(raw[:len(`\u003c`)])) {
	case `\u003c`:
		return "<", true
	case `\u003e`:
		return ">", true
	case `\u0026`:
		return "&", true
	case `\u2028`:
		return "\u2028", true
	case `\u2029`:
		return "\u2029", true
	}
	return "", false
}
