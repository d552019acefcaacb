package agent

import (
	"errors"
	"fmt"
	"time"
)

// Error is the form of every refusal and failure, in Go and on the wire (docs/wire.md
// §7). The message alone has to say what went wrong, where, and what to do: the plain
// temporal command prints nothing else.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Path is the field that is wrong, "input.parts[2].type", or the step of a flow that failed,
	// "file.3/reviewer". It is empty if no field and no step did.
	Path string `json:"path,omitempty"`
	// Cause is the code of what failed first, if Code says only where: of the step, with
	// [CodeStepFailed], and of the first failure, with [CodeJoinFailed]. It is empty if that has no code.
	Cause   Code   `json:"cause,omitempty"`
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
	Status  Status `json:"status,omitempty"`
	// Suspension is the id of the open suspension; empty if there is none.
	Suspension string `json:"suspension,omitempty"`
	// Retryable means that the same call, unchanged, may succeed later.
	Retryable bool   `json:"retryable"`
	Help      string `json:"help,omitempty"`
	// Provider is set if a model's provider failed.
	Provider *ProviderFault `json:"provider,omitempty"`
	// Charges is what the attempts at a model call have used that failed in the end. The
	// activity reports it to its run; it goes no further.
	Charges []Charge `json:"charges,omitempty"`

	// RetryAfter is how long the provider asked to wait; zero if it did not ask.
	RetryAfter time.Duration `json:"-"`
	// Err is the cause. It does not leave the process.
	Err error `json:"-"`
}

// ProviderFault is a provider's failure as data.
type ProviderFault struct {
	Kind  FaultKind `json:"kind"`
	Model string    `json:"model"`          // as the Spec names it
	HTTP  int       `json:"http,omitempty"` // the answer's status; zero if there was no answer
	// AfterToolResult means that this run had already called tools.
	AfterToolResult bool `json:"after_tool_result"`
	// Unsent means that the request did not reach the provider, so it costs nothing.
	Unsent bool `json:"-"`
}

// FaultKind sorts the failures of providers. The set is closed.
type FaultKind string

// The kinds of provider failures. The first four may be retried; the others are final.
const (
	FaultRateLimit  FaultKind = "rate_limit"       // 429, and the provider will accept the call later
	FaultOverload   FaultKind = "overload"         // 503, 529
	FaultTransient  FaultKind = "transient"        // 408, 409, other 5xx, a broken connection or stream, and everything unknown
	FaultTimeout    FaultKind = "timeout"          // no complete reply within the call's time
	FaultAuth       FaultKind = "auth"             // 401, 403
	FaultQuota      FaultKind = "quota"            // 402, or a 429 that waiting does not cure
	FaultBadRequest FaultKind = "bad_request"      // other 4xx
	FaultContext    FaultKind = "context_too_long" // more tokens than the model's window
)

// Retryable reports whether the same call, unchanged, may succeed later.
func (k FaultKind) Retryable() bool {
	switch k {
	case FaultRateLimit, FaultOverload, FaultTransient, FaultTimeout:
		return true
	}
	return false
}

// Errorf returns an error with a code and a formatted message. %w keeps the cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Retryable: code.Retryable(), Err: errors.Unwrap(err)}
}

// WithPath sets the field that is wrong, and returns e.
func (e *Error) WithPath(path string) *Error { e.Path = path; return e }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is this error's code.
func (e *Error) Is(target error) bool { c, ok := target.(Code); return ok && c == e.Code }

// CodeOf returns the code of an error: empty for nil, and [CodeInternal] if the error has
// none. It also finds the code of a failed run in an error of Temporal's SDK. A workflow
// that starts a run as its child gets such an error, and so does a client that waits for
// one.
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

// typeOf returns the code that one of Temporal's application errors carries as its type.
// It uses an interface, because this package must not import the SDK.
func typeOf(err error) Code {
	var typed interface {
		error
		Type() string
	}
	// The SDK nests errors, and only an inner one may carry one of our codes as its type.
	for errors.As(err, &typed) {
		if c := Code(typed.Type()); c.Known() {
			return c
		}
		err = errors.Unwrap(typed)
	}
	return CodeInternal
}
