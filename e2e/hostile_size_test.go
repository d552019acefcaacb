package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
)

// asking is a stage whose agent asks a question and then is done, with a run of it
// and the question.
func asking(t *testing.T) (*stage, *client.Run, agent.Request) {
	t.Helper()
	s := hostile(t)
	s.startWorker(t, func(_ context.Context, req *model.Request) *model.Reply {
		if len(req.Messages) > 1 {
			return saysText("done")
		}
		return asksFor(model.CallPart("", agent.AskUserTool, `{"question":"Where to?"}`))
	}, nil, agent.Definition{Name: "tester", Tools: []string{agent.AskUserTool}})
	run := s.begin(t, "ask", nil)
	return s, run, s.suspended(t, run).Requests[0]
}

// update says something by an update of the raw client, which tries again for as long
// as it may what the server is too full for.
func (s *stage) update(t *testing.T, within time.Duration, session, name string, arg any) error {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	h, err := s.temporal.UpdateWorkflow(ctx, temporal.UpdateWorkflowOptions{WorkflowID: session, UpdateName: name, Args: []any{arg}, WaitForStage: temporal.WorkflowUpdateStageCompleted})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	return err
}

// sound checks that no task of a run has failed, except for those that the server itself
// begins anew since too much waits behind them.
func (s *stage) sound(t *testing.T, run *client.Run) {
	t.Helper()
	for _, e := range s.history(t, run.Session, "") {
		if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil {
			require.Equal(t, enums.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND, a.Cause, "%s", a.GetFailure().GetMessage())
		}
	}
}

// refused waits until a run shows that it has refused so many signals, all for one reason.
func (s *stage) refused(t *testing.T, run *client.Run, n int, code agent.Code) agent.RunStatus {
	t.Helper()
	var st agent.RunStatus
	require.Eventually(t, func() bool {
		var err error
		st, err = run.Status(t.Context())
		return err == nil && len(st.Refused) == n
	}, patience, 20*time.Millisecond)
	for _, r := range st.Refused {
		require.Equal(t, code, r.Error.Code, "%s: %s", r.Verb, r.Error.Message)
	}
	return st
}

// start begins a run by the raw client.
func (s *stage) start(t *testing.T, arg any) (*client.Run, error) {
	t.Helper()
	r, err := s.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{TaskQueue: s.queue}, signals.WorkflowType, arg)
	if err != nil {
		return nil, err
	}
	return s.Get(t.Context(), r.GetID())
}

// What is too large is refused where it is said, with a code, or at the run and
// shown there; the run takes no notice of it otherwise.
func TestHostilePayloads(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s, run, open := asking(t)
	ctx, big := t.Context(), strings.Repeat("x", fiveMB)
	order := agent.SendCommand{Text: big}
	for what, try := range map[string]func() error{
		"start":      func() error { _, err := s.Start(ctx, "tester", big, nil); return err },
		"send":       func() error { _, err := s.Send(ctx, run.Session, big, nil); return err },
		"resume":     func() error { _, err := run.Resume(ctx, &client.ResumeOptions{Message: big}); return err },
		"interrupt":  func() error { _, err := run.Interrupt(ctx, big, nil); return err },
		"answer":     func() error { _, err := s.Answer(ctx, open, big, nil); return err },
		"emit":       func() error { _, err := s.Emit(ctx, "a.b", big, nil); return err },
		"said":       func() error { _, err := signals.Update(ctx, s.temporal, run.Session, order); return err },
		"said later": func() error { return signals.Signal(ctx, s.temporal, run.Session, order) },
		"3 MB of that": func() error {
			return signals.Signal(ctx, s.temporal, run.Session, agent.SendCommand{Text: big[:3<<20]})
		},
	} {
		require.ErrorIs(t, try(), agent.CodeTooLarge, what)
	}
	for _, size := range []int{fiveMB, 3 << 20} {
		if ring() != nil {
			break // what is encrypted is packed before, and x five million times is nothing
		}
		require.Error(t, s.update(t, time.Second, run.Session, "send", map[string]any{"text": big[:size]}), "%d by the raw client", size)
		require.Error(t, s.temporal.SignalWorkflow(ctx, run.Session, "", "send", map[string]any{"text": big[:size]}), "%d by the raw client", size)
		_, err := s.start(t, agent.Start{Agent: "tester", Input: agent.Input{Text: big[:size]}})
		require.Error(t, err, "%d by the raw client", size)
	}
	much := map[string]any{"text": big[:3<<19]}
	require.ErrorContains(t, s.update(t, patience, run.Session, "send", much), "at most 1048576 are taken")
	require.NoError(t, s.temporal.SignalWorkflow(ctx, run.Session, "", "send", much))
	s.refused(t, run, 1, agent.CodeTooLarge)
	started, err := s.start(t, agent.Start{Agent: "tester", Input: agent.Input{Text: big[:3<<19]}})
	require.NoError(t, err)
	require.Equal(t, string(agent.CodeTooLarge), s.rest(t, started).Reason)
	s.sound(t, run)
	_, err = s.Answer(ctx, open, "Rome", nil)
	require.NoError(t, err)
	s.ends(t, run, agent.StatusCompleted)
}

// What is as long as may be, and meant to be long in the answer, is answered in short.
func TestHostileEchoes(t *testing.T) {
	t.Parallel()
	s, run, _ := asking(t)
	mega := strings.Repeat("x", 1000<<10)
	echoes := map[string]any{
		"resume": map[string]any{"suspension": mega}, "send": map[string]any{mega: 1}, "stop": map[string]any{"deadline": mega[:60<<10]},
		"answer":  map[string]any{"request": mega},
		"answers": map[string]any{"answers": []any{map[string]any{"request": "q-99", "answer": map[string]any{"data": map[string]any{mega[:500<<10]: make([]int, 200_000)}}}}},
	}
	for name, arg := range echoes {
		err := s.update(t, patience, run.Session, name, arg)
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 10_000, name)
		require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", name, arg))
	}
	require.Eventually(t, func() bool {
		st, err := run.Status(t.Context())
		return err == nil && len(st.Refused) == len(echoes)
	}, patience, 20*time.Millisecond)
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	raw, err := json.Marshal(st)
	require.NoError(t, err)
	require.Less(t, len(raw), 64<<10)
	require.Equal(t, agent.StatusSuspended, st.Status)
	s.sound(t, run)
	s.stops(t, run)
}

// asIs is a payload of JSON that no converter has looked at: ours would refuse to
// write what is nested this deep.
func asIs(format string, deep json.RawMessage) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: fmt.Appendf(nil, format, deep)})
}

// What is nested too deep is refused as what is too large is.
func TestHostileDepth(t *testing.T) {
	t.Parallel()
	s, run, open := asking(t)
	ctx := t.Context()
	for _, depth := range []int{100, 10_000, 30_000} {
		deep := json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		said := map[string]converter.RawValue{
			"emit": asIs(`{"topic":"a.b","payload":%s}`, deep), "answer": asIs(`{"request":"q-1","data":%s}`, deep),
			"approve": asIs(`{"request":"q-1","arguments":{"a":%s}}`, deep), "pause": asIs(`{"meta":{"a":%s}}`, deep),
			"answers": asIs(`{"answers":[{"request":"q-1","answer":{"data":%s}}]}`, deep), "interrupt": asIs(`%s`, deep),
		}
		for name, arg := range said {
			err := s.update(t, patience, run.Session, name, arg)
			var refusal *sdktemporal.ApplicationError
			require.ErrorAs(t, err, &refusal, "%s, %d deep", name, depth)
			require.Equal(t, string(agent.CodeInvalidInput), refusal.Type(), "%s, %d deep: %v", name, depth, err)
			require.NoError(t, s.temporal.SignalWorkflow(ctx, run.Session, "", name, arg))
		}
		started, err := s.start(t, asIs(`{"agent":"tester","input":{"data":%s}}`, deep))
		require.NoError(t, err)
		require.Equal(t, string(agent.CodeInvalidInput), s.rest(t, started).Reason)
		_, err = s.temporal.QueryWorkflow(ctx, run.Session, "", "events", asIs(`{"after":%s}`, deep))
		require.Error(t, err)
		_, err = s.Start(ctx, "tester", "go", &client.StartOptions{Data: deep})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		_, err = s.Emit(ctx, "a.b", deep, nil)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		_, err = s.Answer(ctx, open, "", &client.AnswerOptions{Data: deep})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
	s.refused(t, run, 8, agent.CodeInvalidInput)
	s.sound(t, run)
	s.stops(t, run)
}

// Many that say as much as may be said, all at once, for as long as they have patience:
// what comes with one task of the run is no more than it can answer, else the server
// would end the run. One is taken at most, the others are told why not, or find no
// turn; the run goes on.
func TestHostileMegabytesAtOnce(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s, run, open := asking(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	mega := strings.Repeat("x", 1000<<10)
	won, lost := s.race(t, 12, func(context.Context, int) error {
		_, err := signals.Update(ctx, s.temporal, run.Session, agent.SendCommand{Text: mega})
		return err
	})
	unsure := 0
	for _, err := range lost {
		require.Contains(t, []agent.Code{agent.CodeTooLarge, agent.CodeQueueFull, agent.CodeTimeout}, agent.CodeOf(err), "%v", err)
		if errors.Is(err, agent.CodeTimeout) {
			unsure++
		}
	}
	s.sound(t, run)
	_, err := s.Answer(t.Context(), open, "Rome", nil)
	require.NoError(t, err)
	s.ends(t, run, agent.StatusCompleted)
	messages, err := s.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	said := 0
	for _, m := range messages {
		if m.Text() == mega {
			said++
		}
	}
	require.LessOrEqual(t, won, said)
	require.LessOrEqual(t, said, min(1, won+unsure))
}
