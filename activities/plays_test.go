package activities

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// flowLog is the log of a flow's run: its input, and the results of steps named "step".
func flowLog(input string, results ...string) *store.View {
	said := agent.TextMessage(agent.RoleUser, input)
	events := []agent.Event{{Started: &agent.Started{Spec: &agent.Spec{Definition: agent.Definition{Name: "f"}, Flow: true}}}, {Message: &said}}
	for i, text := range results {
		id, path := fmt.Sprint(i), "step"
		if i > 0 {
			path = fmt.Sprintf("step#%d", i+1)
		}
		call, result := agent.ToolCall{ID: id, ProviderID: path, Tool: agent.DoTool}, agent.ToolResult{Call: id, Status: agent.CallOK, Text: text}
		events = append(events,
			agent.Event{Message: &agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &call}}}},
			agent.Event{Message: &agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &result}}}})
	}
	for i := range events {
		events[i].Type, events[i].Seq, events[i].Time = agent.EventMessage, int64(i+1), time.Unix(int64(i), 0)
	}
	return (&store.View{}).With(events, int64(len(events)))
}

// A function that hangs is started once, however often it is asked: for the same run, by a run that
// comes to the same place, and for its code. Where it has not been, it is started.
func TestAFunctionThatHangsIsStartedOnce(t *testing.T) {
	const patience = 500 * time.Millisecond
	over := make(chan struct{})
	var starts int
	var hung atomic.Int32
	f := func(c *play.Context, input []byte) (play.Done, error) {
		starts++
		r, err := c.Do("step", play.Step{FlowStep: wire.FlowStep{ToolCall: agent.ToolCall{Tool: agent.DoTool}}})
		if string(input) == "bad" && r.Text == "one" {
			hung.Add(1)
			<-over
		}
		return play.Done{Text: r.Text}, err
	}
	var logged bytes.Buffer
	d := &Activities{Plays: NewPlays(), Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	ask := func(session, key string, log *store.View, within time.Duration) error {
		k, err := d.playUpTo(t.Context(), playing{flow: flowOfSession{session, "f"}, function: f, key: key, log: log, within: within})
		if err == nil {
			d.Plays.put(key, k)
		}
		return err
	}
	require.NoError(t, ask("s", "run-1", flowLog("bad"), time.Minute))
	require.ErrorIs(t, ask("s", "run-1", flowLog("bad", "one"), time.Millisecond), agent.CodeStuck)
	err := ask("s", "run-1", flowLog("bad", "one"), patience)
	require.ErrorContains(t, err, "plays_test.go", "it says where")
	require.Equal(t, []int{1, 1}, []int{starts, int(hung.Load())}, "the second asking waits for the first one's function")
	d.Plays.Drop("run-1")

	began := time.Now()
	for _, key := range []string{"run-2", doKey("run-2"), "run-3"} {
		require.EqualError(t, ask("s", key, flowLog("bad", "one"), patience), err.Error())
	}
	require.Less(t, time.Since(began), patience, "nobody waits as long again")
	require.NoError(t, ask("s", "run-4", flowLog("bad"), time.Minute), "it has not come to the place yet")
	require.ErrorIs(t, ask("s", "run-4", flowLog("bad", "one"), patience), agent.CodeStuck)
	require.EqualValues(t, 1, hung.Load())
	require.NoError(t, ask("s", "run-5", flowLog("good", "one"), time.Minute), "another input")
	require.NoError(t, ask("s", "run-6", flowLog("bad", "two"), time.Minute), "another result")
	require.ErrorIs(t, ask("another", "run-7", flowLog("bad", "one"), time.Millisecond), agent.CodeStuck)
	require.EqualValues(t, 2, hung.Load())
	require.Contains(t, logged.String(), "hung=2")

	close(over)
	require.NoError(t, ask("s", "run-8", flowLog("bad", "one"), time.Minute), "it hangs no more")
}

// An asking waits for another of the same execution, which may still have its play when its time is
// over; it does not wait longer than its own time.
func TestAskingsOfOnePlayWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlays()
		over, err := p.ask(t.Context(), "run")
		require.NoError(t, err)
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.ask(late, "run")
		require.ErrorIs(t, err, agent.CodeTimeout)
		elsewhere, err := p.ask(t.Context(), "run-2")
		require.NoError(t, err)
		elsewhere()

		time.AfterFunc(time.Second, over)
		over, err = p.ask(t.Context(), "run")
		require.NoError(t, err)
		over()
		require.Empty(t, p.asked)
	})
}
