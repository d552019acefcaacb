package agent

import (
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// FileInput is a file that goes into the store: of a message, or of a tool's result. The message
// or the result only names it.
type FileInput struct {
	// Name is the file's name. Folders in it are dropped; empty means none. An artifact's name has
	// the rules of [CheckArtifactName].
	Name string
	// MediaType says what the bytes are, as "image/png"; empty means what the bytes
	// themselves say, and else what the ending of Name says.
	MediaType string
	// Text describes the file. Every model reads it, and it is all that a model which can't read
	// the file learns of the content.
	Text string
	// Data are the bytes: 1 to [MaxFile].
	Data []byte
}

// BaseName returns the name without folders; empty for none.
func (f FileInput) BaseName() string {
	if f.Name == "" {
		return ""
	}
	return filepath.Base(f.Name)
}

// unknownType is what the bytes say that say nothing.
const unknownType = "application/octet-stream"

// Type returns what the bytes are. They decide where their beginning shows it: a
// provider refuses an image with a wrong type, and with it the conversation. The error is
// [CodeInvalidInput] if MediaType says something else than the bytes.
func (f FileInput) Type() (string, *Error) {
	found, _, err := mime.ParseMediaType(http.DetectContentType(f.Data))
	if err != nil {
		found = unknownType
	}
	if slices.Contains([]string{"image/bmp", "audio/mpeg"}, found) && utf8.Valid(f.Data) { // text that begins with "BM" or "ID3"
		found = "text/plain"
	}
	named := f.MediaType
	if named == "" {
		named = byEnding(f.Name)
	}
	// Text and archives hold many formats, and bytes that say nothing may be any other.
	vague := found == unknownType || found == "application/zip" || strings.HasPrefix(found, "text/")
	switch {
	case named == "" || named == found:
		return found, nil
	case !vague && f.MediaType != "":
		return "", Errorf(CodeInvalidInput, "%q is named as %s, and its bytes are %s: name no type, or the right one", f.BaseName(), named, found)
	case !vague:
		return found, nil
	case binary(named):
		return "", Errorf(CodeInvalidInput, "%q is named as %s, and its bytes are not: name another type", f.BaseName(), named)
	}
	return named, nil
}

// binary reports whether files of a type begin in a way that shows it.
func binary(kind string) bool {
	return strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" || kind == pdf
}

// byEnding returns the type that a name's ending stands for; empty for one that is not known.
// The system's own list differs from machine to machine.
func byEnding(name string) string {
	return map[string]string{
		".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml",
		".html": "text/html", ".svg": "image/svg+xml",
	}[strings.ToLower(filepath.Ext(name))]
}
