package e2e

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// rpcs counts the calls of a connection, by method.
type rpcs struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *rpcs) hear(method string, _ any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[method]++
	return nil
}

func (c *rpcs) count(methods ...string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range methods {
		n += c.calls[m]
	}
	return n
}

// Calls of a client that looks on.
const (
	polls     = "GetWorkflowExecutionHistory"
	describes = "DescribeWorkflowExecution"
	queries   = "QueryWorkflow"
)

// all is a copy of the counts.
func (c *rpcs) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// counted is a client of its own whose calls are counted.
func (s *stage) counted(t *testing.T) (*client.Client, *rpcs) {
	t.Helper()
	n := &rpcs{calls: map[string]int{}}
	return client.New(dialHearing(t, shared(t), n.hear), &client.Options{TaskQueue: s.queue, Store: s.dir}), n
}

// Whoever waits for a run that works for long, or for the end of one that is parked,
// is told by the server's long poll, and hardly ever asks besides.
func TestWhoeverWaitsAsksSeldom(t *testing.T) {
	const most = 8 // of looks while twelve polls run out, which take a second each here
	begun := make(chan struct{}, 1)
	works := tool.New("works", "", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}, nil)
	s := setup(t, agent.Definition{}, testsuite.NewScript(testsuite.Reply{Match: ".*", Calls: call("works", nil)}), works)
	for name, park := range map[string]*agent.Conditions{"works": nil, "parked": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := s.begin(t, "go", &client.StartOptions{Park: park})
			if park == nil {
				<-begun
			} else {
				s.suspended(t, run)
			}
			c, n := s.counted(t)
			same, err := c.Get(t.Context(), run.Session)
			require.NoError(t, err)
			done := make(chan agent.Status, 1)
			go func() {
				wait := same.Wait
				if park != nil {
					wait = same.Result
				}
				if out, err := wait(t.Context()); err == nil {
					done <- out.Status
				}
			}()
			asked := time.Now()
			require.Eventually(t, func() bool { return n.count(polls) >= 12 }, patience, 50*time.Millisecond)
			require.Greater(t, time.Since(asked), 8*time.Second, "each poll is a long one")
			require.LessOrEqual(t, n.count(describes, queries), most, "%v", n.calls)
			t.Logf("calls: %v", n.calls)
			_, err = run.Cancel(t.Context(), "enough", nil)
			require.NoError(t, err)
			require.Equal(t, agent.StatusCancelled, <-done)
		})
	}
}

// Many in one process who follow a busy session ask it together. What they ask is counted,
// and so it goes alone.
func TestFollowersAskTogether(t *testing.T) {
	const followers, turns = 20, 100
	replies := make([]testsuite.Reply, 0, turns)
	for i := range turns - 1 {
		replies = append(replies, testsuite.Reply{Calls: call("echo", map[string]any{"text": strings.Repeat("x", i)})})
	}
	s := setup(t, agent.Definition{Limits: agent.Limits{Turns: turns}}, testsuite.NewScript(append(replies, testsuite.Reply{Text: "done"})...), echo(nil))
	c, n := s.counted(t)
	run := s.begin(t, "go", &client.StartOptions{Park: &agent.Conditions{}})
	s.suspended(t, run)
	read := make(chan int, followers)
	for range followers {
		go func() {
			lines, err := readAll(t.Context(), c, run.Session)
			if err != nil {
				t.Error(err)
			}
			read <- lines
		}()
	}
	require.Eventually(t, func() bool { return n.count(queries) > 0 && n.count(polls) > 0 }, patience, time.Millisecond)
	before, began := n.count(polls, describes, queries), time.Now()
	_, err := run.Resume(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, s.rest(t, run).Status)
	took := time.Since(began)
	for range followers {
		require.Equal(t, len(s.wires(t, run.Session)), <-read)
	}
	t.Logf("%d turns in %v, %d followers: %v", turns, took, followers, n.calls)
	require.LessOrEqual(t, n.count(polls, describes, queries)-before, 15*turns)
}

func readAll(ctx context.Context, c *client.Client, session string) (n int, err error) {
	lines, err := read(ctx, c, session, client.EventsOptions{Follow: true, UntilEnd: true})
	return len(lines), err
}
