package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/query/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const namespace = "default"

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: rawclient ADDRESS TASK-QUEUE SESSION ANSWER")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	err := talk(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rawclient:", err)
		os.Exit(1)
	}
}

func talk(ctx context.Context, address, queue, session, answer string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &client{workflowservice.NewWorkflowServiceClient(conn), session}
	if err := c.start(ctx, queue, map[string]any{"agent": "asker", "input": map[string]any{"text": "Ask me."}, "by": "ana@acme.com"}); err != nil {
		return fmt.Errorf("starting the run: %w", err)
	}
	question, err := c.question(ctx)
	if err != nil {
		return fmt.Errorf("waiting for a question: %w", err)
	}
	ack, err := c.update(ctx, "answer", map[string]any{"request": question, "text": answer, "by": "ana@acme.com"})
	if err != nil {
		return fmt.Errorf("answering %s: %w", question, err)
	}
	outcome, err := c.result(ctx)
	if err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"question": question, "ack": ack, "outcome": outcome})
}

// client talks to one session.
type client struct {
	service workflowservice.WorkflowServiceClient
	session string
}

func (c *client) execution() *common.WorkflowExecution {
	return &common.WorkflowExecution{WorkflowId: c.session}
}

// payloads encodes a value as everything on the wire is: one object of plain JSON.
func payloads(value any) (*common.Payloads, error) {
	data, err := json.Marshal(value)
	return &common.Payloads{Payloads: []*common.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: data}}}, err
}

func (c *client) start(ctx context.Context, queue string, input any) error {
	in, err := payloads(input)
	if err != nil {
		return err
	}
	_, err = c.service.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: namespace, WorkflowId: c.session, WorkflowType: &common.WorkflowType{Name: "fermata.run"},
		TaskQueue: &taskqueue.TaskQueue{Name: queue}, Input: in, RequestId: c.session, Identity: "rawclient",
		WorkflowIdReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, WorkflowIdConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	})
	return err
}

// question asks the run why it is suspended, until it waits for an answer.
func (c *client) question(ctx context.Context) (id string, err error) {
	for {
		answer, err := c.service.QueryWorkflow(ctx, &workflowservice.QueryWorkflowRequest{
			Namespace: namespace, Execution: c.execution(), Query: &query.WorkflowQuery{QueryType: "suspension"},
		})
		if err != nil {
			return "", err
		}
		var open struct {
			Suspension struct{ Requests []struct{ ID string } }
		}
		if err := json.Unmarshal(answer.GetQueryResult().GetPayloads()[0].GetData(), &open); err != nil {
			return "", err
		}
		if requests := open.Suspension.Requests; len(requests) > 0 {
			return requests[0].ID, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// update sends a verb and returns the Ack. The server may answer before the run does. The
// same id then asks for the same answer again.
func (c *client) update(ctx context.Context, verb string, order any) (ack json.RawMessage, err error) {
	in, err := payloads(order)
	if err != nil {
		return nil, err
	}
	for {
		answer, err := c.service.UpdateWorkflowExecution(ctx, &workflowservice.UpdateWorkflowExecutionRequest{
			Namespace: namespace, WorkflowExecution: c.execution(),
			WaitPolicy: &update.WaitPolicy{LifecycleStage: enums.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED},
			Request:    &update.Request{Meta: &update.Meta{UpdateId: verb + "-1", Identity: "rawclient"}, Input: &update.Input{Name: verb, Args: in}},
		})
		if err != nil {
			return nil, err
		}
		outcome := answer.GetOutcome()
		if failure := outcome.GetFailure(); failure != nil {
			return nil, fmt.Errorf("[%s] %s", failure.GetApplicationFailureInfo().GetType(), failure.GetMessage())
		}
		if outcome != nil {
			return outcome.GetSuccess().GetPayloads()[0].GetData(), nil
		}
	}
}

// result waits for the run's end and returns its Outcome.
func (c *client) result(ctx context.Context) (outcome json.RawMessage, err error) {
	for {
		// A long poll ends without an event after some time; it is then started again.
		look, cancel := context.WithTimeout(ctx, 5*time.Second)
		history, err := c.service.GetWorkflowExecutionHistory(look, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: namespace, Execution: c.execution(), WaitNewEvent: true, HistoryEventFilterType: enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
		})
		looked := look.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !looked:
			return nil, err
		}
		for _, event := range history.GetHistory().GetEvents() {
			switch {
			case event.GetWorkflowExecutionCompletedEventAttributes() != nil:
				return event.GetWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads()[0].GetData(), nil
			case event.GetWorkflowExecutionFailedEventAttributes() != nil:
				return event.GetWorkflowExecutionFailedEventAttributes().GetFailure().GetApplicationFailureInfo().GetDetails().GetPayloads()[0].GetData(), nil
			case event.GetWorkflowExecutionCanceledEventAttributes() != nil:
				return event.GetWorkflowExecutionCanceledEventAttributes().GetDetails().GetPayloads()[0].GetData(), nil
			}
		}
	}
}
