package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// However much a flow asks for at once, its run goes on: what does not fit waits until other steps
// have ended.
func TestAFlowAsksForMuchAtOnce(t *testing.T) {
	t.Parallel()
	m := modelFunc(func(_ context.Context, r *model.Request) *model.Reply {
		return saysText(fmt.Sprint(len(r.Messages[0].Text())))
	})
	const items, size = 150, 60_000
	f := flow.New("much", func(c flow.Context, _ string) (int, error) {
		all, err := flow.Map(c, "item", make([]int, items), func(c flow.Context, _ int) (string, error) {
			return flow.Agent[string](c, "reader", strings.Repeat("x", size), nil)
		}, nil)
		return len(flow.Values(all)), err
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reader"}}})
	s, _ := flows(t, f, m, nil, agent.Definition{Name: "reader"})
	run, err := s.Start(t.Context(), "much", "go", nil)
	require.NoError(t, err)
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, fmt.Sprint(items), string(out.Output))
}

// A step that no run could keep fails its flow at once, with its name.
func TestAStepIsTooLarge(t *testing.T) {
	t.Parallel()
	f := flow.New("large", func(c flow.Context, _ string) (string, error) {
		return flow.Agent[string](c, "reader", strings.Repeat("x", 3<<20), nil)
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reader"}}})
	s, _ := flows(t, f, nil, nil, agent.Definition{Name: "reader"})
	run, err := s.Start(t.Context(), "large", "go", nil)
	require.NoError(t, err)
	out := s.rest(t, run)
	require.Equal(t, agent.StatusFailed, out.Status)
	require.Equal(t, agent.CodeTooLarge, out.Error.Code)
	require.Contains(t, out.Error.Message, "step reader")
}

// A result is as large as it is recorded: a text of JSON is longer than it seems.
func TestAFlowsResultIsTooLarge(t *testing.T) {
	t.Parallel()
	f := flow.New("large", func(flow.Context, string) ([]string, error) {
		return slices.Repeat([]string{`"`}, 250_000), nil
	}, nil)
	wrong := flow.New("wrong", func(flow.Context, string) (string, error) {
		return "", errors.New(strings.Repeat("x", 2_200_000))
	}, nil)
	s, o := flows(t, f, nil, nil)
	run, err := s.Start(t.Context(), "large", "go", nil)
	require.NoError(t, err)
	require.Equal(t, agent.CodeTooLarge, s.rest(t, run).Error.Code)
	s.worker.Stop()
	o.Flows = []flow.Flow{wrong}
	s.worker = s.open(t, o)
	run, err = s.Start(t.Context(), "wrong", "go", nil)
	require.NoError(t, err)
	require.Less(t, len(s.rest(t, run).Error.Message), 20_000)
}

// A flow drops many steps that end late, and then asks for more than there is room for: the branch
// that found none begins when they have ended, although the other one waits for a person.
func TestAFlowBeginsWhatHadNoRoom(t *testing.T) {
	t.Parallel()
	const width = 128
	begun, free := make(chan bool, width), make(chan bool)
	slow := tool.New("slow", "slow", func(_ context.Context, _ *tool.Call, in struct {
		N int `json:"n"`
	}) (string, error) {
		if in.N == 0 {
			for range width - 1 {
				<-begun
			}
			return "first", nil
		}
		begun <- true
		<-free // it ignores that it is cancelled
		return "late", nil
	}, nil)
	var told counts
	f := flow.New("room", func(c flow.Context, _ string) (string, error) {
		items := make([]int, width)
		for i := range items {
			items[i] = i
		}
		if _, err := flow.Map(c, "m", items, func(c flow.Context, n int) (string, error) {
			return flow.Tool[string](c, "slow", map[string]int{"n": n}, nil)
		}, &flow.MapOptions{Need: 1}); err != nil {
			return "", err
		}
		return "", flow.Parallel(c,
			flow.Branch{Name: "asks", Do: func(c flow.Context) error { _, err := flow.Ask[string](c, "Which?", nil); return err }},
			flow.Branch{Name: "works", Do: func(c flow.Context) error {
				_, err := flow.Do(c, "tell", func(context.Context, *tool.Call) (int, error) { return told.add("tell"), nil }, nil)
				return err
			}})
	}, &flow.Options{Tools: []string{"slow"}, ParallelTools: width})
	s, _ := flows(t, f, nil, []tool.Tool{slow})
	run, err := s.Start(t.Context(), "room", "go", nil)
	require.NoError(t, err)
	s.until(t, run, agent.EventRequestOpened)
	close(free)
	s.suspended(t, run)
	require.Equal(t, 1, told.n["tell"])
}

// A tool runs until a flow's other branch has made many steps, of 6 MB: a long history does not keep
// these waiting for the tool.
func TestAFlowGoesOnBesideALongStep(t *testing.T) {
	t.Parallel()
	const steps = 60
	free := make(chan bool)
	slow := tool.New("slow", "slow", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		select {
		case <-free:
		case <-ctx.Done():
		}
		return "done", ctx.Err()
	}, nil)
	var did counts
	f := flow.New("long", func(c flow.Context, _ string) (string, error) {
		return "", flow.Parallel(c,
			flow.Branch{Name: "slow", Do: func(c flow.Context) error { _, err := flow.Tool[string](c, "slow", struct{}{}, nil); return err }},
			flow.Branch{Name: "quick", Do: func(c flow.Context) error {
				for range steps {
					if _, err := flow.Do(c, "d", func(context.Context, *tool.Call) (string, error) {
						if did.add("d") == steps {
							close(free)
						}
						return strings.Repeat("x", 100_000), nil
					}, nil); err != nil {
						return err
					}
				}
				return nil
			}})
	}, &flow.Options{Tools: []string{"slow"}})
	s, _ := flows(t, f, nil, []tool.Tool{slow})
	run, err := s.Start(t.Context(), "long", "go", nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	require.Equal(t, map[string]int{"d": steps}, did.n)
}

// A flow asks more questions at once than its run can keep. The further ones are asked when the first
// have their answers, here by their deadlines.
func TestAFlowAsksManyQuestions(t *testing.T) {
	t.Parallel()
	const questions = 110
	f := flow.New("many", func(c flow.Context, _ string) (int, error) {
		all, err := flow.Map(c, "m", make([]int, questions), func(c flow.Context, _ int) (string, error) {
			return flow.Ask[string](c, "Well?", &flow.AskOptions{Context: strings.Repeat("x", 3_900), Deadline: 2 * time.Second, Default: "yes"})
		}, nil)
		return len(flow.Values(all)), err
	}, nil)
	s, _ := flows(t, f, nil, nil)
	run, err := s.Start(t.Context(), "many", "go", nil)
	require.NoError(t, err)
	s.suspended(t, run)
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Less(t, len(st.Requests), questions)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := run.Result(ctx)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprint(questions), string(out.Output))
}
