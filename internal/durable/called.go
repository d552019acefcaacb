package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
)

// notRegistered is the error type of a Go worker that lacks an activity.
const notRegistered = "ActivityNotRegisteredError"

// Called returns what came of a call of an activity, a workflow or a Nexus operation of the
// user's own, as a tool's result. within is the call's timeout. ours means that the text is
// the runtime's, at least in part.
func Called(t agent.TemporalCall, within time.Duration, out converter.RawValue, err error) (status agent.CallStatus, text string, ours bool) {
	var timeout *temporal.TimeoutError
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return resultText(t, out.Payload())
	case errors.As(err, &timeout):
		status, text = timedOut(t, within, timeout)
		return status, text, true
	case temporal.IsCanceledError(err):
		return agent.CallUnknown, fmt.Sprintf("Unknown outcome: %s was cancelled. It may or may not have had its effect.", t), true
	case errors.As(err, new(*temporal.TerminatedError)):
		return agent.CallUnknown, fmt.Sprintf("Unknown outcome: %s was terminated. It may or may not have had its effect.", t), true
	case errors.As(err, &app) && app.Type() == notRegistered:
		return agent.CallFailed, fmt.Sprintf("A worker took %s and has not registered it: %s", t, app.Message()), true
	case errors.As(err, &app) && app.Type() == string(agent.CodeDenied):
		return agent.CallRejected, app.Message(), false
	case errors.As(err, &app):
		return agent.CallFailed, app.Message(), false
	}
	return agent.CallFailed, err.Error(), true
}

// timedOut returns the result of a call whose time was up.
func timedOut(t agent.TemporalCall, within time.Duration, timeout *temporal.TimeoutError) (agent.CallStatus, string) {
	switch {
	// An attempt before may have begun, and then nobody knows its outcome.
	case timeout.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START && !errors.As(errors.Unwrap(timeout), new(*temporal.TimeoutError)):
		return agent.CallFailed, fmt.Sprintf("No worker took %s within %s. Start a worker that polls this task queue and has registered the type, or correct the tool's TaskQueue.", t, time.Duration(t.StartTimeout))
	case timeout.TimeoutType() == enums.TIMEOUT_TYPE_HEARTBEAT:
		return agent.CallUnknown, fmt.Sprintf("Unknown outcome: the worker of %s gave no sign of life for %s. The call may or may not have had its effect.", t, time.Duration(t.Heartbeat))
	case t.Kind == agent.TemporalActivity:
		return agent.CallUnknown, fmt.Sprintf("Unknown outcome: %s took longer than %s. The call may or may not have had its effect.", t, within)
	}
	return agent.CallUnknown, fmt.Sprintf("Unknown outcome: %s has not ended within %s. Its history in Temporal says whether it began: if not, no worker has the type, or the endpoint does not exist.", t, within)
}

// resultText returns a result as the text of a tool's result: a string as it is, any other
// JSON as JSON.
func resultText(t agent.TemporalCall, p *commonpb.Payload) (status agent.CallStatus, text string, ours bool) {
	if bad := Refusal(p); bad != nil {
		return agent.CallFailed, fmt.Sprintf("%s has completed, and its result can't be read: %s. Its worker needs the keys of this one.", t, bad.Message), true
	}
	switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
	case "", converter.MetadataEncodingNil:
		return agent.CallOK, "", false
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		if json.Unmarshal(p.GetData(), &text) != nil {
			text = string(p.GetData())
		}
		return agent.CallOK, text, false
	default:
		return agent.CallFailed, fmt.Sprintf("%s has completed, and its result can't be read: it is %s, and not JSON.", t, encoding), true
	}
}
