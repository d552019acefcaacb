package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// minMedia is how many bytes of base64 in structured content are left out at least.
const minMedia = 1 << 10

// contents returns content as the model reads it, in the server's order.
func contents(list []sdk.Content, show shower) string {
	var blocks []string
	for _, c := range list {
		if text := block(c, show); text != "" {
			blocks = append(blocks, text)
		}
	}
	return clean(strings.Join(blocks, "\n"))
}

// block returns one block of content. A line in brackets says what is known of it; its
// text follows, if it has one.
func block(c sdk.Content, show shower) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return under(about(remarks(c.Annotations)...), c.Text)
	case *sdk.ImageContent:
		return about(append([]string{"image", c.MIMEType, show(c.MIMEType, "", c.Data)}, remarks(c.Annotations)...)...)
	case *sdk.AudioContent:
		return about(append([]string{"audio", c.MIMEType, show(c.MIMEType, "", c.Data)}, remarks(c.Annotations)...)...)
	case *sdk.ResourceLink:
		return linkTo(c)
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			break
		}
		known := []string{"resource", c.Resource.URI, c.Resource.MIMEType}
		text, ok := textIn(c.Resource)
		if !ok {
			known = append(known, show(c.Resource.MIMEType, c.Resource.URI, c.Resource.Blob))
		}
		return under(about(append(known, remarks(c.Annotations)...)...), text)
	}
	return "[something of an unknown type, not shown]"
}

func under(head, text string) string {
	if head == "" || text == "" {
		return head + text
	}
	return head + "\n" + text
}

// about returns what is known in brackets, or nothing if nothing is.
func about(known ...string) string {
	known = slices.DeleteFunc(known, func(s string) bool { return s == "" })
	if len(known) == 0 {
		return ""
	}
	return "[" + strings.Join(known, ", ") + "]"
}

func unseen(size int) string { return fmt.Sprintf("%d bytes, not shown", size) }

// remarks says for whom content is, and how important it is.
func remarks(a *sdk.Annotations) (list []string) {
	if a == nil {
		return nil
	}
	for i, role := range a.Audience {
		if i == 0 {
			role = "for " + role
		}
		list = append(list, string(role))
	}
	if a.Priority != 0 {
		list = append(list, fmt.Sprintf("priority %g", a.Priority))
	}
	return list
}

func linkTo(c *sdk.ResourceLink) string {
	known := []string{"link to " + c.Name, c.Title, c.URI, c.MIMEType}
	if c.Size != nil {
		known = append(known, fmt.Sprintf("%d bytes", *c.Size))
	}
	text := about(append(known, remarks(c.Annotations)...)...)
	if c.Description != "" {
		text = strings.TrimSuffix(text, "]") + ": " + cut(c.Description, maxShown) + "]"
	}
	return text
}

// textIn returns a resource's text. A server may also send text as a blob of a textual
// type.
func textIn(r *sdk.ResourceContents) (string, bool) {
	if r.Blob == nil {
		return r.Text, true
	}
	if !textual(r.MIMEType) || !utf8.Valid(r.Blob) {
		return "", false
	}
	return string(r.Blob), true
}

// textual reports whether a media type means text in UTF-8.
func textual(media string) bool {
	// Without a charset, text is UTF-8.
	kind, params, _ := mime.ParseMediaType(media)
	_, last, _ := strings.Cut(kind, "/")
	return slices.Contains([]string{"", "utf-8", "us-ascii"}, strings.ToLower(params["charset"])) &&
		(strings.HasPrefix(kind, "text/") || strings.HasSuffix(last, "+json") || strings.HasSuffix(last, "+xml") ||
			slices.Contains([]string{"json", "xml", "yaml", "x-yaml", "toml", "javascript", "sql", "x-ndjson"}, last))
}

// structure returns a result's structured content as JSON. It is empty if the result's
// texts say the same. Media are left out, as in the rest of the result.
func structure(r *sdk.CallToolResult) (string, error) {
	if r.StructuredContent == nil {
		return "", nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	// The SDK has read numbers as float64. exact put the text that the server wrote into
	// _meta.
	if raw, ok := r.Meta[exactMeta].(string); ok {
		if err := json.Compact(&b, []byte(raw)); err != nil {
			return "", fmt.Errorf("the server's structured answer can't be read: %w", err)
		}
	} else if err := encoder.Encode(r.StructuredContent); err != nil {
		return "", fmt.Errorf("the server's structured answer can't be written: %w", err)
	}
	var value any
	if err := exactly(b.Bytes(), &value); err != nil {
		return "", fmt.Errorf("the server's structured answer can't be read: %w", err)
	}
	if repeats(value, r.Content) {
		return "", nil
	}
	if lean, changed := withoutMedia(value, ""); changed {
		b.Reset()
		if err := encoder.Encode(lean); err != nil {
			return "", fmt.Errorf("the server's structured answer can't be written: %w", err)
		}
	}
	return strings.TrimSpace(b.String()), nil
}

// repeats reports whether structured content only repeats the content. MCP asks for an
// object, so servers put a text or a list under a name such as "result".
func repeats(value any, list []sdk.Content) bool {
	if saidIn(value, list) {
		return true
	}
	wrapped, _ := value.(map[string]any)
	for _, name := range []string{"result", "content"} {
		if inner, ok := wrapped[name]; ok && len(wrapped) == 1 {
			return saidIn(inner, list)
		}
	}
	return false
}

func saidIn(value any, list []sdk.Content) bool {
	var texts []string
	for _, c := range list {
		if text, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	if value == strings.Join(texts, "\n") && len(texts) > 0 || slices.ContainsFunc(texts, func(text string) bool { return says(text, value) }) {
		return true
	}
	items, ok := value.([]any)
	if !ok || len(items) == 0 {
		return false
	}
	// Some servers repeat the blocks themselves in the structured content.
	var blocks any
	if raw, err := json.Marshal(list); err == nil && exactly(raw, &blocks) == nil && alike(blocks, value) {
		return true
	}
	return slices.EqualFunc(texts, items, says)
}

// says reports whether a text is a value, as it is or as JSON.
func says(text string, value any) bool {
	if words, ok := value.(string); ok && words == text {
		return true
	}
	var parsed any
	return exactly([]byte(text), &parsed) == nil && alike(parsed, value)
}

// withoutMedia replaces long base64 that is media: it stands in a data URL, or kind or a
// field beside it names a media type.
func withoutMedia(value any, kind string) (_ any, changed bool) {
	switch v := value.(type) {
	case string:
		if rest, ok := strings.CutPrefix(v, "data:"); ok {
			if of, data, ok := strings.Cut(rest, ";base64,"); ok {
				kind, v = of, data
			}
		}
		// Without a media type it may be data that the model needs.
		if kind == "" || textual(kind) || len(v) < minMedia || strings.Trim(v, base64Alphabet) != "" {
			return value, false
		}
		size := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(v, "=")))
		return about(kind, unseen(size)), true
	case []any:
		for i := range v {
			lean, c := withoutMedia(v[i], "")
			v[i], changed = lean, changed || c
		}
	case map[string]any:
		for _, name := range []string{"mimeType", "mime_type", "media_type", "contentType", "content_type"} {
			if text, ok := v[name].(string); ok {
				kind = text
			}
		}
		for name := range v {
			lean, c := withoutMedia(v[name], kind)
			v[name], changed = lean, changed || c
		}
	}
	return value, changed
}

// base64Alphabet has the characters of both base64 alphabets.
const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
