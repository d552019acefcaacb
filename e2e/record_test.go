package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

var record = flag.Bool("record", false, "write the histories of this build's shapes to workflows/testdata/history; existing ones are kept, since they were released")

// shape is a story whose history is kept.
type shape struct {
	def     agent.Definition
	replies []testsuite.Reply
	tools   []tool.Tool
	start   client.StartOptions
	agent   string
	cancel  bool
	ends    agent.Status
}

func shapes() map[string]shape {
	boom := tool.New("boom", "fails", func(context.Context, *tool.Call, struct{}) (string, error) { return "", errors.New("no") }, nil)
	wait := tool.New("wait", "waits until it is cancelled", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, nil)
	held := tool.New("held", "waits until it is cancelled, and gives back what it has", func(ctx context.Context, _ *tool.Call, _ struct{}) (string, error) {
		<-ctx.Done()
		return "half", nil
	}, nil)
	three := []testsuite.Call{{Tool: "echo", Arguments: map[string]any{"text": "a"}}, {Tool: "boom"}, {Tool: "nope"}}
	return map[string]shape{
		"answer":         {replies: []testsuite.Reply{{Text: "hello"}}, ends: agent.StatusCompleted},
		"tools":          {replies: []testsuite.Reply{{Calls: three}, {Text: "done"}}, tools: []tool.Tool{echo(nil), boom}, ends: agent.StatusCompleted},
		"local":          {replies: []testsuite.Reply{{Calls: three[:1]}, {Text: "done"}}, tools: []tool.Tool{echo(&tool.Options{Local: true})}, ends: agent.StatusCompleted},
		"retried":        {replies: []testsuite.Reply{{Text: "done", Fail: []testsuite.Failure{{Kind: agent.FaultRateLimit, RetryAfter: 10 * time.Millisecond}}}}, ends: agent.StatusCompleted},
		"clock":          {def: agent.Definition{Limits: agent.Limits{WallClock: agent.Duration(time.Hour)}}, replies: []testsuite.Reply{{Text: "done"}}, ends: agent.StatusCompleted},
		"sealed":         {replies: []testsuite.Reply{{TextBytes: 300_000, Calls: three[:1]}, {Text: "done"}}, tools: []tool.Tool{echo(nil)}, ends: agent.StatusCompleted},
		"finish":         {def: agent.Definition{Completion: agent.CompletionTool}, replies: []testsuite.Reply{{Text: "hm"}, {Calls: call("finish", map[string]any{"summary": "all done"})}}, ends: agent.StatusCompleted},
		"failed":         {replies: []testsuite.Reply{{Fail: []testsuite.Failure{{Kind: agent.FaultAuth, HTTP: 401, Message: "no"}}}}, ends: agent.StatusFailed},
		"briefed":        {start: client.StartOptions{Briefing: &agent.Handoff{V: 1, Session: "old", Run: "r", Agent: "a", Status: agent.StatusStopped, Task: "go", Reason: "requested", Summary: strings.Repeat("x", 254_000), SummarizedBy: agent.SummarizedByModel}}, replies: []testsuite.Reply{{Text: "hello"}}, ends: agent.StatusCompleted},
		"nobody":         {agent: "nobody", ends: agent.StatusFailed},
		"canceled-grace": {replies: []testsuite.Reply{{Calls: call("held", nil)}}, tools: []tool.Tool{held}, cancel: true, ends: agent.StatusCancelled},
		"canceled":       {replies: []testsuite.Reply{{Calls: call("wait", nil)}}, tools: []tool.Tool{wait}, cancel: true, ends: agent.StatusCancelled},
	}
}

// Every shape ends as it should, and its history is what the replay test of
// package workflows holds later builds to.
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, sh := range shapes() {
		t.Run(name, func(t *testing.T) {
			s := setup(t, sh.def, testsuite.NewScript(sh.replies...), sh.tools...)
			who := sh.agent
			if who == "" {
				who = "tester"
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			run, err := s.Start(ctx, who, "go", &sh.start)
			require.NoError(t, err)
			if sh.cancel {
				s.until(t, run, agent.EventCallStarted)
				require.NoError(t, s.temporal.CancelWorkflow(ctx, run.Session, ""))
			}
			out, err := run.Result(ctx)
			require.NoError(t, err)
			require.Equal(t, sh.ends, out.Status, "%+v", out)
			s.keep(t, name, run.Session, run.ID)
		})
	}
}

// until waits for one of some events of a run. A worker with much to do may answer late:
// then it comes back once, as a reader would.
func (s *stage) until(t *testing.T, run *client.Run, want ...agent.EventType) {
	t.Helper()
	var seq int64
	for range 2 {
		for e, err := range run.Follow(t.Context(), agent.Cursor(seq)) {
			if errors.Is(err, agent.CodeNoWorker) {
				break
			}
			require.NoError(t, err)
			if seq = e.Seq; slices.Contains(want, e.Type) {
				return
			}
		}
	}
	t.Fatalf("the run ended without %v, or no worker answered", want)
}

// keep writes a history down where that was asked for and none is kept yet.
func (s *stage) keep(t *testing.T, name, session, execution string) {
	t.Helper()
	path := filepath.Join("..", "workflows", "testdata", "history", fmt.Sprintf("v1-%s.json", name))
	if _, err := os.Stat(path); !*record || err == nil {
		return
	}
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&historypb.History{Events: s.history(t, session, execution)})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, append(data, '\n'), 0o644))
}
