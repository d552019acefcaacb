package agent

import (
	"errors"
	"fmt"
	"time"
)

// Error is what every refusal and failure is, in Go and on the wire (docs/wire.md §7).
// The message alone says what, where and what to do: the plain temporal command
// prints no more of it.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Path is the field that is at fault, "input.parts[2].type"; empty if none is.
	Path    string `json:"path,omitempty"`
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
	Status  Status `json:"status,omitempty"`
	// Suspension is the one that is open.
	Suspension string `json:"suspension,omitempty"`
	// Retryable means that the same thing, unchanged, may succeed later.
	Retryable bool   `json:"retryable"`
	Help      string `json:"help,omitempty"`
	// Provider is set where a model's provider failed.
	Provider *ProviderFault `json:"provider,omitempty"`
	// Charges is what the attempts at a model call have used that failed in the end. It goes
	// from the step to its run, and no further.
	Charges []Charge `json:"charges,omitempty"`

	// RetryAfter is how long the other side asked to wait; zero if it did not.
	RetryAfter time.Duration `json:"-"`
	// Err is the cause. It does not cross a process's boundary.
	Err error `json:"-"`
}

// ProviderFault is a provider's failure as data.
type ProviderFault struct {
	Kind  FaultKind `json:"kind"`
	Model string    `json:"model"`          // as the Spec names it
	HTTP  int       `json:"http,omitempty"` // the answer's status; zero where none came
	// AfterToolResult means that tools had already run in this run.
	AfterToolResult bool `json:"after_tool_result"`
	// Unsent means that the request did not reach the provider: it costs nothing.
	Unsent bool `json:"-"`
}

// FaultKind sorts providers' failures; the set is closed.
type FaultKind string

// The kinds of provider failures. All but the first four are final.
const (
	FaultRateLimit  FaultKind = "rate_limit"       // 429 with a promise of better times
	FaultOverload   FaultKind = "overload"         // 503, 529
	FaultTransient  FaultKind = "transient"        // 408, 409, other 5xx, a broken connection or stream, the unknown
	FaultTimeout    FaultKind = "timeout"          // no complete reply in the time that a call has
	FaultAuth       FaultKind = "auth"             // 401, 403
	FaultQuota      FaultKind = "quota"            // 402, or a 429 that no waiting mends
	FaultBadRequest FaultKind = "bad_request"      // other 4xx
	FaultContext    FaultKind = "context_too_long" // more tokens than the model's window
)

// Retryable reports whether a later attempt, unchanged, may succeed.
func (k FaultKind) Retryable() bool {
	switch k {
	case FaultRateLimit, FaultOverload, FaultTransient, FaultTimeout:
		return true
	}
	return false
}

// Errorf makes an error with a code; %w keeps its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Retryable: code.Retryable(), Err: errors.Unwrap(err)}
}

// WithPath names the field that is at fault.
func (e *Error) WithPath(path string) *Error { e.Path = path; return e }

// Error is the message: it has to stand alone.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is this error's code.
func (e *Error) Is(target error) bool { c, ok := target.(Code); return ok && c == e.Code }

// CodeOf returns the code of an error: [CodeInternal] if it has none, empty for nil. It also
// reads the code of a run that failed from an error of Temporal's SDK, as a workflow gets
// it that starts a run as its child, or a client that waits for one.
func CodeOf(err error) Code {
	var e *Error
	var c Code
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	case errors.As(err, &c):
		return c
	}
	return typeOf(err)
}

// typeOf is the code that an application error of Temporal's carries as its type. The SDK
// is not imported here: this package is for everybody.
func typeOf(err error) Code {
	var typed interface {
		error
		Type() string
	}
	for errors.As(err, &typed) {
		if c := Code(typed.Type()); c.Known() {
			return c
		}
		err = errors.Unwrap(typed)
	}
	return CodeInternal
}
