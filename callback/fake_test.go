package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
)

const token = "a-token-that-nobody-guesses"

// fake is a Temporal server with one session, as far as callbacks see it. Its run remembers verbs as
// real ones do: by their ids.
type fake struct {
	temporal.Client // nil: panics

	mu     sync.Mutex
	kind   string // of the session's workflow
	queue  string // its task queue
	status agent.RunStatus
	refuse error // of every verb
	slow   func(context.Context)
	asked  int // calls of any kind
	said   []agent.Command
	first  map[string]string // payloads by verb id
}

func parked(conditions agent.Conditions) *fake {
	f := &fake{kind: signals.WorkflowType, queue: signals.TaskQueue, first: map[string]string{}}
	f.status = agent.RunStatus{V: 1, Session: "trip-42", Run: "r-1", Status: agent.StatusSuspended, Suspension: &agent.Suspension{
		ID: "s-1", Kind: agent.SuspensionParked, Since: time.Now(), Conditions: &conditions,
	}}
	return f
}

func event(topic string) *agent.EventCondition { return &agent.EventCondition{Topic: topic} }

func (f *fake) DescribeWorkflowExecution(_ context.Context, session, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if session != f.status.Session {
		return nil, serviceerror.NewNotFound("no workflow " + session)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: session, RunId: f.status.Run}, FirstRunId: f.status.Run, Type: &commonpb.WorkflowType{Name: f.kind}, TaskQueue: f.queue,
	}}, nil
}

type answer struct {
	converter.EncodedValue
	s agent.RunStatus
}

func (a answer) Get(into any) error { *into.(*agent.RunStatus) = a.s; return nil }

func (f *fake) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return answer{s: f.status}, nil
}

type handle struct {
	temporal.WorkflowUpdateHandle
	ack agent.Ack
}

func (h handle) Get(_ context.Context, into any) error { *into.(*agent.Ack) = h.ack; return nil }

func (f *fake) UpdateWorkflow(ctx context.Context, o temporal.UpdateWorkflowOptions) (temporal.WorkflowUpdateHandle, error) {
	if f.slow != nil {
		f.slow(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.refuse != nil {
		return nil, f.refuse
	}
	command := o.Args[0].(agent.Command)
	raw, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	ack := agent.Ack{V: 1, Session: f.status.Session, Run: f.status.Run, Effect: agent.EffectAccepted}
	switch before, known := f.first[command.Header().ID]; {
	case known && before == string(raw):
		return handle{ack: ack}, nil
	case known:
		return nil, agent.Errorf(agent.CodeInvalidInput, "the id is that of another verb").WithPath("id")
	case f.status.Suspension == nil:
		return nil, agent.Errorf(agent.CodeStale, "the run does not wait for it").WithPath("topic")
	}
	f.first[command.Header().ID] = string(raw)
	f.said = append(f.said, command)
	if len(f.status.Suspension.Holds) == 0 { // a held run keeps it, and waits on
		f.status.Suspension, f.status.Status = nil, agent.StatusRunning
	}
	return handle{ack: ack}, nil
}

// parks lets the run wait again, since a while.
func (f *fake) parks(topic string, since time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Status = agent.StatusSuspended
	f.status.Suspension = &agent.Suspension{ID: "s-" + time.Now().String(), Since: time.Now().Add(-since), Conditions: &agent.Conditions{Event: event(topic)}}
}

// verbs are what the run took.
func (f *fake) verbs() []agent.Command {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]agent.Command(nil), f.said...)
}

// door is a handler on a real server.
type door struct {
	t *testing.T
	*httptest.Server
	h *Handler
}

func opened(t *testing.T, f *fake, prove Authenticate) *door {
	t.Helper()
	h, err := New(client.New(f, nil), &Options{Authenticate: prove, AllowUnauthenticated: prove == nil})
	require.NoError(t, err)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &door{t, s, h}
}

func bearer(t testing.TB) Authenticate {
	t.Helper()
	prove, err := Bearer("shop", token)
	require.NoError(t, err)
	return prove
}

// replied is an answer to a request.
type replied struct {
	status int
	header http.Header
	problem
	text string
}

// post sends a callback that is well-formed, as far as change lets it be.
func (d *door) post(path, body string, change ...func(*http.Request)) replied {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.URL+path, strings.NewReader(body))
	require.NoError(d.t, err)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Authorization", "Bearer "+token)
	for _, c := range change {
		c(r)
	}
	w, err := http.DefaultClient.Do(r)
	require.NoError(d.t, err)
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	require.NoError(d.t, err)
	a := replied{status: w.StatusCode, header: w.Header, text: string(bytes.TrimSpace(raw))}
	if w.StatusCode != http.StatusOK {
		require.Equal(d.t, "application/problem+json", w.Header.Get("Content-Type"))
		require.NoError(d.t, json.Unmarshal(raw, &a.problem), a.text)
		require.Equal(d.t, w.StatusCode, a.Status)
	}
	return a
}

// with sets a header.
func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}
