package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
)

// A retry ends with the context that it carries, and a start likewise: what they are at is given
// up, and the outcome says why. A context that is done before begins nothing (HX-45).
func TestAContextEndsARetry(t *testing.T) {
	t.Parallel()
	l := &till{}
	s := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Calls: call("pay", map[string]any{"amount": 1})}, testsuite.Reply{Fail: []testsuite.Failure{{Kind: agent.FaultBadRequest, Message: "no"}}, Text: "slow", Stream: time.Hour},
	), l.tool())
	first, out := s.run(t, "pay one", nil)
	require.Equal(t, agent.StatusFailed, out.Status)

	ctx, cancel := context.WithCancel(t.Context())
	plan, err := s.Retry(t.Context(), first.Session, &client.ForkOptions{EndWith: &client.EndWith{Context: ctx}})
	require.NoError(t, err)
	retry, err := plan.Start(t.Context())
	require.NoError(t, err)
	s.begins(t, retry)
	cancel()
	o := s.rest(t, retry)
	require.Equal(t, []any{agent.StatusCancelled, "context canceled"}, []any{o.Status, o.Reason})
	require.NoError(t, retry.Detach())
	require.EqualValues(t, 1, l.paid.Load())

	again, err := s.Fork(t.Context(), first.Session, &client.ForkOptions{Text: "again", EndWith: &client.EndWith{Context: ctx}})
	require.NoError(t, err)
	_, err = again.Start(t.Context())
	require.ErrorIs(t, err, context.Canceled)
	last, err := s.Get(t.Context(), first.Session)
	require.NoError(t, err)
	require.Equal(t, retry.ID, last.ID, "nothing has begun")
}

// The client of an HTTP request goes away: the run of a handler that has said so ends, with that
// as its reason, and the run of another handler goes on (HX-45, PA-42).
func TestAClientThatDisconnects(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript(
		testsuite.Reply{Match: "^slowly$", Text: "At last.", Delay: time.Hour}, testsuite.Reply{Match: "^go$", Text: "Done.", Delay: 2 * time.Second}, testsuite.Reply{Match: "^at once$", Text: "Now."},
	))
	begun := make(chan *client.Run, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := &client.StartOptions{}
		if r.URL.Query().Has("end") {
			o.EndWith = &client.EndWith{Context: r.Context(), Reason: "client_disconnect"}
		}
		run, err := s.Start(r.Context(), "tester", r.URL.Query().Get("text"), o)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		begun <- run
		if out, err := run.Result(r.Context()); err == nil {
			_, _ = w.Write([]byte(out.Text))
		}
	}))
	t.Cleanup(web.Close)
	get := func(ctx context.Context, query string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/?"+query, nil)
		require.NoError(t, err)
		res, err := web.Client().Do(req)
		if err == nil {
			err = res.Body.Close()
		}
		return err
	}
	for query, want := range map[string][]any{
		"end=&text=slowly": {agent.StatusCancelled, "client_disconnect"}, "text=go": {agent.StatusCompleted, agent.ReasonDone},
	} {
		ctx, disconnect := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- get(ctx, query) }()
		run := <-begun
		s.until(t, run, agent.EventTurnStarted)
		disconnect()
		require.ErrorIs(t, <-gone, context.Canceled)
		o := s.rest(t, run)
		require.Equal(t, want, []any{o.Status, o.Reason})
	}
	// The context of a request is also done when its handler returns. The run has ended by then.
	require.NoError(t, get(t.Context(), "end=&text=at+once"))
	run := <-begun
	o := s.rest(t, run)
	require.Equal(t, []any{agent.StatusCompleted, "Now."}, []any{o.Status, o.Text})
	require.Empty(t, s.sentTo(t, run), "nothing was sent")
}

// sentTo lists the names of the updates that a run has accepted.
func (s *stage) sentTo(t *testing.T, run *client.Run) (names []string) {
	t.Helper()
	for _, e := range s.history(t, run.Session, run.ID) {
		if u := e.GetWorkflowExecutionUpdateAcceptedEventAttributes(); u != nil {
			names = append(names, u.GetAcceptedRequest().GetInput().GetName())
		}
	}
	return names
}

// If no worker is there when a context is done, the verb waits in Temporal for the next one, which
// asks no model: the program that had the context may be gone by then (HX-45).
func TestAContextIsDoneWithoutAWorker(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	ctx, cancel := context.WithCancel(t.Context())
	run, err := s.Start(ctx, "tester", "go", &client.StartOptions{EndWith: &client.EndWith{Context: ctx}})
	require.NoError(t, err)
	cancel()
	_, err = run.Result(ctx)
	require.Error(t, err, "it returns when the verb is sent")
	require.NoError(t, run.Detach())
	asked := testsuite.NewScript(testsuite.Reply{Text: "Done."})
	s.work(t, agent.Definition{}, asked)
	o := s.rest(t, run)
	require.Equal(t, []any{agent.StatusCancelled, "context canceled"}, []any{o.Status, o.Reason})
	require.Empty(t, asked.Requests())
}
