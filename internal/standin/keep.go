package standin

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// EnvKeep names the folder where [Keep] keeps requests.
const EnvKeep = "FERMATA_KEEP_REQUESTS"

// forms maps ends of paths to names of requests.
var forms = []struct{ suffix, name string }{
	{"/chat/completions", "chat"},
	{"/responses", "responses"},
	{"/messages", "messages"},
	{":streamGenerateContent", "generate"},
	{":streamRawPredict", "predict"},
	{"/converse-stream", "converse"},
}

// Main runs an adapter's tests, and keeps their requests ([Keep]).
func Main(m *testing.M) {
	Keep()
	os.Exit(m.Run())
}

// Keep keeps each request body of this process once, as FORM-SUM.json, if EnvKeep names a
// folder. It sees what is sent through http.DefaultTransport, as adapters do by default.
// Call it before the first request.
func Keep() {
	if dir := os.Getenv(EnvKeep); dir != "" {
		http.DefaultTransport = keeper{dir, http.DefaultTransport}
	}
}

// keeper writes down the requests that pass.
type keeper struct {
	dir  string
	next http.RoundTripper
}

func (k keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		return k.next.RoundTrip(r) // at most a request for a token
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := k.keep(r.URL.Path, body); err != nil {
		return nil, err
	}
	// A RoundTripper must not change the request that it got.
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return k.next.RoundTrip(r)
}

func (k keeper) keep(path string, body []byte) error {
	for _, f := range forms {
		if strings.HasSuffix(path, f.suffix) {
			name := fmt.Sprintf("%s-%.6x.json", f.name, sha256.Sum256(body))
			return os.WriteFile(filepath.Join(k.dir, name), body, 0o644)
		}
	}
	return fmt.Errorf("a request to %s has no known form: add it to the forms of internal/standin, and its type to internal/standin/types/forms.ts", path)
}
