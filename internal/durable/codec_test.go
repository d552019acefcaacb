package durable_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	protocolpb "go.temporal.io/api/protocol/v1"
	querypb "go.temporal.io/api/query/v1"
	updatepb "go.temporal.io/api/update/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/keyring"
)

func newRing(t *testing.T, ids ...string) *keyring.Ring {
	t.Helper()
	text := ""
	for _, id := range ids {
		key, err := keyring.New(id)
		require.NoError(t, err)
		text += "," + key
	}
	ring, err := keyring.Parse(text[1:])
	require.NoError(t, err)
	return ring
}

// call sends a request through a codec's connection to a server that is a function.
func call[In, Out proto.Message](t *testing.T, c durable.Codec, in In, out Out, serve func()) error {
	t.Helper()
	chain, err := c.Interceptors()
	require.NoError(t, err)
	next := grpc.UnaryInvoker(func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		serve()
		return nil
	})
	for i := len(chain) - 1; i >= 0; i-- {
		one, inner := chain[i], next
		next = func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, o ...grpc.CallOption) error {
			return one(ctx, method, in, out, conn, inner, o...)
		}
	}
	return next(t.Context(), "/x/PollWorkflowTaskQueue", in, out, nil)
}

func payload(t *testing.T, v any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	require.NoError(t, err)
	return p
}

func execution(session string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: session}
}

// signal encrypts a signal as a client sends it.
func signal(t *testing.T, c durable.Codec, namespace, session, name string) *commonpb.Payloads {
	t.Helper()
	in := &workflowservice.SignalWorkflowExecutionRequest{Namespace: namespace, WorkflowExecution: execution(session), SignalName: name, Input: payload(t, map[string]string{"reason": "lunch"})}
	require.NoError(t, call(t, c, in, &workflowservice.SignalWorkflowExecutionResponse{}, func() {}))
	return in.Input
}

// arrives is a signal as the worker of a session gets it.
func arrives(t *testing.T, c durable.Codec, namespace, session, name string, at time.Time, p *commonpb.Payloads) (*commonpb.Payload, error) {
	t.Helper()
	event := &historypb.HistoryEvent{EventTime: timestamppb.New(at), Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
		WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name, Input: proto.Clone(p).(*commonpb.Payloads)},
	}}
	out := &workflowservice.PollWorkflowTaskQueueResponse{}
	err := call(t, c, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: namespace}, out, func() {
		out.WorkflowExecution, out.History = execution(session), &historypb.History{Events: []*historypb.HistoryEvent{event}}
	})
	return event.GetWorkflowExecutionSignaledEventAttributes().Input.Payloads[0], err
}

// What was encrypted for one place is refused in every other one, and one message that is
// refused keeps no worker from its work.
func TestAPayloadIsReadWhereItBelongs(t *testing.T) {
	c := durable.Codec{Keyring: newRing(t, "k1")}
	said := signal(t, c, "prod", "trip-42", "pause")
	got, err := arrives(t, c, "prod", "trip-42", "pause", time.Now(), said)
	require.NoError(t, err)
	require.JSONEq(t, `{"reason":"lunch"}`, string(got.Data))
	require.Nil(t, durable.Refusal(got))

	forged := func(change func(p *commonpb.Payload)) *commonpb.Payloads {
		p := proto.Clone(said).(*commonpb.Payloads)
		change(p.Payloads[0])
		return p
	}
	for what, moved := range map[string]struct {
		namespace, session, name string
		p                        *commonpb.Payloads
	}{
		"another session":   {"prod", "trip-43", "pause", said},
		"another signal":    {"prod", "trip-42", "stop", said},
		"another namespace": {"test", "trip-42", "pause", said},
		"a claim":           {"prod", "trip-43", "pause", forged(func(p *commonpb.Payload) { p.Metadata["encrypted-for"] = []byte("prod/trip-43/signal/pause") })},
		"no claim":          {"prod", "trip-43", "pause", forged(func(p *commonpb.Payload) { delete(p.Metadata, "encrypted-for") })},
		"a change":          {"prod", "trip-42", "pause", forged(func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 })},
		"another header":    {"prod", "trip-42", "pause", forged(func(p *commonpb.Payload) { p.Data[3] ^= 1 })},
		"no data":           {"prod", "trip-42", "pause", forged(func(p *commonpb.Payload) { p.Data = nil })},
		"an encoding alone": {"prod", "trip-42", "pause", forged(func(p *commonpb.Payload) {
			p.Metadata, p.Data = map[string][]byte{"encoding": []byte("binary/encrypted")}, []byte("{}")
		})},
		"a key's name": {"prod", "trip-42", "pause", forged(func(p *commonpb.Payload) { p.Metadata["encryption-key-id"] = []byte("k9") })},
		"plain":        {"prod", "trip-42", "pause", payload(t, map[string]string{"reason": "lunch"})},
	} {
		t.Run(what, func(t *testing.T) {
			got, err := arrives(t, c, moved.namespace, moved.session, moved.name, time.Now(), moved.p)
			require.NoError(t, err, "the worker goes on")
			require.ErrorIs(t, durable.Refusal(got), agent.CodeBadSignature)
			var v map[string]string
			require.Error(t, converter.GetDefaultDataConverter().FromPayload(got, &v))
			_, bad := durable.Bytes(converter.NewRawValue(got))
			require.ErrorIs(t, bad, agent.CodeBadSignature)
		})
	}
}

// Who lacks the key, or has another one of its id, takes no work and refuses nothing.
func TestWithoutTheKeyNothingIsRefused(t *testing.T) {
	said := signal(t, durable.Codec{Keyring: newRing(t, "k1")}, "prod", "trip-42", "pause")
	for _, ring := range []*keyring.Ring{nil, newRing(t, "k2"), newRing(t, "k1")} {
		_, err := arrives(t, durable.Codec{Keyring: ring}, "prod", "trip-42", "pause", time.Now(), said)
		require.ErrorContains(t, err, "reading a payload")
	}
	both := newRing(t, "k1", "k2")
	got, err := arrives(t, durable.Codec{Keyring: both}, "prod", "trip-42", "pause", time.Now(), signal(t, durable.Codec{Keyring: both}, "prod", "trip-42", "pause"))
	require.NoError(t, err)
	require.Nil(t, durable.Refusal(got))
}

// What is plain is taken as of the time of its event, whenever it is replayed.
func TestPlainUntil(t *testing.T) {
	until := time.Now().Add(-time.Hour)
	c, plain := durable.Codec{Keyring: newRing(t, "k1"), PlainUntil: until}, payload(t, "hello")
	for at, taken := range map[time.Time]bool{until.Add(-time.Second): true, until: false, until.Add(time.Second): false} {
		got, err := arrives(t, c, "prod", "trip-42", "send", at, plain)
		require.NoError(t, err)
		require.Equal(t, taken, durable.Refusal(got) == nil)
	}
	got, err := arrives(t, durable.Codec{}, "prod", "trip-42", "send", time.Now(), plain)
	require.NoError(t, err)
	require.Nil(t, durable.Refusal(got), "without keys everything is plain")
}

// What people say through a codec server has no place: it is taken where people speak, and
// never as what runs tell each other, or as a result.
func TestWhatHasNoPlace(t *testing.T) {
	c := durable.Codec{Keyring: newRing(t, "k1")}
	byHand, err := c.Encode(payload(t, "hello").Payloads)
	require.NoError(t, err)
	for name, taken := range map[string]bool{"send": true, "fermata.child": false, "fermata.order": false} {
		got, err := arrives(t, c, "prod", "trip-42", name, time.Now(), &commonpb.Payloads{Payloads: byHand})
		require.NoError(t, err)
		require.Equal(t, taken, durable.Refusal(got) == nil, name)
	}
	out, done := &workflowservice.GetWorkflowExecutionHistoryResponse{}, &historypb.ActivityTaskCompletedEventAttributes{Result: &commonpb.Payloads{Payloads: byHand}}
	require.NoError(t, call(t, c, &workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: "prod", Execution: execution("trip-42")}, out, func() {
		out.History = &historypb.History{Events: []*historypb.HistoryEvent{{Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: done}}}}
	}))
	require.NotNil(t, durable.Refusal(done.Result.Payloads[0]))
}

// The result of a workflow is taken as that of the Nexus operation that it carried out, and what
// it was given is not.
func TestANexusOperationReturnsAWorkflowsResult(t *testing.T) {
	c := durable.Codec{Keyring: newRing(t, "k1")}
	done := &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "prod", ResourceId: "workflow:op-1", Commands: []*commandpb.Command{{
		Attributes: &commandpb.Command_CompleteWorkflowExecutionCommandAttributes{CompleteWorkflowExecutionCommandAttributes: &commandpb.CompleteWorkflowExecutionCommandAttributes{Result: payload(t, "done")}},
	}}}
	require.NoError(t, call(t, c, done, &workflowservice.RespondWorkflowTaskCompletedResponse{}, func() {}))
	result := done.Commands[0].GetCompleteWorkflowExecutionCommandAttributes().GetResult().GetPayloads()[0]
	for what, given := range map[string]struct {
		p     *commonpb.Payload
		taken bool
	}{"a result": {result, true}, "a signal": {signal(t, c, "prod", "op-1", "pause").Payloads[0], false}} {
		completed := &historypb.NexusOperationCompletedEventAttributes{Result: given.p}
		out := &workflowservice.PollWorkflowTaskQueueResponse{}
		require.NoError(t, call(t, c, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: "callers"}, out, func() {
			out.WorkflowExecution = execution("order-42")
			out.History = &historypb.History{Events: []*historypb.HistoryEvent{{EventTime: timestamppb.Now(), Attributes: &historypb.HistoryEvent_NexusOperationCompletedEventAttributes{NexusOperationCompletedEventAttributes: completed}}}}
		}))
		require.Equal(t, given.taken, durable.Refusal(completed.Result) == nil, what)
	}
}

// A worker's answers are bound to the session that they are of, whatever tells it.
func TestWhatAWorkerAnswersIsBound(t *testing.T) {
	c := durable.Codec{Keyring: newRing(t, "k1")}
	answer := &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "prod", ResourceId: "workflow:trip-42", Commands: []*commandpb.Command{
		{Attributes: &commandpb.Command_CompleteWorkflowExecutionCommandAttributes{CompleteWorkflowExecutionCommandAttributes: &commandpb.CompleteWorkflowExecutionCommandAttributes{Result: payload(t, 1)}}},
		{Attributes: &commandpb.Command_StartChildWorkflowExecutionCommandAttributes{StartChildWorkflowExecutionCommandAttributes: &commandpb.StartChildWorkflowExecutionCommandAttributes{
			WorkflowId: "trip-42/pay-1", WorkflowType: &commonpb.WorkflowType{Name: "fermata.run"}, Input: payload(t, 2), Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"m": payload(t, 3).Payloads[0]}},
		}}},
	}}
	require.NoError(t, call(t, c, answer, &workflowservice.RespondWorkflowTaskCompletedResponse{}, func() {}))
	child := answer.Commands[1].GetStartChildWorkflowExecutionCommandAttributes()
	for text, p := range map[string]*commonpb.Payload{
		"prod/trip-42/result":                    answer.Commands[0].GetCompleteWorkflowExecutionCommandAttributes().Result.Payloads[0],
		"prod/trip-42%2Fpay-1/start/fermata.run": child.Input.Payloads[0],
		"prod/trip-42%2Fpay-1/memo":              child.Memo.Fields["m"],
	} {
		require.Equal(t, text, string(p.Metadata["encrypted-for"]))
	}
	query := &workflowservice.PollWorkflowTaskQueueResponse{}
	chain, err := c.Interceptors()
	require.NoError(t, err)
	invoke := func(in, out any, serve func()) {
		require.NoError(t, chain[1](t.Context(), "/x/y", in, out, nil, func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, o ...grpc.CallOption) error {
			return chain[3](ctx, method, in, out, conn, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				serve()
				return nil
			})
		}))
	}
	invoke(&workflowservice.PollWorkflowTaskQueueRequest{Namespace: "prod"}, query, func() {
		query.TaskToken, query.WorkflowExecution, query.Query = []byte("t"), execution("trip-42"), &querypb.WorkflowQuery{QueryType: "status"}
	})
	said := &workflowservice.RespondQueryTaskCompletedRequest{Namespace: "prod", TaskToken: []byte("t"), QueryResult: payload(t, 4)}
	invoke(said, &workflowservice.RespondQueryTaskCompletedResponse{}, func() {})
	require.Equal(t, "prod/trip-42/answer", string(said.QueryResult.Payloads[0].Metadata["encrypted-for"]))
}

// A listing shows what is plain of others as nothing, and continues.
func TestAPlainMemoIsNotBelieved(t *testing.T) {
	c := durable.Codec{Keyring: newRing(t, "k1")}
	memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{"fermata": payload(t, map[string]string{"task": "forged"}).Payloads[0]}}
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	require.NoError(t, call(t, c, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "prod"}, out, func() {
		out.Executions = []*workflowpb.WorkflowExecutionInfo{{Execution: execution("trip-42"), StartTime: timestamppb.Now(), Memo: memo}}
	}))
	require.NotNil(t, durable.Refusal(memo.Fields["fermata"]))
}

// A topic is hashed where it stands plain, and found by its hashes.
func TestTopicsAreHashed(t *testing.T) {
	ring := newRing(t, "k2", "k1")
	marks := ring.Hashes("topic", "orders.paid")
	c := durable.Codec{Keyring: ring}
	waits, err := converter.GetDefaultDataConverter().ToPayload([]string{"waiting", "topic:orders.paid", "time"})
	require.NoError(t, err)
	upsert := &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "prod", ResourceId: "workflow:trip-42", Commands: []*commandpb.Command{
		{Attributes: &commandpb.Command_UpsertWorkflowSearchAttributesCommandAttributes{UpsertWorkflowSearchAttributesCommandAttributes: &commandpb.UpsertWorkflowSearchAttributesCommandAttributes{
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{agent.AttrWaitsFor: waits}},
		}}},
	}}
	for range 2 { // and again where it is tried again
		require.NoError(t, call(t, c, upsert, &workflowservice.RespondWorkflowTaskCompletedResponse{}, func() {}))
		require.JSONEq(t, `["waiting","topic:~`+marks[0]+`","time"]`, string(waits.Data))
	}
	for query, want := range map[string]string{
		`FermataWaitsFor = 'topic:orders.paid' OR X = 'every_topic'`: `FermataWaitsFor IN ('topic:~` + marks[0] + `', 'topic:~` + marks[1] + `') OR X = 'every_topic'`,
		`FermataWaitsFor!="topic:orders.paid"`:                       `FermataWaitsFor NOT IN ('topic:~` + marks[0] + `', 'topic:~` + marks[1] + `')`,
		`FermataWaitsFor IN ('topic:orders.paid', 'approval')`:       `FermataWaitsFor IN ('topic:~` + marks[0] + `', 'topic:~` + marks[1] + `', 'approval')`,
		`FermataWaitsFor = 'approval'`:                               `FermataWaitsFor = 'approval'`,
	} {
		in := &workflowservice.ListWorkflowExecutionsRequest{Namespace: "prod", Query: query}
		for range 2 {
			require.NoError(t, call(t, c, in, &workflowservice.ListWorkflowExecutionsResponse{}, func() {}))
			require.Equal(t, want, in.Query)
		}
	}
	in := &workflowservice.ListWorkflowExecutionsRequest{Query: `FermataWaitsFor = 'topic:it''s'`}
	require.NoError(t, call(t, durable.Codec{Keyring: ring, PlainUntil: time.Now()}, in, &workflowservice.ListWorkflowExecutionsResponse{}, func() {}))
	require.Contains(t, in.Query, `'topic:~`+ring.Hashes("topic", "it's")[0]+`'`)
	require.Contains(t, in.Query, `'topic:it''s'`, "of a run that began before there were keys")
	require.NotEqual(t, marks, newRing(t, "k2", "k1").Hashes("topic", "orders.paid"))
}

// An update and a query that come with a key which this process lacks are in no history: they
// are refused, and the worker continues. One person with a wrong key would else end each worker
// that is asked in turn.
func TestAWrongKeyInAnUpdateEndsNoWorker(t *testing.T) {
	c, other := durable.Codec{Keyring: newRing(t, "k1")}, durable.Codec{Keyring: newRing(t, "k1")}
	wrong, err := other.Encode(payload(t, "hello").Payloads)
	require.NoError(t, err)
	input := &updatepb.Input{Name: "pause", Args: &commonpb.Payloads{Payloads: wrong}, Header: &commonpb.Header{Fields: map[string]*commonpb.Payload{"trace": wrong[0]}}}
	body, err := anypb.New(&updatepb.Request{Input: input})
	require.NoError(t, err)
	asked := &querypb.WorkflowQuery{QueryType: "status", QueryArgs: &commonpb.Payloads{Payloads: slices.Clone(wrong)}}
	out := &workflowservice.PollWorkflowTaskQueueResponse{}
	poll := func(fill func()) error {
		return call(t, c, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: "prod"}, out, func() {
			out.WorkflowExecution = execution("trip-42")
			fill()
		})
	}
	require.NoError(t, poll(func() { out.Messages, out.Query = []*protocolpb.Message{{Body: body}}, asked }))
	require.ErrorIs(t, durable.Refusal(out.Query.QueryArgs.Payloads[0]), agent.CodeBadSignature)
	var request updatepb.Request
	require.NoError(t, out.Messages[0].Body.UnmarshalTo(&request))
	require.ErrorIs(t, durable.Refusal(request.Input.Args.Payloads[0]), agent.CodeBadSignature)

	accepted := &historypb.HistoryEvent{EventTime: timestamppb.Now(), Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
		WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
			AcceptedRequest: &updatepb.Request{Input: &updatepb.Input{Name: "pause", Args: &commonpb.Payloads{Payloads: wrong}}},
		},
	}}
	err = poll(func() {
		out.Messages, out.Query, out.History = nil, nil, &historypb.History{Events: []*historypb.HistoryEvent{accepted}}
	})
	require.ErrorContains(t, err, "reading a payload", "who accepted it could read it, and so must who replays it")
}
