package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Making makes an adapter that sends requests to base, with a client if one is given. The
// checks that use it hold for every adapter over HTTP, and are not in conformance.Model.
type Making func(base string, client *http.Client) model.Model

// Unreachable checks the error for a server that does not exist: it names the address and
// what to check.
func Unreachable(t *testing.T, make Making, req *model.Request, check string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	// Nothing listens at this port now.
	l.Close()
	_, err = make("http://"+addr, nil).Generate(t.Context(), req, Silent)
	var fault *agent.Error
	if !errors.As(err, &fault) || fault.Provider.Kind != agent.FaultTransient || fault.Provider.HTTP != 0 ||
		!strings.Contains(fault.Message, "gave no answer at "+addr) || !strings.Contains(fault.Message, check) {
		t.Errorf("got %v", err)
	}
}

// ClientTimeout checks that a client's own timeout counts as the provider's fault, not as
// a cancellation by the caller.
func ClientTimeout(t *testing.T, make Making, req *model.Request, key string) {
	t.Helper()
	s := Listen(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	m := make(s.URL, &http.Client{Timeout: 50 * time.Millisecond})
	// On a busy machine the time is over before the request arrives.
	_, err := m.Generate(t.Context(), req, func(model.Delta) {})
	if fault := checkFault(t, err, key); fault.Provider.Kind != agent.FaultTimeout {
		t.Errorf("got %s: %s", fault.Provider.Kind, fault.Message)
	}
	if n := s.Requests(); n > 1 {
		t.Errorf("%d requests were made", n)
	}
}

// Redirect checks that the key goes only to the host that it is for.
func Redirect(t *testing.T, make Making, req *model.Request, key string) {
	t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed, with the headers %v", r.Header)
	}))
	t.Cleanup(other.Close)
	s := Listen(t, Answer(http.StatusTemporaryRedirect, "", "", "location", other.URL+"/elsewhere"))
	if fault := s.Fails(t, make(s.URL, nil), req, key); fault.Provider.Kind != agent.FaultBadRequest || !strings.Contains(fault.Message, other.URL) {
		t.Errorf("got %s: %s", fault.Provider.Kind, fault.Message)
	}
}

// WrongURLs checks that an invalid base URL is reported, and that nothing is sent to it.
func WrongURLs(t *testing.T, make Making, req *model.Request) {
	t.Helper()
	for _, base := range []string{"localhost:11434/v1", "api.example", "ftp://host", "http://", "http://[::1", "://"} {
		_, err := make(base, nil).Generate(t.Context(), req, Silent)
		var fault *agent.Error
		if !errors.As(err, &fault) || fault.Retryable || !strings.Contains(fault.Message, "base URL") {
			t.Errorf("%s: got %v", base, err)
		}
	}
}

// Hides checks that values that are printed by accident show neither the key nor the base
// URL's password, and that their JSON does not show the key.
func Hides(t *testing.T, key, password string, values ...any) {
	t.Helper()
	for _, v := range values {
		for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(form, v); strings.Contains(s, key) || strings.Contains(s, password) {
				t.Errorf("%s of %T shows a secret: %s", form, v, s)
			}
		}
		if b, _ := json.Marshal(v); strings.Contains(string(b), key) { // what can't be written shows nothing
			t.Errorf("JSON of %T shows the key: %s", v, b)
		}
	}
}

// Grows checks that a list in a later request begins with the earlier list, byte for
// byte. Only then does the provider's cache have what was sent before.
func Grows(t *testing.T, field string, earlier, later []byte) {
	t.Helper()
	var was, is map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(earlier, &was), json.Unmarshal(later, &is)); err != nil {
		t.Fatal(err)
	}
	before, after := strings.TrimSuffix(string(was[field]), "]"), string(is[field])
	if before == "" || len(after) <= len(before)+1 || !strings.HasPrefix(after, before+",") {
		t.Errorf("%s was %s] and is %s", field, before, after)
	}
}
