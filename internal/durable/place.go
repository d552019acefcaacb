package durable

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/batch/v1"
	"go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/query/v1"
	"go.temporal.io/api/schedule/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	updatepb "go.temporal.io/api/update/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// place is where a payload belongs. A payload is encrypted for its place and accepted in
// no other. So a writer to the namespace cannot move it.
type place struct {
	namespace, session string
	// kind is what the payload is: "signal/pause", "activity/fermata.model", "result".
	kind string
	// anyPlace accepts a payload that was encrypted for no place. A codec server does not
	// know for whom it encrypts what people say.
	anyPlace bool
	// unrecorded is a payload in no history: an update that a worker may still refuse, or
	// a query.
	unrecorded bool
	// nexus is a payload that a Nexus operation returned. A caller does not know which workflow
	// carried it out, perhaps in another namespace.
	nexus bool
	// at is when the payload was written, by the server's clock. Zero means that the
	// server does not say.
	at time.Time
}

// text returns the place as a payload names it: namespace, session, kind, and the index
// among several payloads.
func (p place) text(i int) string {
	text := url.PathEscape(p.namespace) + "/" + url.PathEscape(p.session) + "/" + p.kind
	if i > 0 {
		text += "#" + strconv.Itoa(i)
	}
	return text
}

// takes reports whether a payload that was encrypted for the place claim is accepted
// here.
func (p place) takes(claim string, i int) bool {
	switch {
	case claim == p.text(i):
		return true
	case claim == "":
		return (p.anyPlace || p.nexus) && i == 0
	case p.nexus:
		return slices.Contains(ofEnds, claim[strings.LastIndexByte(claim, '/')+1:])
	}
	// The id of a workflow that a schedule starts was unknown when its input was
	// encrypted.
	p.session = ""
	return p.kind == "start/"+scheduled && claim == p.text(i)
}

// ofEnds are the kinds of what a workflow leaves at its end.
var ofEnds = []string{"result", "failure", "details"}

// scheduled is the type of workflows that schedules start, signals.TickType.
const scheduled = "fermata.tick"

// between begins the names of signals between runs, which no person sends.
const between = "fermata."

type placeKey struct{}

func placeAt(ctx context.Context) place {
	p, _ := ctx.Value(placeKey{}).(place)
	return p
}

// in returns a context whose payloads are at this place.
func (p place) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// enter is the context hook of the payload visitor: it sets the place within a message.
func enter(ctx context.Context, m proto.Message) (context.Context, error) {
	was := placeAt(ctx)
	if p := was.enter(m); p != was {
		return p.in(ctx), nil
	}
	return ctx, nil
}

func (p place) of(session string) place {
	p.session = session
	return p
}

func (p place) as(kind string) place {
	p.kind, p.anyPlace = kind, false
	return p
}

// ofCommand returns the place of what people may say: in a start, a signal, an update or
// a query.
func (p place) ofCommand(kind, name string) place {
	p.kind = kind + "/" + name
	p.anyPlace = kind != "signal" || !strings.HasPrefix(name, between)
	return p
}

// sessionOf returns the session that a request is about; empty for none, or for many.
func sessionOf(request any) string {
	switch r := request.(type) {
	case *workflowservice.ExecuteMultiOperationRequest:
		for _, o := range r.GetOperations() {
			if id := o.GetStartWorkflow().GetWorkflowId(); id != "" {
				return id
			}
		}
	case *workflowservice.PollWorkflowExecutionUpdateRequest:
		return r.GetUpdateRef().GetWorkflowExecution().GetWorkflowId()
	case interface {
		GetWorkflowExecution() *commonpb.WorkflowExecution
	}:
		return r.GetWorkflowExecution().GetWorkflowId()
	case interface {
		GetExecution() *commonpb.WorkflowExecution
	}:
		return r.GetExecution().GetWorkflowId()
	case interface{ GetWorkflowId() string }:
		return r.GetWorkflowId()
	case interface{ GetResourceId() string }: // a worker's answer
		session, _ := strings.CutPrefix(r.GetResourceId(), "workflow:")
		return session
	}
	return ""
}

// enter returns the place within a message: first of what people and workers send, then
// of what they receive. Both sides of one payload must come to the same text, or it is
// refused.
func (p place) enter(m proto.Message) place {
	switch m := m.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		return p.of(m.GetWorkflowId()).ofCommand("start", m.GetWorkflowType().GetName())
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		return p.of(m.GetWorkflowId()).ofCommand("start", m.GetWorkflowType().GetName())
	case *workflowservice.SignalWorkflowExecutionRequest:
		return p.ofCommand("signal", m.GetSignalName())
	case *workflowservice.UpdateWorkflowExecutionRequest:
		return p.of(m.GetWorkflowExecution().GetWorkflowId())
	case *updatepb.Input:
		p.unrecorded = p.at.IsZero() // history events have a time
		return p.ofCommand("update", m.GetName())
	case *updatepb.Outcome:
		return p.as("outcome")
	case *query.WorkflowQuery:
		p.unrecorded = true
		return p.ofCommand("query", m.GetQueryType())
	case *query.WorkflowQueryResult, *workflowservice.RespondQueryTaskCompletedRequest, *workflowservice.QueryWorkflowResponse:
		return p.as("answer")
	case *workflowservice.TerminateWorkflowExecutionRequest, *history.WorkflowExecutionTerminatedEventAttributes,
		*command.CancelWorkflowExecutionCommandAttributes, *history.WorkflowExecutionCanceledEventAttributes:
		return p.as("details")
	case *workflowservice.RespondActivityTaskCompletedRequest, *workflowservice.RespondActivityTaskCompletedByIdRequest,
		*workflowservice.RespondActivityTaskCanceledRequest, *workflowservice.RespondActivityTaskCanceledByIdRequest,
		*history.ActivityTaskCompletedEventAttributes, *history.ActivityTaskCanceledEventAttributes:
		return p.as("done")
	case *workflowservice.RecordActivityTaskHeartbeatRequest, *workflowservice.RecordActivityTaskHeartbeatByIdRequest,
		*workflowservice.RespondActivityTaskFailedRequest, *workflowservice.RespondActivityTaskFailedByIdRequest,
		*workflowpb.PendingActivityInfo, *failure.TimeoutFailureInfo:
		return p.as("beat")
	case *failure.Failure, *failure.ApplicationFailureInfo, *failure.CanceledFailureInfo, *failure.ResetWorkflowFailureInfo:
		return p.as("failure")
	case *commonpb.Memo:
		return p.as("memo")
	case *commonpb.Header:
		return p.as("header")
	case *sdkpb.UserMetadata: // the server copies a child's from its parent's command
		return p.of("").as("words")
	case *workflowservice.CreateScheduleRequest, *workflowservice.UpdateScheduleRequest, *workflowservice.DescribeScheduleResponse, *schedule.ScheduleListEntry:
		return p.of("").as("schedule")
	case *workflowpb.NewWorkflowExecutionInfo: // of a schedule
		return p.of("").as("start/" + m.GetWorkflowType().GetName())
	case *batch.BatchOperationSignal, *workflowpb.PostResetOperation, *nexus.StartOperationRequest, *nexus.StartOperationResponse_Sync:
		return place{namespace: p.namespace, anyPlace: true, at: p.at} // for many sessions, or across namespaces
	}
	return p.enterCommand(m).enterEvent(m).enterResponse(m)
}

func (p place) enterCommand(m proto.Message) place {
	switch m := m.(type) {
	case *command.ScheduleActivityTaskCommandAttributes:
		return p.as("activity/" + m.GetActivityType().GetName())
	case *command.CompleteWorkflowExecutionCommandAttributes:
		return p.as("result")
	case *command.ContinueAsNewWorkflowExecutionCommandAttributes:
		return p.ofCommand("start", m.GetWorkflowType().GetName())
	case *command.StartChildWorkflowExecutionCommandAttributes:
		return p.of(m.GetWorkflowId()).ofCommand("start", m.GetWorkflowType().GetName())
	case *command.SignalExternalWorkflowExecutionCommandAttributes:
		return p.of(m.GetExecution().GetWorkflowId()).ofCommand("signal", m.GetSignalName())
	case *command.RecordMarkerCommandAttributes:
		return p.as("marker/" + m.GetMarkerName())
	case *command.ScheduleNexusOperationCommandAttributes:
		return place{namespace: p.namespace, anyPlace: true}
	}
	return p
}

func (p place) enterEvent(m proto.Message) place {
	switch m := m.(type) {
	case *history.HistoryEvent:
		p.at = m.GetEventTime().AsTime()
	case *history.WorkflowExecutionStartedEventAttributes:
		return p.ofCommand("start", m.GetWorkflowType().GetName())
	case *history.WorkflowExecutionContinuedAsNewEventAttributes:
		return p.ofCommand("start", m.GetWorkflowType().GetName())
	case *history.WorkflowExecutionSignaledEventAttributes:
		return p.ofCommand("signal", m.GetSignalName())
	case *history.WorkflowExecutionCompletedEventAttributes:
		return p.as("result")
	case *history.ActivityTaskScheduledEventAttributes:
		return p.as("activity/" + m.GetActivityType().GetName())
	case *history.MarkerRecordedEventAttributes:
		return p.as("marker/" + m.GetMarkerName())
	case *history.StartChildWorkflowExecutionInitiatedEventAttributes:
		return p.of(m.GetWorkflowId()).ofCommand("start", m.GetWorkflowType().GetName())
	case *history.SignalExternalWorkflowExecutionInitiatedEventAttributes:
		return p.of(m.GetWorkflowExecution().GetWorkflowId()).ofCommand("signal", m.GetSignalName())
	case *history.ChildWorkflowExecutionStartedEventAttributes:
		return p.of(m.GetWorkflowExecution().GetWorkflowId())
	case *history.ChildWorkflowExecutionCompletedEventAttributes:
		return p.of(m.GetWorkflowExecution().GetWorkflowId()).as("result")
	case *history.ChildWorkflowExecutionFailedEventAttributes:
		return p.of(m.GetWorkflowExecution().GetWorkflowId())
	case *history.ChildWorkflowExecutionCanceledEventAttributes:
		return p.of(m.GetWorkflowExecution().GetWorkflowId()).as("details")
	case *history.NexusOperationScheduledEventAttributes:
		return place{namespace: p.namespace, anyPlace: true, at: p.at}
	case *history.NexusOperationCompletedEventAttributes, *history.NexusOperationFailedEventAttributes, *history.NexusOperationCanceledEventAttributes:
		return place{namespace: p.namespace, anyPlace: true, nexus: true, at: p.at}
	}
	return p
}

func (p place) enterResponse(m proto.Message) place {
	switch m := m.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		return p.of(m.GetWorkflowExecution().GetWorkflowId())
	case *workflowservice.PollActivityTaskQueueResponse:
		p.at = m.GetScheduledTime().AsTime()
		return p.of(m.GetWorkflowExecution().GetWorkflowId()).as("activity/" + m.GetActivityType().GetName())
	case *workflowpb.WorkflowExecutionInfo: // its memo may be later than that
		p.at = m.GetStartTime().AsTime()
		return p.of(m.GetExecution().GetWorkflowId())
	}
	return p
}

// field returns the place of payloads in a message that has two kinds of them.
func (p place) field(parent proto.Message, payloads []*commonpb.Payload) place {
	same := func(of *commonpb.Payloads) bool {
		return len(payloads) > 0 && len(of.GetPayloads()) > 0 && payloads[0] == of.GetPayloads()[0]
	}
	switch m := parent.(type) {
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		if same(m.GetSignalInput()) {
			return p.ofCommand("signal", m.GetSignalName())
		}
	case *workflowservice.PollActivityTaskQueueResponse:
		if same(m.GetHeartbeatDetails()) {
			return p.as("beat")
		}
	case *history.WorkflowExecutionStartedEventAttributes:
		if same(m.GetLastCompletionResult()) {
			return p.as("result")
		}
	}
	return p
}
