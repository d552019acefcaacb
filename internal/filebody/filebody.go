package filebody

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Files are the files of one request. Make them with [New]. They are safe for concurrent use.
type Files struct {
	mark string
	data map[string][]byte
}

// digestSize is how many characters a digest has: SHA-256 in hex.
const digestSize = 64

// New returns the files of a request, by their digests. It keeps data, which must not change.
func New(data map[string][]byte) *Files {
	// Nobody can guess the mark, so no text of a conversation stands for a file.
	return &Files{"file-" + rand.Text() + "-", data}
}

// Base64 returns a text that stands for a file's bytes in base64 until [Files.Send]. It is empty if
// there is no such file, and has no character that JSON writes in another way.
func (f *Files) Base64(digest string) string {
	if len(digest) != digestSize || len(f.data[digest]) == 0 {
		return ""
	}
	return f.mark + digest
}

// Send fills the body of a request and sends it. It is a middleware of the providers' SDKs.
func (f *Files) Send(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if len(f.data) > 0 && r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err == nil {
			body, err = f.fill(body)
		}
		if err != nil {
			return nil, fmt.Errorf("writing the files of a request: %w", err)
		}
		r.ContentLength = int64(len(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody() // it has no error
	}
	return next(r)
}

// fill returns a body with the files. It allocates the result alone.
func (f *Files) fill(body []byte) ([]byte, error) {
	pieces := bytes.Split(body, []byte(f.mark))
	size := len(body)
	for _, p := range pieces[1:] {
		if len(p) < digestSize {
			return nil, errors.New("the body is cut off within the name of a file")
		}
		size += base64.StdEncoding.EncodedLen(len(f.data[string(p[:digestSize])]))
	}
	out := append(make([]byte, 0, size), pieces[0]...)
	for _, p := range pieces[1:] {
		out = base64.StdEncoding.AppendEncode(out, f.data[string(p[:digestSize])])
		out = append(out, p[digestSize:]...)
	}
	return out, nil
}
