package callback

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/fermata-agents/fermata/agent"
)

// problem is an error as RFC 9457 writes it, with our own fields.
type problem struct {
	Type   string     `json:"type"` // the page that explains the code
	Title  string     `json:"title"`
	Status int        `json:"status"` // of HTTP
	Detail string     `json:"detail"`
	Code   agent.Code `json:"code"`
	Path   string     `json:"path,omitempty"`

	Session    string       `json:"session,omitempty"`
	Run        string       `json:"run,omitempty"`
	RunStatus  agent.Status `json:"run_status,omitempty"`
	Suspension string       `json:"suspension,omitempty"`
	Retryable  bool         `json:"retryable"`
}

// httpFault is a request that is no callback, with a status of HTTP's own.
type httpFault struct {
	status int
	err    *agent.Error
}

// Error implements error.
func (f httpFault) Error() string { return f.err.Message }

// Unwrap returns the error with its code.
func (f httpFault) Unwrap() error { return f.err }

func fault(status int, message string) error {
	return httpFault{status, agent.Errorf(agent.CodeInvalidInput, "%s", message)}
}

// unknownSession is why a session is not there for a callback, such as another task queue. Only the log
// has the reason.
type unknownSession struct{ error }

// Unwrap returns what the sender learns.
func (unknownSession) Unwrap() error { return errUnknownSession }

// statusOf returns the HTTP status of an error. It is never 410: a Standard Webhooks sender that gets
// that status disables the address for good, and the session's next run may use it.
func statusOf(err error) int {
	var f httpFault
	if errors.As(err, &f) {
		return f.status
	}
	if status := agent.CodeOf(err).HTTPStatus(); status != http.StatusGone {
		return status
	}
	return http.StatusConflict
}

// retryAfter is when a sender should try again, in seconds.
const retryAfter = "10"

// writeProblem answers with an error.
func writeProblem(w http.ResponseWriter, err error) {
	var e *agent.Error
	if !errors.As(err, &e) {
		e = &agent.Error{Code: agent.CodeOf(err)}
	}
	p := problem{
		Type: e.Code.HelpURL(), Title: string(e.Code), Status: statusOf(err), Detail: err.Error(), Code: e.Code, Path: e.Path,
		Session: e.Session, Run: e.Run, RunStatus: e.Status, Suspension: e.Suspension, Retryable: e.Retryable || e.Code.Retryable(),
	}
	switch {
	case errors.As(err, new(refusedSender)), errors.As(err, new(unknownSession)):
		p.Detail = e.Message // the reason is for the log
	// It may name servers, stores and files of ours.
	case p.Status >= http.StatusInternalServerError:
		p.Detail = "the run could not be reached. Nothing is lost if the same callback is sent again with the same id"
		p.Path, p.Session, p.Run, p.RunStatus, p.Suspension = "", "", "", "", ""
	}
	if p.Retryable {
		w.Header().Set("Retry-After", retryAfter)
	}
	if p.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	writeJSON(w, "application/problem+json", p.Status, p)
}

func writeJSON(w http.ResponseWriter, kind string, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil { // all fields are texts and numbers
		status, raw = http.StatusInternalServerError, []byte("{}")
	}
	head := w.Header()
	head.Set("Content-Type", kind)
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // a sender that went away learns nothing
}
