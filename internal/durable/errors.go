package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// Failure returns an error as it crosses Temporal: an application error whose type is the
// code. details is its first detail; nil means the error itself.
func Failure(e *agent.Error, details any) error {
	if details == nil {
		details = detail(e)
	}
	return failureOf(e, details)
}

func failureOf(e *agent.Error, details ...any) error {
	return temporal.NewApplicationErrorWithOptions(brief(e.Message), string(e.Code), temporal.ApplicationErrorOptions{
		NonRetryable: !e.Retryable, NextRetryDelay: e.RetryAfter, Details: details,
	})
}

// detail returns an error as it is encoded.
func detail(e *agent.Error) agent.Error {
	whole := *e
	whole.Help, whole.Message = e.Code.HelpURL(), brief(e.Message)
	return whole
}

// notRecorded is the second detail of a [Rejection].
const notRecorded = "not recorded"

// Rejection returns the [Failure] of a verb that a validator refuses; nil for nil. No
// history has it, and the server forgets it. Whoever repeats the verb gets the run's new
// answer.
func Rejection(e *agent.Error) error {
	if e == nil {
		return nil
	}
	return failureOf(e, detail(e), notRecorded)
}

// Rejected reports whether an error is a [Rejection]. Any other outcome of an update is
// kept by the server and returned again.
func Rejected(err error) bool {
	var app *temporal.ApplicationError
	var first, mark any
	return errors.As(err, &app) && app.Details(&first, &mark) == nil && mark == notRecorded
}

// maxMessage limits an error's message, in bytes. It may quote a command, and twice the
// longest command is more than a workflow task can answer with.
const maxMessage = 4 << 10

func brief(message string) string { return cut(message, maxMessage) }

// cut returns at most so many bytes of a text, and says how many it had.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf(" … (%d bytes)", len(text))
}

// Within adds what was being done to an error's message; nil for nil.
func Within(doing string, err error) *agent.Error {
	if err == nil {
		return nil
	}
	var e *agent.Error
	if !errors.As(err, &e) {
		e = agent.Errorf(agent.CodeOf(err), "%w", err)
	}
	whole := *e
	whole.Message = brief(doing + ": " + err.Error())
	return &whole
}

// toTemporal translates what an activity returns. An error without a code is a bug of
// ours, which no retry mends.
func toTemporal(err error) error {
	var e *agent.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(NoSlot)):
		return temporal.NewNonRetryableApplicationError(err.Error(), typeNoSlot, nil, err)
	case errors.As(err, new(Delayed)):
		return delayedToTemporal(err)
	case temporal.IsCanceledError(err):
		return err
	case errors.As(err, &e):
		whole := *e
		whole.Message = err.Error() // with what was being done around it
		return Failure(&whole, nil)
	}
	return Failure(agent.Errorf(agent.CodeOf(err), "%w", err), nil)
}

// ErrLost is the cause of an error of [FromTemporal] if a worker was lost during the
// activity. Nobody knows how the activity ended.
var ErrLost = errors.New("the worker was lost")

// ErrCancelled is the cause of an error of [FromTemporal] if the activity was cancelled
// before it began, or between two attempts.
var ErrCancelled = errors.New("it was cancelled")

// Lost is the cause of an error whose worker was lost; it is [ErrLost]. If the worker
// stopped in order, it has no timeout.
type Lost struct{ timeout *temporal.TimeoutError }

// Error implements error.
func (Lost) Error() string { return ErrLost.Error() }

// Is reports whether target is [ErrLost].
func (Lost) Is(target error) bool { return target == ErrLost }

// HeartbeatDetails reads what the activity left in its last heartbeat. It reports whether
// there was anything that can be read.
func (l Lost) HeartbeatDetails(into any) bool {
	return l.timeout != nil && l.timeout.HasLastHeartbeatDetails() && l.timeout.LastHeartbeatDetails(into) == nil
}

// NoSlot is the error of an activity that did not begin because its process has no free
// slot, or because the process's build lacks what it needs. The run schedules it where
// another process can take it.
type NoSlot struct {
	// Missing says what the build lacks; nil if it lacks nothing.
	Missing *agent.Error `json:"missing,omitempty"`
	// OpenStep is a step of a flow that is open, and that the build's function does not have; empty
	// if another thing is missing.
	OpenStep string `json:"open_step,omitempty"`
	// Tried counts the attempts before this one.
	Tried int `json:"tried,omitempty"`
	// HeartbeatDetails are what those attempts left in their heartbeats; empty if
	// nothing.
	HeartbeatDetails json.RawMessage `json:"heartbeat_details,omitempty"`
}

// Error implements error.
func (n NoSlot) Error() string {
	if n.Missing != nil {
		return n.Missing.Message
	}
	return "the process has no free slot for this step"
}

// typeNoSlot is the error type of [NoSlot] in a history.
const typeNoSlot = "fermata.no_slot"

// Delayed is the error of an activity that the run is to repeat after a long wait. The
// server could wait too, but the run would not know of it.
type Delayed struct {
	// Tried counts the attempts that were made.
	Tried int           `json:"tried"`
	Wait  time.Duration `json:"wait"` // in nanoseconds
	Err   *agent.Error  `json:"error"`
}

// Error implements error.
func (d Delayed) Error() string { return d.Err.Error() }

// Unwrap returns why the attempt failed.
func (d Delayed) Unwrap() error { return d.Err }

// typeDelayed is the error type of [Delayed] in a history.
const typeDelayed = "fermata.delayed"

func delayedToTemporal(err error) error {
	var d Delayed
	errors.As(err, &d)
	whole := *d.Err
	whole.Message = brief(whole.Message)
	d.Err = &whole
	// Not retryable, since the run itself repeats the call.
	return temporal.NewNonRetryableApplicationError(whole.Message, typeDelayed, nil, d)
}

// delayedFromTemporal returns an error whose cause is a [Delayed].
func delayedFromTemporal(app *temporal.ApplicationError) *agent.Error {
	var d Delayed
	if err := app.Details(&d); err != nil || d.Err == nil {
		return agent.Errorf(agent.CodeInternal, "an activity asks for a retry and does not say when: %w", app)
	}
	whole := *d.Err
	whole.Err, whole.RetryAfter = d, d.Wait
	return &whole
}

// FromTemporal translates an error of an activity or workflow back; nil for nil.
func FromTemporal(err error) *agent.Error {
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &timeout):
		return timeoutFromTemporal(timeout)
	case temporal.IsCanceledError(err):
		return agent.Errorf(agent.CodeInternal, "%w", ErrCancelled)
	case errors.As(err, &app) && cutShort(app):
		return agent.Errorf(agent.CodeTimeout, "%w: it stopped", Lost{})
	case errors.As(err, &app) && app.Type() == typeNoSlot:
		var full NoSlot
		_ = app.Details(&full) // on an error nothing was tried
		return agent.Errorf(agent.CodeTimeout, "%w", full)
	case errors.As(err, &app) && app.Type() == typeDelayed:
		return delayedFromTemporal(app)
	case errors.As(err, &app) && agent.Code(app.Type()).Known():
		var e agent.Error
		// A failure that another program or an older build made may have no details of
		// ours.
		if app.Details(&e) != nil || e.Code == "" {
			e = agent.Error{Code: agent.Code(app.Type()), Message: app.Message(), Retryable: !app.NonRetryable()}
		}
		e.RetryAfter = app.NextRetryDelay()
		return &e
	}
	return agent.Errorf(agent.CodeInternal, "%w", err)
}

// cutShort reports whether the SDK itself failed the activity because its worker was
// stopping. What an activity returns has a type of ours.
func cutShort(app *temporal.ApplicationError) bool {
	switch app.Type() {
	case "", "deadlineExceededError": // how the SDK names the types of the standard library's errors
		return app.Message() == context.Canceled.Error() || app.Message() == context.DeadlineExceeded.Error()
	}
	return false
}

func timeoutFromTemporal(t *temporal.TimeoutError) *agent.Error {
	switch t.TimeoutType() {
	case enums.TIMEOUT_TYPE_HEARTBEAT:
		return agent.Errorf(agent.CodeTimeout, "%w: it gave no sign of life", Lost{t})
	case enums.TIMEOUT_TYPE_START_TO_CLOSE:
		return agent.Errorf(agent.CodeTimeout, "it took longer than it may")
	}
	return agent.Errorf(agent.CodeTimeout, "it did not start in time")
}
