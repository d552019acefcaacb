package durable

import (
	"context"
	"net/url"
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

// place is where a payload stands. A payload is encrypted for its place and read in no other
// one, so that nobody who can write to the namespace moves it.
type place struct {
	namespace, session string
	// kind is what the payload is there: "signal/pause", "activity/fermata.model", "result".
	kind string
	// anyPlace is a place that a payload without a place of its own may take: a codec server
	// does not know for whom it encrypts what people say.
	anyPlace bool
	// unrecorded is a place in no history: an update that a worker may still refuse, or a query.
	unrecorded bool
	// at is when the payload was written, by the server's clock; zero if the server does
	// not say, which is now.
	at time.Time
}

// text is the place as a payload names it: its namespace, session and kind, and which of
// several payloads there it is.
func (p place) text(i int) string {
	text := url.PathEscape(p.namespace) + "/" + url.PathEscape(p.session) + "/" + p.kind
	if i > 0 {
		text += "#" + strconv.Itoa(i)
	}
	return text
}

// takes reports whether a payload that was encrypted for a place may be read in this one.
func (p place) takes(claim string, i int) bool {
	switch claim {
	case p.text(i):
		return true
	case "":
		return p.anyPlace && i == 0
	}
	// What a schedule starts has a name that nobody knew when it was encrypted.
	p.session = ""
	return p.kind == "start/"+scheduled && claim == p.text(i)
}

// scheduled is the type of the workflows that schedules start, signals.TickType.
const scheduled = "fermata.tick"

// between begins the names of what runs tell each other, which no person says.
const between = "fermata."

type placeKey struct{}

func placeAt(ctx context.Context) place {
	p, _ := ctx.Value(placeKey{}).(place)
	return p
}

// in is a context within which payloads stand at a place.
func (p place) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// enter goes from a message into one within it.
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

// ofCommand is where people say something: in a start, a signal, an update or a query.
func (p place) ofCommand(kind, name string) place {
	p.kind = kind + "/" + name
	p.anyPlace = kind != "signal" || !strings.HasPrefix(name, between)
	return p
}

// sessionOf is the session that a request is about; empty if it is about none, or many.
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
	case interface{ GetResourceId() string }: // what a worker answers
		session, _ := strings.CutPrefix(r.GetResourceId(), "workflow:")
		return session
	}
	return ""
}

// enter is the place within a message: first of what people and workers send, then of what
// they get.
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
		p.unrecorded = p.at.IsZero() // events have a time
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
	case *sdkpb.UserMetadata: // the server hands a child's on, from its parent's command
		return p.of("").as("words")
	case *workflowservice.CreateScheduleRequest, *workflowservice.UpdateScheduleRequest, *workflowservice.DescribeScheduleResponse, *schedule.ScheduleListEntry:
		return p.of("").as("schedule")
	case *workflowpb.NewWorkflowExecutionInfo: // of a schedule
		return p.of("").as("start/" + m.GetWorkflowType().GetName())
	case *batch.BatchOperationSignal, *workflowpb.PostResetOperation, *nexus.StartOperationRequest, *nexus.StartOperationResponse_Sync:
		return place{namespace: p.namespace, anyPlace: true, at: p.at} // for many, or across namespaces
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
	case *history.NexusOperationScheduledEventAttributes, *history.NexusOperationCompletedEventAttributes, *history.NexusOperationFailedEventAttributes:
		return place{namespace: p.namespace, anyPlace: true, at: p.at}
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
	case *workflowpb.WorkflowExecutionInfo: // its memo is of then, or of later
		p.at = m.GetStartTime().AsTime()
		return p.of(m.GetExecution().GetWorkflowId())
	}
	return p
}

// field is the place of payloads of a message that has payloads of two kinds.
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
