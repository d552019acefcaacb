package durable

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
)

// Query declares a query with its argument and answer. The argument is one JSON object,
// which may be absent.
type Query[In, Out any] struct{ Name string }

// Handle sets the query's handler in a workflow.
func (q Query[In, Out]) Handle(ctx workflow.Context, answer func(In) (Out, error)) error {
	return workflow.SetQueryHandler(ctx, q.Name, func(raw converter.RawValue) (out Out, err error) {
		var in In
		data, bad := Bytes(raw)
		if bad != nil {
			return out, toTemporal(bad)
		}
		if err := Decode(data, &in, 0); err != nil {
			return out, toTemporal(err)
		}
		out, err = answer(in)
		return out, toTemporal(err)
	})
}

// Ask sends the query to a run. An empty run is the session's current one.
func (q Query[In, Out]) Ask(ctx context.Context, c client.Client, session, run string, in In) (out Out, err error) {
	value, err := c.QueryWorkflow(ctx, session, run, q.Name, in)
	if errors.As(err, new(*serviceerror.Canceled)) && ctx.Err() == nil { // its worker stopped; another one may answer
		value, err = c.QueryWorkflow(ctx, session, run, q.Name, in)
	}
	if err != nil {
		return out, FromRPC(err)
	}
	if err := value.Get(&out); err != nil {
		return out, agent.Errorf(agent.CodeIncompatible, "the answer to the query %s can't be read: %w", q.Name, err)
	}
	return out, nil
}

// Bytes returns a payload's data; empty if there is no payload, or for null. The error is
// that of a refused payload (see [Refusal]) or, for data that only a codec of the user's own
// can decode, [agent.CodeInvalidInput]. It panics if the payload is still encrypted. In a
// workflow that fails the task, which another worker then takes, and not the run.
func Bytes(raw converter.RawValue) ([]byte, *agent.Error) {
	p := raw.Payload()
	if err := Unreadable(p); err != nil {
		panic(err)
	}
	if p == nil || encodingOf(p) == converter.MetadataEncodingNil {
		return nil, nil
	}
	if bad := Refusal(p); bad != nil {
		return nil, bad
	}
	// A sender that gives JSON another encoding's name was always understood.
	if Foreign(p) && !json.Valid(p.GetData()) {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the payload has the encoding %.100q, which this worker can't decode: give the worker's Temporal client the sender's codec (docs/temporal.md)", encodingOf(p))
	}
	return p.GetData(), nil
}

// Foreign reports whether a payload has an encoding that is neither JSON nor ours, such as
// that of a codec of the user's own.
func Foreign(p *commonpb.Payload) bool {
	switch encodingOf(p) {
	case "", converter.MetadataEncodingNil, converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON, encodingRefused:
		return false
	}
	return p != nil && !encrypted(p)
}

func encodingOf(p *commonpb.Payload) string {
	return string(p.GetMetadata()[converter.MetadataEncoding])
}

// FromRPC translates an error of a call to the Temporal server.
func FromRPC(err error) error {
	var missing *serviceerror.NotFound
	var namespace *serviceerror.NamespaceNotFound
	var noWorker *serviceerror.FailedPrecondition
	var unavailable *serviceerror.Unavailable
	var failed *serviceerror.QueryFailed
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	// A missing namespace is a fault of the setup, and no run is missing.
	case errors.As(err, &namespace):
		return agent.Errorf(agent.CodeNotSetUp, "the server has no namespace %q", namespace.Namespace)
	case errors.As(err, &missing):
		return agent.Errorf(agent.CodeNotFound, "%w", err)
	case translated(err):
		return err
	case errors.As(err, &app) && strings.HasPrefix(app.Message(), unknownUpdate):
		return agent.Errorf(agent.CodeInvalidInput, "no verb of that name is known to the run's worker, which may have an older build: %w", err)
	case errors.As(err, &app):
		return FromTemporal(err)
	case errors.As(err, &failed) && strings.Contains(failed.Message, unreplayed):
		return agent.Errorf(agent.CodeIncompatible, "the worker that answered has a build that can't continue this run: %w", err)
	case errors.As(err, &failed):
		return agent.Errorf(agent.CodeInvalidInput, "%w", err)
	case lacksKey(err):
		return agent.Errorf(agent.CodeNotSetUp, "%w", err)
	case tooLarge(err):
		return agent.Errorf(agent.CodeTooLarge, "%w: the server takes no payload of that size", err)
	case tooMany(err):
		return agent.Errorf(agent.CodeQueueFull, "%w: the run is at something; say it again, with the same id, when that is done", err)
	case errors.As(err, new(*serviceerror.WorkflowNotReady)): // as while a deploy changes builds
		return agent.Errorf(agent.CodeNoWorker, "%w: no worker could continue the run just then; try again, a verb with the same id", err)
	case errors.As(err, &noWorker):
		return agent.Errorf(agent.CodeNoWorker, "%w", err)
	case errors.Is(err, context.DeadlineExceeded), isDeadline(err):
		return agent.Errorf(agent.CodeTimeout, "%w", err)
	case errors.As(err, &unavailable), errors.As(err, new(*serviceerror.ResourceExhausted)), errors.As(err, new(*serviceerror.Canceled)):
		// The server cancels its calls when it stops, and a query whose worker stops.
		return agent.Errorf(agent.CodeUnreachable, "%w", err)
	}
	return agent.Errorf(agent.CodeInternal, "%w", err)
}

// unknownUpdate begins the SDK's refusal of an update for which a workflow has no handler. It has no
// type of its own.
const unknownUpdate = "unknown update "

// unreplayed marks SDK errors of a build that cannot replay a history. The SDK exports no
// type for them.
const unreplayed = "[TMPRL1100]"

// translated reports whether an error has a code already. CodeInternal does not count: it
// may hide an error that is known here.
func translated(err error) bool {
	var e *agent.Error
	var c agent.Code
	return errors.As(err, &e) && e.Code != agent.CodeInternal || errors.As(err, &c) && c != agent.CodeInternal
}

// lacksKey reports whether this process could not decrypt a payload; see [keyGuard].
func lacksKey(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid) && strings.HasPrefix(invalid.Message, readingPayload)
}

func isDeadline(err error) bool {
	var deadline *serviceerror.DeadlineExceeded
	return errors.As(err, &deadline)
}

// tooLarge reports whether the server (at 2 MB) or the connection (at 4 MB) refused a
// payload for its size. Both say so in their message only.
func tooLarge(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid) && strings.Contains(invalid.Message, "exceeds limit") || strings.Contains(err.Error(), "larger than max")
}

// tooMany reports whether the server takes no more for an execution: 10,000 signals,
// 2,000 updates, or too many updates at once.
func tooMany(err error) bool {
	var invalid *serviceerror.InvalidArgument
	var failed *serviceerror.FailedPrecondition
	var exhausted *serviceerror.ResourceExhausted
	switch {
	case errors.As(err, &invalid):
		return strings.Contains(invalid.Message, "limit for signal events")
	case errors.As(err, &failed):
		return strings.Contains(failed.Message, "total number of distinct updates")
	case errors.As(err, &exhausted):
		return exhausted.Cause == enums.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT || exhausted.Cause == enums.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW
	}
	return false
}
