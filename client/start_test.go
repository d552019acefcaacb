package client

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// A start returns at once, with a session of its own making where none is named;
// where the session has a live run it is refused, with that run (HX-01, HX-05, HX-85,
// HA-99).
func TestStart(t *testing.T) {
	var begun agent.Start
	f := atEnd(t)
	last := f.describe
	f.begin = func(s agent.Start) (string, error) { begun = s; return "01a1", nil }
	f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
		return nil, serviceerror.NewNotFound("gone")
	}
	c := New(f, nil)
	sessions := map[string]bool{}
	for range 2 {
		run, err := c.Start(t.Context(), "payer", "pay", nil)
		require.NoError(t, err)
		require.Equal(t, "01a1", run.ID)
		id, err := uuid.Parse(run.Session)
		require.NoError(t, err)
		require.EqualValues(t, 7, id.Version())
		sessions[run.Session] = true
	}
	require.Len(t, sessions, 2)
	run, err := c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip-42"})
	require.NoError(t, err)
	require.Equal(t, "trip-42", run.Session)
	require.Empty(t, begun.After)
	f.describe = last
	_, err = c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip-42"})
	require.NoError(t, err)
	require.Equal(t, "01a1", begun.After, "a store that has nothing of that run is not the right one")
	_, err = c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip/42"})
	require.ErrorIs(t, err, agent.CodeInvalidInput)

	f.begin = func(agent.Start) (string, error) {
		return "", serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "01a1")
	}
	_, err = c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip-42"})
	var e *agent.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, []any{agent.CodeBusy, "trip-42", "01a1"}, []any{e.Code, e.Session, e.Run})
}

// A start that is not answered in time is tried again if nobody else knows the session, and
// begins one run. In a named session the error says where to look.
func TestAStartThatIsNotAnswered(t *testing.T) {
	f := atEnd(t)
	f.describe = func(session, _ string) (*workflowpb.WorkflowExecutionInfo, error) {
		info := execution(t, session, "01a1", running, agent.Memo{}, nil)
		info.Execution.RunId = "02b2"
		return info, nil
	}
	tries := 0
	f.begin = func(agent.Start) (string, error) {
		if tries++; tries < 3 {
			return "", serviceerror.NewDeadlineExceeded("the server is busy")
		}
		return "", serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "02b2") // its second execution
	}
	c := New(f, nil)
	run, err := c.Start(t.Context(), "payer", "pay", nil)
	require.NoError(t, err)
	require.Equal(t, "01a1", run.ID)
	require.Equal(t, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, f.reuse, "a run that has ended already is not begun again")
	tries = 0
	_, err = c.Start(t.Context(), "payer", "pay", &StartOptions{Session: "trip-42"})
	var e *agent.Error
	require.True(t, errors.As(err, &e))
	require.Equal(t, []any{agent.CodeTimeout, "trip-42", 1}, []any{e.Code, e.Session, tries})

	// The first attempt finds that an unseen one has begun the run, and nothing more of it.
	tries = 2
	f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
		return nil, serviceerror.NewNotFound("?")
	}
	_, err = c.Start(t.Context(), "payer", "pay", nil)
	require.ErrorIs(t, err, agent.CodeTimeout)

	// Whatever the last attempt says, the first may have begun the run.
	for _, last := range []error{serviceerror.NewUnavailable("away"), serviceerror.NewNotFound("?"), serviceerror.NewInvalidArgument("?")} {
		tries = 0
		f.begin = func(agent.Start) (string, error) {
			if tries++; tries == 1 {
				return "", serviceerror.NewDeadlineExceeded("the server is busy")
			}
			return "", last
		}
		_, err = c.Start(t.Context(), "payer", "pay", nil)
		require.True(t, errors.As(err, &e))
		require.Equal(t, agent.CodeTimeout, e.Code)
		require.NotEmpty(t, e.Session)
	}
}

// A start that is refused leaves none of its files in the store.
func TestARefusedStartStoresNothing(t *testing.T) {
	root := t.TempDir()
	dir, err := store.OpenDir(root, nil)
	require.NoError(t, err)
	stored := func() (n int) {
		require.NoError(t, filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return err
		}))
		return n
	}
	before := stored()
	for _, o := range []StartOptions{{Carry: "nonsense"}, {Priority: temporal.Priority{FairnessWeight: -1}}} {
		o.Files = []FileInput{{Name: "a.txt", Data: []byte("hello")}}
		_, err = New(&fake{}, &Options{Store: dir}).Start(t.Context(), "payer", "pay", &o)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.Equal(t, before, stored())
	}
}

// What a run does is a part of the trace of whoever starts it, where the client says
// which that is; what is no traceparent is left out.
func TestStartsWithinATrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	type key struct{}
	f := atEnd(t)
	var metas []string
	f.begin = func(s agent.Start) (string, error) { metas = append(metas, string(s.Meta)); return "01a1", nil }
	c := New(f, &Options{Traceparent: func(ctx context.Context) string { p, _ := ctx.Value(key{}).(string); return p }})
	for _, p := range []string{parent, "", `00-"}`} {
		ctx := context.WithValue(t.Context(), key{}, p)
		_, err := c.Start(ctx, "payer", "pay", nil)
		require.NoError(t, err)
		_, err = c.Send(ctx, "trip-42", "pay", nil)
		require.NoError(t, err)
	}
	require.Equal(t, []string{`{"traceparent":"` + parent + `"}`, `{"traceparent":"` + parent + `"}`, "", "", "", ""}, metas)
	require.JSONEq(t, `{"ticket":"T-9"}`, string(c.traced(context.WithValue(t.Context(), key{}, parent), agent.Start{Meta: []byte(`{"ticket":"T-9"}`)}).Meta))
}
