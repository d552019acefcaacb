package agent

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Limits of files. They hold wherever a file enters a session.
const (
	// MaxFile is the most bytes of one file.
	MaxFile = 20 << 20
	// MaxFiles is the most files of one message, and of one tool result.
	MaxFiles = 20
	// MaxFileText is the longest description of a file of a tool result, in bytes.
	MaxFileText = 4 << 10
	// maxFileName is the longest name of a file, in bytes.
	maxFileName = 255
)

// File names bytes in the store: an image, a document, a recording, or any data. The bytes
// are in no history, log, trace or event. client.Client.File reads them.
type File struct {
	// Session is the session that the bytes are stored with, and deleted with.
	Session string `json:"session"`
	// Digest is the SHA-256 of the bytes, in hex. Size is their number.
	Digest string `json:"digest"`
	Size   int    `json:"size"`
	// MediaType is what the bytes are, as "image/png", without parameters. It was found in
	// the bytes, where they say it.
	MediaType string `json:"media_type"`
	// Name is the file's name without folders; empty if it has none.
	Name string `json:"name,omitempty"`
}

// String returns the file's handle, type and size, for models and people:
// "chart.png#3f9a0c1b (image/png, 5120 bytes)".
func (f *File) String() string {
	return fmt.Sprintf("%s (%s, %d bytes)", f.Handle(), f.MediaType, f.Size)
}

// IsImage reports whether the file is an image.
func (f *File) IsImage() bool { return strings.HasPrefix(f.MediaType, "image/") }

// mediaForm is the form of a media type without parameters. It decides within workflows, so it is
// no library's.
var mediaForm = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$`)

// Check returns a [CodeInvalidInput] error, with the path of the field, for a file that nobody
// can have stored.
func (f *File) Check() error {
	switch {
	case len(f.Session) > maxFileName || CheckSession(rootOf(f.Session)) != nil:
		return Errorf(CodeInvalidInput, "session is not that of a stored file").WithPath("session")
	case !isDigest(f.Digest):
		return Errorf(CodeInvalidInput, "digest must be the SHA-256 of the stored bytes, 64 digits of hex").WithPath("digest")
	case f.Size < 1 || f.Size > MaxFile:
		return Errorf(CodeInvalidInput, "size is %d; a file has 1 to %d bytes", f.Size, MaxFile).WithPath("size")
	case !mediaForm.MatchString(f.MediaType):
		return Errorf(CodeInvalidInput, "media_type must be one as image/png, without parameters").WithPath("media_type")
	case len(f.Name) > maxFileName || strings.ContainsFunc(f.Name, func(r rune) bool { return r < ' ' || r == '/' || r == '\\' }):
		return Errorf(CodeInvalidInput, "name must be that of a file, without folders, and at most %d bytes long", maxFileName).WithPath("name")
	}
	return nil
}

// Fits reports whether bytes are of the file's type, as far as their beginning tells: images and
// PDFs begin with a mark.
func (f *File) Fits(data []byte) bool {
	found, _, _ := strings.Cut(http.DetectContentType(data), ";")
	marked := f.IsImage() && f.MediaType != "image/svg+xml" || f.MediaType == pdf
	return found == f.MediaType || !marked
}

const pdf = "application/pdf"

// rootOf returns the root session of a session's tree.
func rootOf(session string) string {
	root, _, _ := strings.Cut(session, "/")
	return root
}

func isDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// Weight is about what a model is charged for the file, in bytes of text. Workflows decide by it, so
// it may only change with a new loop.Revision: an image has one or two
// thousand tokens, whatever its size, and of what it can't read the model gets a line.
func (f *File) Weight() int {
	const line, image, mostPDF, mostText = 256, 6 << 10, 256 << 10, 256 << 10
	text := strings.HasPrefix(f.MediaType, "text/") || strings.HasPrefix(f.MediaType, "application/json") || strings.HasPrefix(f.MediaType, "application/yaml")
	switch {
	case f.IsImage():
		return image
	case f.MediaType == pdf:
		return min(max(f.Size/6, image), mostPDF)
	case text && f.Size <= mostText:
		return f.Size
	}
	return line
}
