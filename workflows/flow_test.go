package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// counting is a flow with one step of code, called "count".
func counting(count func() int) flow.Flow {
	return flow.New("tester", func(c flow.Context, _ string) (int, error) {
		return flow.Do(c, "count", func(context.Context, *tool.Call) (int, error) { return count(), nil }, nil)
	}, nil)
}

// setupFlow is a bench whose agent is a flow.
func setupFlow(t *testing.T, f flow.Flow) *bench {
	t.Helper()
	require.NoError(t, f.Err())
	b := setup(t, agent.Definition{}, nil)
	b.acts.Flows, b.acts.Plays = map[string]play.Function{"tester": f.Function()}, activities.NewPlays()
	b.acts.Agents["tester"] = activities.Agent{Spec: agent.Spec{V: agent.Version, Definition: f.Definition().WithDefaults(), Flow: true}}
	b.fresh()
	return b
}

// notInTheBuild is what an activity returns whose worker has an older build.
var notInTheBuild = temporal.NewNonRetryableApplicationError("", "fermata.no_slot", nil, durable.NoSlot{Missing: agent.Errorf(agent.CodeUnknownAgent, "the flow of this worker's build has no step count")})

// A step that no worker has in its build is tried for some minutes on others. Then the run is
// suspended and says why; a resume makes the step, with all of its attempts.
func TestAStepThatNoWorkerHas(t *testing.T) {
	var tried, did int
	b := setupFlow(t, counting(func() int { did++; return did }))
	b.OnActivity(activities.CallTool.Name, mock.Anything, mock.Anything).Return(func(context.Context, activities.ToolInput) (activities.ToolOutput, error) {
		tried++
		return activities.ToolOutput{}, notInTheBuild
	})
	b.after(5*time.Minute, func() { require.Equal(t, agent.StatusRunning, b.status(t).Status) })
	b.after(time.Hour, func() {
		v := b.status(t)
		require.Equal(t, agent.StatusSuspended, v.Status)
		require.Equal(t, string(agent.CodeUnknownAgent), v.Suspension.Cause)
		require.Equal(t, agent.CodeUnknownAgent, v.Suspension.Holds[0].Code)
		require.Contains(t, v.Suspension.Holds[0].Reason, "has no step count")
		require.Greater(t, tried, 10)
		b.signal("resume", `{}`) // the next execution has the step
	})
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, 1, did)
}

// While workers are searched for a step, a pause suspends the run within a minute, and a stop ends
// it.
func TestAStepIsSearchedForUnderAHold(t *testing.T) {
	for _, verb := range []string{"pause", "stop"} {
		t.Run(verb, func(t *testing.T) {
			b := setupFlow(t, counting(func() int { return 1 }))
			b.OnActivity(activities.CallTool.Name, mock.Anything, mock.Anything).Return(func(context.Context, activities.ToolInput) (activities.ToolOutput, error) {
				return activities.ToolOutput{}, notInTheBuild
			})
			began := b.Now()
			b.after(2*time.Minute, func() { b.signal(verb, `{}`) })
			b.after(200*time.Second, func() {
				if verb == "pause" {
					require.Equal(t, agent.StatusSuspended, b.status(t).Status)
					b.signal("cancel", `{}`)
				}
			})
			want := map[string]agent.Status{"pause": agent.StatusCancelled, "stop": agent.StatusStopped}[verb]
			require.Equal(t, want, b.run(t, "go").Status)
			require.Less(t, b.Now().Sub(began), 4*time.Minute)
		})
	}
}

// A flow is asked again however long the store is away, and if a worker is lost. Only a function
// that hangs fails the run. Five lost workers in a row suspend it: the function may be the reason.
func TestAFlowIsAskedUntilItAnswers(t *testing.T) {
	lost := temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil)
	for name, c := range map[string]struct {
		err   error
		times int
		want  agent.Code // of the run's error, or of its hold; empty if it completes
	}{
		"the store is away": {durable.Failure(agent.Errorf(agent.CodeStoreUnavailable, "away"), nil), 9, ""}, // the environment makes ten attempts for the server's unlimited ones
		"workers are lost":  {lost, 4, ""},
		"it ends workers":   {lost, 5, agent.CodeWorkerLost},
		"it hangs":          {durable.Failure(agent.Errorf(agent.CodeStuck, "it does not return"), nil), 1, agent.CodeStuck},
	} {
		t.Run(name, func(t *testing.T) {
			b := setupFlow(t, counting(func() int { return 1 }))
			asked := 0
			if c.err == lost { //nolint:errorlint // the environment would try again by itself
				b.between = &serverRetries{}
				b.fresh()
			}
			b.OnActivity(activities.AskFlow.Name, mock.Anything, mock.Anything).Return(func(ctx context.Context, _ activities.FlowInput) (wire.FlowAnswer, error) {
				if activity.GetInfo(ctx).IsLocalActivity {
					return wire.FlowAnswer{}, durable.Failure(agent.Errorf(agent.CodeStoreUnavailable, "away"), nil)
				}
				if asked++; asked > c.times {
					return wire.FlowAnswer{Done: true, Text: "done"}, nil
				}
				return wire.FlowAnswer{}, c.err
			})
			b.after(time.Hour, func() {
				v := b.status(t)
				require.Equal(t, c.want, v.Suspension.Holds[0].Code)
				b.signal("cancel", `{}`)
			})
			switch o := b.run(t, "go"); {
			case c.want == "":
				require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			case c.want == agent.CodeStuck:
				require.Equal(t, c.want, o.Error.Code)
			default:
				require.Equal(t, agent.StatusCancelled, o.Status, "%+v", o.Error)
			}
		})
	}
}

// What a flow's call of a model has used is charged also if the next attempt finds no slot, and if
// the worker is lost: by what the attempt has left, or else by the prompt.
func TestAFlowsLostCallOfAModelIsCharged(t *testing.T) {
	for name, c := range map[string]struct {
		errs []error
		want int64
	}{
		"no slot": {[]error{temporal.NewNonRetryableApplicationError("", "fermata.no_slot", nil, durable.NoSlot{Tried: 1, HeartbeatDetails: json.RawMessage(`{"charges":[{"usage":{"input_tokens":500},"estimated":true}]}`)})}, 510},
		"lost":    {slices.Repeat([]error{temporal.NewHeartbeatTimeoutError()}, 4), 100},
	} {
		t.Run(name, func(t *testing.T) {
			f := flow.New("tester", func(c flow.Context, _ string) (string, error) {
				return flow.Generate[string](c, "judge", flow.Prompt{Text: strings.Repeat("x", 300)})
			}, &flow.Options{Models: []string{"script"}})
			b := setupFlow(t, f)
			made := 0
			b.OnActivity(activities.CallTool.Name, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.ToolInput) (activities.ToolOutput, error) {
				if made++; made <= len(c.errs) {
					return activities.ToolOutput{}, c.errs[made-1]
				}
				charges := append(slices.Clone(in.Carryover.Charges), agent.Charge{Usage: agent.Usage{Input: 10}})
				return activities.ToolOutput{ToolResult: agent.ToolResult{Call: in.Call, Tool: in.Tool, Status: agent.CallOK, Text: "yes"}, Charges: charges}, nil
			})
			o := b.run(t, "go")
			require.InDelta(t, c.want, o.Usage.Total(), 40)
		})
	}
}

// A worker whose build lacks the model of a flow's call hands the call back.
func TestAFlowsModelIsOnAnotherWorker(t *testing.T) {
	f := flow.New("tester", func(c flow.Context, in string) (string, error) {
		return flow.Generate[string](c, "judge", flow.Prompt{Text: in})
	}, &flow.Options{Models: []string{"script"}})
	b := setupFlow(t, f)
	script, asked := testsuite.NewScript(testsuite.Reply{Text: "yes"}), 0
	b.acts.Model = func(name string) (activities.Model, error) {
		if asked++; asked <= 3 {
			return activities.Model{}, agent.Errorf(agent.CodeUnknownModel, "model %q is not in this worker's build", name)
		}
		return activities.Model{Model: script, Name: name}, nil
	}
	b.fresh()
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, "yes", o.Text)
}

// A worker whose function lacks an open step does not answer, as an older build in a rolling deploy:
// the run looks for one that has the step. If there is none, the step is dropped.
func TestAnOpenStepThatTheBuildLacks(t *testing.T) {
	for name, c := range map[string]struct {
		newer, oneBuild bool // newer means that a worker with the step is there
		want            string
	}{
		"a newer build is there": {newer: true, want: "approved"},
		"no build has it":        {want: "alone"},
		"one build has all runs": {oneBuild: true, want: "alone"},
	} {
		t.Run(name, func(t *testing.T) {
			newer := true
			b := setupFlow(t, flow.New("tester", func(c flow.Context, _ string) (string, error) {
				said, branches := "alone", []string{"first", "second"}
				if !newer {
					branches = branches[:1]
				}
				_, err := flow.Map(c, "branch", branches, func(c flow.Context, name string) (none, error) {
					d, err := flow.Approve(c, name, nil, nil)
					if name == "second" && d.Approved {
						said = "approved"
					}
					return none{}, err
				}, nil)
				return said, err
			}, nil))
			b.acts.OneBuild = c.oneBuild
			b.after(time.Hour, func() { // another worker has the run
				newer, b.acts.Plays = false, activities.NewPlays()
				b.signal("approve", `{"request":"q-1"}`)
			})
			b.after(time.Hour+20*time.Second, func() {
				if !c.oneBuild {
					require.Equal(t, []string{"q-2"}, openRequests(b.status(t)))
				}
				newer, b.acts.Plays = c.newer, activities.NewPlays()
			})
			b.after(2*time.Hour, func() { b.signal("approve", `{"request":"q-2"}`) })
			o := b.run(t, "go")
			require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
			require.Equal(t, c.want, o.Text)
		})
	}
}

func openRequests(v agent.RunStatus) (ids []string) {
	for _, r := range v.Requests {
		ids = append(ids, r.ID)
	}
	return ids
}

// Questions that a run has no space for are not asked for again and again: each would be in the log
// every time.
func TestQuestionsThatMustWait(t *testing.T) {
	const questions = 60
	subject := strings.Repeat("x", 20<<10)
	b := setupFlow(t, flow.New("tester", func(c flow.Context, _ string) (int, error) {
		all, err := flow.Map(c, "item", make([]none, questions), func(c flow.Context, _ none) (bool, error) {
			d, err := flow.Approve(c, "Pay?", subject, nil)
			return d.Approved, err
		}, nil)
		return len(flow.Values(all)), err
	}, nil))
	asked := 0
	b.SetOnLocalActivityCompletedListener(func(info *activity.Info, result converter.EncodedValue, err error) {
		var a wire.FlowAnswer
		if info.ActivityType.Name == activities.AskFlow.Name && err == nil {
			require.NoError(t, result.Get(&a))
			asked += len(a.Steps)
		}
	})
	for i := range questions {
		b.after(time.Duration(i+1)*time.Second, func() { b.signal("approve", fmt.Sprintf(`{"request":"q-%d"}`, i+1)) })
	}
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.JSONEq(t, "60", string(o.Output))
	require.Less(t, asked, 2*questions, "each asking asks for those again that have to wait")
}
