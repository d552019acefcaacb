package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// recording reads the first n events of a history that a released build has made;
// all of them for zero.
func recording(t *testing.T, name string, n int) *historypb.History {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "workflows", "testdata", "history", name+".json"))
	require.NoError(t, err)
	h := &historypb.History{}
	require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, h))
	if n > 0 {
		h.Events = h.Events[:n]
	}
	return h
}

// Histories of released builds fit, whole and as they were while the run was open.
func TestReleasedHistoriesFit(t *testing.T) {
	files, err := filepath.Glob("../workflows/testdata/history/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		whole := recording(t, strings.TrimSuffix(filepath.Base(path), ".json"), 0).Events
		step := 1 + len(whole)/100
		for n, e := range whole {
			open := e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED && n%step == 0
			if !open && n < len(whole)-1 {
				continue
			}
			v, err := worker.Replay(&historypb.History{Events: whole[:n+1]}, nil)
			require.NoError(t, err)
			require.NoError(t, v.Err(), "%s, up to %d", path, n+1)
			require.NotEmpty(t, v.Run)
		}
	}
}

// event is an event that a recorded one is replaced by, or followed by.
func event(attributes func(*historypb.HistoryEvent), kind enums.EventType) *historypb.HistoryEvent {
	e := &historypb.HistoryEvent{EventType: kind}
	attributes(e)
	return e
}

func scheduled(name string) *historypb.HistoryEvent {
	return event(func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityId: "16", ActivityType: &commonpb.ActivityType{Name: name},
			Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("hunter2")}}},
		}}
	}, enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
}

func plain(kind enums.EventType) *historypb.HistoryEvent {
	return event(func(e *historypb.HistoryEvent) {
		switch kind {
		case enums.EVENT_TYPE_TIMER_STARTED:
			e.Attributes = &historypb.HistoryEvent_TimerStartedEventAttributes{TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: "18"}}
		case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			e.Attributes = &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{}}
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			e.Attributes = &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{
				Result: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("hunter2")}}},
			}}
		}
	}, kind)
}

// A history that this build would not make is found to be broken at the event where
// it departs, and nothing of what was said is told. (Of v1-tools, the events 4, 15 and
// 24 complete workflow tasks; after 15 two calls of tools are scheduled.)
func TestTheEventOfABreach(t *testing.T) {
	for name, c := range map[string]struct {
		first int // so many recorded events
		then  []*historypb.HistoryEvent
		swap  int // the events at this index and after it
		id    int64
		says  string
	}{
		"another activity": {first: 15, then: []*historypb.HistoryEvent{scheduled("fermata.pay")}, id: 16, says: "has ActivityTaskScheduled fermata.pay there, and this build makes ScheduleActivityTask fermata.tool"},
		"another order":    {first: 12, swap: 7, id: 8, says: "has WorkflowPropertiesModified there, and this build makes UpsertWorkflowSearchAttributes"},
		"a step less":      {first: 17, then: []*historypb.HistoryEvent{plain(enums.EVENT_TYPE_TIMER_STARTED)}, id: 18, says: "has TimerStarted there, and this build makes nothing of the kind"},
		"a step more":      {first: 16, id: 15, says: "one step more in this workflow task: ScheduleActivityTask fermata.tool"},
		"a step more, and a task later": {first: 16, then: []*historypb.HistoryEvent{
			plain(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED), plain(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED), plain(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED),
			plain(enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED), plain(enums.EVENT_TYPE_WORKFLOW_TASK_STARTED), plain(enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED),
			plain(enums.EVENT_TYPE_TIMER_STARTED),
		}, id: 15, says: "one step more in this workflow task: ScheduleActivityTask fermata.tool"},
		"the end":                               {first: 24, then: []*historypb.HistoryEvent{plain(enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)}, id: 24, says: "one step more in this workflow task: ScheduleActivityTask fermata.model"},
		"an end that the history does not have": {first: 10, then: []*historypb.HistoryEvent{plain(enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)}, id: 11, says: "the history ends there, and this build continues"},
	} {
		t.Run(name, func(t *testing.T) {
			h := recording(t, "v1-tools", c.first)
			if c.swap > 0 {
				h.Events[c.swap], h.Events[c.swap+1] = h.Events[c.swap+1], h.Events[c.swap]
			}
			h.Events = append(h.Events, c.then...)
			for i, e := range h.Events {
				e.EventId = int64(i + 1)
			}
			v, err := worker.Replay(h, nil)
			require.NoError(t, err)
			require.Equal(t, worker.Incompatible, v.Compatibility)
			require.Equal(t, c.id, v.Event.ID, v.Reason)
			require.Equal(t, h.Events[c.id-1].GetEventType().String(), v.Event.Type)
			require.Contains(t, v.Reason, c.says)
			require.ErrorIs(t, v.Err(), agent.CodeIncompatible)
			require.ErrorContains(t, v.Err(), v.Session)
			require.NotContains(t, v.Err().Error(), "hunter2")
		})
	}
}

// The event is found whatever has come behind it.
func TestABreachOfLongAgo(t *testing.T) {
	h := recording(t, "v1-parked", 0)
	at := 1 + slices.IndexFunc(h.Events, func(e *historypb.HistoryEvent) bool { return e.GetActivityTaskScheduledEventAttributes() != nil })
	h.Events[at-1].GetActivityTaskScheduledEventAttributes().ActivityType.Name = "fermata.pay"
	for n := at; n <= len(h.Events); n++ {
		v, err := worker.Replay(&historypb.History{Events: h.Events[:n]}, nil)
		require.NoError(t, err)
		require.Equal(t, worker.Incompatible, v.Compatibility)
		require.Equal(t, int64(at), v.Event.ID, "of %d events: %s", n, v.Reason)
	}
}

func named(name string) tool.Tool {
	return tool.New(name, "", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, nil)
}

// What a run was begun with is looked for in the options: a deploy that leaves a
// tool out is told of before the model calls it.
func TestWhatARunWasBegunWith(t *testing.T) {
	open := recording(t, "v1-tools", 23)
	boom, script := named("boom"), map[string]model.Model{"script": testsuite.NewScript()}
	for name, c := range map[string]struct {
		o     *worker.Options
		h     *historypb.History
		lacks string
	}{
		"all is there":     {o: &worker.Options{Agents: []agent.Definition{{Name: "tester", Model: "script"}}, Models: script, Tools: []tool.Tool{named("echo"), boom}}},
		"no options":       {},
		"at its end":       {o: &worker.Options{Agents: []agent.Definition{{Name: "x", Model: "script"}}, Models: script}, h: recording(t, "v1-tools", 0)},
		"a tool":           {o: &worker.Options{Agents: []agent.Definition{{Name: "tester", Model: "script"}}, Models: script, Tools: []tool.Tool{named("echo")}}, lacks: "it needs what this worker lacks: tool boom"},
		"agent and model":  {o: &worker.Options{Agents: []agent.Definition{{Name: "other", Model: "new"}}, Models: map[string]model.Model{"new": testsuite.NewScript()}, Tools: []tool.Tool{named("echo"), boom}}, lacks: "agent tester, model script"},
		"not begun at all": {o: &worker.Options{Agents: []agent.Definition{{Name: "other", Model: "script"}}, Models: script}, h: recording(t, "v1-tools", 2), lacks: "agent tester"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open
			if c.h != nil {
				h = c.h
			}
			v, err := worker.Replay(h, c.o)
			require.NoError(t, err)
			require.Equal(t, "tester", v.Agent)
			if c.lacks == "" {
				require.Equal(t, worker.Compatible, v.Compatibility, v.Reason)
				return
			}
			require.Equal(t, worker.MissingParts, v.Compatibility)
			require.Contains(t, v.Reason, c.lacks)
			require.ErrorIs(t, v.Err(), agent.CodeIncompatible)
		})
	}
}

// A state that a newer build has carried over is not tried.
func TestAStateOfANewerBuild(t *testing.T) {
	h := recording(t, "v1-tools", 23)
	start := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
	start.Input.Payloads = slices.Concat(start.Input.Payloads[:1], []*commonpb.Payload{{Data: []byte(`{"v":2}`)}})
	v, err := worker.Replay(h, nil)
	require.NoError(t, err)
	require.Equal(t, worker.MissingParts, v.Compatibility)
	require.Contains(t, v.Reason, "the run's state has version 2; this build reads up to 1")
}

func TestWhatIsNoHistoryOfARun(t *testing.T) {
	other := recording(t, "v1-tools", 23)
	other.Events[0].GetWorkflowExecutionStartedEventAttributes().WorkflowType.Name = "acme.other"
	for _, h := range []*historypb.History{nil, {}, other} {
		_, err := worker.Replay(h, nil)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
	_, err := worker.Replay(recording(t, "v1-tools", 0), &worker.Options{Agents: []agent.Definition{{}}})
	require.ErrorIs(t, err, agent.CodeInvalidInput, "the options are wrong")
}
