package web

import (
	"bytes"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// maxMedia is how many bytes a media type may have (RFC 6838, 4.2); a longer one is unknown.
const maxMedia = 127

// typeOf returns the media type of what a server sent, by what it declares and by the
// bytes. note says where these differ. Bytes that are no text never count as text.
func typeOf(declared string, body []byte) (media, note string) {
	media, _, err := mime.ParseMediaType(declared)
	looks, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	switch {
	case err != nil || len(media) > maxMedia || !strings.Contains(media, "/") || slices.Contains([]string{"application/octet-stream", "binary/octet-stream"}, media):
		return looks, ""
	case len(body) == 0 || media == looks || textual(media) && textual(looks):
		return media, ""
	case textual(media):
		return looks, "sent as " + media
	// Sniffing knows few types: it takes an archive of its own kind for plain bytes.
	case looks == "application/octet-stream":
		return media, ""
	}
	return media, "its bytes look like " + looks
}

// textual reports whether a media type means text.
func textual(media string) bool {
	kind, sub, _ := strings.Cut(media, "/")
	return kind == "text" || kind == "application" && (strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml") ||
		slices.Contains([]string{"json", "xml", "yaml", "x-yaml", "toml", "javascript", "ecmascript", "x-javascript", "sql", "x-ndjson", "x-sh"}, sub))
}

func isHTML(media string) bool { return media == "text/html" || media == "application/xhtml+xml" }

// decode returns text as UTF-8.
func decode(body []byte, declared string) string {
	e, _, certain := charset.DetermineEncoding(body, declared)
	if !certain && utf8.Valid(trimRune(body)) {
		return string(trimRune(body))
	}
	if text, err := e.NewDecoder().Bytes(body); err == nil {
		body = text
	}
	return strings.ToValidUTF8(string(bytes.TrimPrefix(body, []byte("\uFEFF"))), "\uFFFD")
}

// trimRune cuts off a character that is not complete.
func trimRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
